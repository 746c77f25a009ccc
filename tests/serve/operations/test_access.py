"""Keys: needed as soon as the server can be reached from elsewhere, hashed, for their scopes only."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from cutaway import cli
from cutaway.errors import CutawayError
from cutaway.serve.settings import ServeSettings

ELSEWHERE = {"host": "0.0.0.0", "base": "http://laptop.local:8000"}


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


@pytest.mark.parametrize(
    ("host", "needed"),
    [("127.0.0.1", False), ("127.8.9.1", False), ("::1", False), ("localhost", False), ("0.0.0.0", True),
     ("::", True), ("192.168.1.5", True), ("laptop.local", True)],
)  # fmt: skip
def test_keys_are_needed_on_every_address_but_this_machines_own(host, needed):
    assert ServeSettings(host=host).needs_keys is needed
    assert ServeSettings(host=host, require_keys=True).needs_keys


def test_a_server_for_others_does_not_begin_without_a_key(serve, keys):
    with pytest.raises(CutawayError, match="cutaway serve keys add"):
        serve(**ELSEWHERE)
    keys.add("me")
    keys.revoke("me")
    with pytest.raises(CutawayError, match="there is none"):
        serve(**ELSEWHERE)
    with pytest.raises(CutawayError, match="require_keys"):
        serve(require_keys=True)


def test_every_address_with_something_behind_it_asks_for_a_key(serve, keys):
    _, secret = keys.add("me")
    client = serve(**ELSEWHERE)
    document = client.get("/openapi.json", headers=bearer(secret)).json()
    for path, methods in document["paths"].items():
        for method in methods:
            address = path.replace("{", "").replace("}", "")
            answer = client.request(method, address)
            assert answer.status_code == (200 if path in ("/health", "/ready") else 401), (method, path, answer.text)
    assert client.get("/openapi.json").status_code == 401
    said = client.get("/v1/models").json()["error"]
    assert said["code"] == "invalid_api_key" and said["type"] == "authentication_error"
    for wrong in (
        "",
        "Bearer",
        "Bearer x",
        f"Basic {secret}",
        f"Bearer {secret}x",
        f"Bearer {secret[:-1]}",
        "Bearer \xff",
    ):
        given = {"Authorization": wrong.encode("latin-1")}
        assert client.get("/v1/models", headers=given).status_code == 401, wrong
    assert client.get("/v1/models", headers=bearer(secret)).status_code == 200


def test_a_key_opens_what_its_scopes_say(serve, keys):
    wanted = {"use": "/v1/models", "explain": "/api/models", "teach": "/v1/files", "metrics": "/metrics"}
    secrets = {scope: keys.add(scope, [scope])[1] for scope in wanted}
    client = serve(**ELSEWHERE)
    for scope, secret in secrets.items():
        for other, address in wanted.items():
            status = client.get(address, headers=bearer(secret)).status_code
            assert status == (200 if scope == other else 403), (scope, address)
    assert client.get("/api/jobs", headers=bearer(secrets["explain"])).status_code == 403


def test_a_key_is_kept_as_a_hash_and_ends_at_once_when_it_is_revoked(serve, keys, settings):
    key, secret = keys.add("me")
    client = serve(**ELSEWHERE)
    assert client.get("/v1/models", headers=bearer(secret)).status_code == 200
    rows = sqlite3.connect(Path(settings.state) / "cutaway.db").execute("SELECT * FROM keys").fetchall()
    assert secret not in json.dumps(rows) and secret.removeprefix("sk-cutaway-") not in json.dumps(rows)
    keys.revoke(key.id)
    assert client.get("/v1/models", headers=bearer(secret)).status_code == 401


def test_a_browser_is_asked_for_the_key_once_and_pages_from_elsewhere_get_nothing(serve, keys):
    _, secret = keys.add("me")
    client = serve(**ELSEWHERE)
    page = client.get("/")
    assert page.status_code == 401 and "<form" in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert client.post("/enter", data={"key": "sk-cutaway-wrong"}).status_code == 401
    entered = client.post("/enter", data={"key": secret}, follow_redirects=False)
    assert entered.status_code == 303
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    assert client.get("/api/models").status_code == 200 and client.get("/").status_code == 200
    assert "default-src 'self'" in client.get("/").headers["content-security-policy"]
    for origin in ("https://evil.example", "null", "http://laptop.local:9000"):
        assert client.get("/api/models", headers={"Origin": origin}).status_code == 403, origin
    assert client.get("/api/models", headers={"Origin": "http://laptop.local:8000"}).status_code == 200
    assert "access-control-allow-origin" not in client.get("/v1/models").headers


def test_a_page_that_is_named_may_ask_on_this_machine_too(serve):
    client = serve(origins=("https://good.example",))
    for origin, status in (("https://good.example", 200), ("https://evil.example", 403)):
        assert client.get("/v1/models", headers={"Origin": origin}).status_code == status
    assert client.get("/v1/models", headers={"Host": "evil.example"}).status_code == 403


def test_other_pages_may_ask_only_where_they_are_named(serve, keys):
    _, secret = keys.add("me")
    client = serve(**ELSEWHERE, origins=("https://good.example",))
    asked = {"Origin": "https://good.example", **bearer(secret)}
    answer = client.get("/v1/models", headers=asked)
    assert answer.status_code == 200 and answer.headers["access-control-allow-origin"] == "https://good.example"
    other = client.get("/v1/models", headers={**asked, "Origin": "https://evil.example"})
    assert other.status_code == 403 and "access-control-allow-origin" not in other.headers


def test_keys_are_made_listed_and_revoked_at_the_command_line(tmp_path, capsys):
    state = ["--state", str(tmp_path)]
    assert cli.run(["serve", "keys", "add", "the class", "--scope", "use", "--json", *state]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["scopes"] == ["use"] and made["key"].startswith("sk-cutaway-")
    assert cli.run(["serve", "keys", "list", *state]) == 0
    listed = capsys.readouterr().out
    assert made["id"] in listed and made["key"] not in listed and "the class" in listed
    assert cli.run(["serve", "keys", "revoke", "the class", *state]) == 0
    assert cli.run(["serve", "keys", "revoke", "the class", *state]) == 2
    assert cli.run(["serve", "keys", "add", "x", "--scope", "everything", *state]) == 2
    assert "There is no scope 'everything'" in capsys.readouterr().err
    assert cli.run(["serve", "keys", "ad"]) == 2 and "Did you mean 'add'" in capsys.readouterr().err
    assert cli.run(["serve", "keys", "--help"]) == 0
