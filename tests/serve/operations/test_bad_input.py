"""Whatever is sent, the answer is a sentence and never a 5xx; what is too much is refused before it costs anything."""

from __future__ import annotations

import gzip
import json
import socket
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutaway.serve.openai.events import event
from cutaway.serve.operations.guard import Refused, plain_json
from cutaway.serve.operations.patience import h11_protocol, httptools_protocol

JSON = {"Content-Type": "application/json"}


BODIES = [
    b"[" * 100_000,
    b'{"a":' * 100 + b"1" + b"}" * 100,
    b'{"prompt": "x", "temperature": NaN}',
    b'{"prompt": "x", "temperature": -Infinity}',
    b'{"prompt": "x", "temperature": 1e999}',
    b'{"prompt": "x", "max_tokens": ' + b"9" * 10_000 + b"}",
    b'{"prompt": "x", "seed": 18446744073709551616}',
    b'{"prompt": "\xff\xfe"}',
    b'{"prompt": "\\ud800"}',
    b'{"\\udfff": 1}',
    b"\xef\xbb\xbf{}",
    b"{'a': 1}",
    b'{"a": 1} x',
    b"\x00",
]


def test_json_that_nobody_can_mean_is_refused_at_every_address(serve):
    client = serve()
    for path in ("/v1/completions", "/v1/chat/completions", "/v1/embeddings", "/v1/fine_tuning/jobs", "/api/traces"):
        for body in BODIES:
            answer = client.post(path, content=body, headers=JSON)
            assert answer.status_code == 400 and answer.json()["error"], (path, body[:40], answer.text)


def test_json_of_another_kind_than_asked_is_refused_with_its_place(serve):
    client = serve()
    for body in (b"", b"null", b"[]", b"1", b'"x"', b'{"model": 1}'):
        for path in ("/v1/completions", "/v1/fine_tuning/jobs"):
            assert client.post(path, content=body, headers=JSON).status_code == 400, (path, body)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(VALUES)
def test_a_body_is_taken_exactly_when_it_is_plain_json(value):
    body = json.dumps(value).encode()

    def plain(one):
        if isinstance(one, bool) or one is None:
            return True
        if isinstance(one, int):
            return -(2**63) <= one < 2**63
        if isinstance(one, float):
            return one - one == 0
        if isinstance(one, str):
            return one.encode("utf-8", "replace").decode() == one
        return all(map(plain, one.items() if isinstance(one, dict) else one))

    try:
        assert plain_json(body) == value and plain(value)
    except Refused as error:
        assert error.status == 400 and not plain(value)


@settings(max_examples=200, deadline=None)
@given(st.recursive(st.text(), lambda inner: st.dictionaries(st.text(), inner, max_size=3), max_leaves=6))
def test_an_event_is_one_line_whatever_is_in_it_and_reads_back(data):
    sent = event(data)
    assert sent.startswith(b"data: ") and sent.endswith(b"\n\n")
    assert sent.count(b"\n") == 2 and b"\r" not in sent
    assert json.loads(sent[6:]) == json.loads(json.dumps(data).encode("utf-8", "replace"))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(), max_size=5), st.lists(st.integers(0, 400), max_size=6))
def test_a_stream_reads_back_however_it_is_cut(texts, cuts):
    from openai._streaming import SSEDecoder

    stream = b"".join(event({"text": text}) for text in texts) + b"data: [DONE]\n\n"
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    pieces = [stream[a:b] for a, b in pairwise(places)]
    found = [one.data for one in SSEDecoder().iter_bytes(iter(pieces))]
    assert [json.loads(one)["text"] for one in found[:-1]] == texts and found[-1] == "[DONE]"


def test_what_is_too_large_is_refused_by_its_word_and_by_its_bytes(serve):
    client = serve(body=1_000, upload=2_000)
    large = json.dumps({"prompt": "x" * 2_000}).encode()
    assert client.post("/v1/completions", content=large, headers=JSON).status_code == 413
    pieces = (large[at : at + 100] for at in range(0, len(large), 100))
    assert client.post("/v1/completions", content=pieces, headers=JSON).status_code == 413
    lines = b'{"text": "aaaaaaaaa"}\n'
    sent = {"files": {"file": lines * 1_000}, "data": {"purpose": "fine-tune"}}
    assert client.post("/v1/files", **sent).status_code == 413
    sent["files"] = {"file": lines * 80_000}  # beyond what an upload's form may have around it
    assert client.post("/v1/files", **sent).status_code == 413
    assert client.get("/v1/files").json()["data"] == []


def test_compressed_bodies_are_not_opened(serve):
    bomb = gzip.compress(b"\0" * 10_000_000)
    for encoding in ("gzip", "br", "deflate, gzip"):
        answer = serve().post("/v1/completions", content=bomb, headers={**JSON, "Content-Encoding": encoding})
        assert answer.status_code == 415


PATHS = [
    "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/assets/..%2f..%2f..%2fpyproject.toml", "/%00",
    "/v1/models/..%2f..%2fetc%2fpasswd", "/v1/files/..%2f..%2fetc%2fpasswd", "/v1/files/%00/content",
    "/v1/fine_tuning/jobs/%2e%2e/events", "//etc/passwd", "/v1/models/%ff%fe", "/.git/config",
]  # fmt: skip


def test_no_address_leads_out_of_the_server(serve):
    client = serve()
    for path in PATHS:
        answer = client.get(path)
        assert answer.status_code in (400, 404, 422) and "root:" not in answer.text, (path, answer.text)


def test_a_model_is_never_a_path(serve, model):
    client = serve()
    for name in (str(model), "../tiny", "/etc/passwd", "file:///etc/passwd", "builtin"):
        answer = client.post("/v1/completions", json={"model": name, "prompt": "x", "max_tokens": 1})
        assert answer.status_code == 404 and answer.json()["error"]["code"] == "model_not_found", name


HEADERS = [
    {"Host": "evil.example"},
    {"Host": "127.0.0.1.evil.example"},
    {"Host": ""},
    {"Origin": "https://evil.example"},
    {"Content-Length": "-5"},
    {"Content-Length": "1e3"},
    {"X-Request-Id": "a\tb" * 100},
    {"Content-Type": "application/json; charset=utf-7"},
    {"Authorization": "Bearer " + "x" * 5_000},
    {"Accept": "*/*;q=" + "9" * 1_000},
]


def test_tricks_with_headers_get_an_answer_and_no_5xx(serve):
    client = serve()
    for headers in HEADERS:
        answer = client.post("/v1/completions", content=b"{}", headers={**JSON, **headers})
        assert answer.status_code < 500, (headers, answer.text)
        assert answer.headers.get("x-request-id", "").isprintable()


POST, GET = (f"{method} HTTP/1.1\r\nHost: 127.0.0.1\r\n" for method in ("POST /v1/completions", "GET /v1/models"))
HEADS = [
    f"{POST}Content-Length: 2\r\nContent-Length: 40\r\n\r\n{{}}",
    f"{POST}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    f"{POST}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n{{}}\r\n",
    f"{GET}Host: evil.example\r\n\r\n",
    f"{GET}Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n",
    f"{GET}X-Long: {'x' * 2_000_000}\r\n\r\n",
    "GET /v1/models HTTP/1.1\r\nHost : 127.0.0.1\r\n\r\n",
    "GET /v1/models HTTP/1.1\nHost: evil.example\n\n",
    "GET /v1/models\r\nevil HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "GET http://evil.example/v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + "\x00" * 64,  # TLS at a port without it
    "\x00" * 1_000,
]


def test_heads_that_two_readers_could_read_in_two_ways_get_no_answer_but_a_refusal(settings):
    """Raw bytes on a socket; after each of them the server answers the next one who asks."""
    import threading

    import uvicorn

    from cutaway.serve import start
    from cutaway.serve.server import create_server

    listener = start.bind()
    app = create_server(settings)
    server = uvicorn.Server(
        uvicorn.Config(app, http=httptools_protocol(settings.receive_seconds), log_level="critical")
    )
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()

    def told(sent: bytes) -> bytes:
        with socket.create_connection(listener.getsockname()) as client:
            client.settimeout(60)
            try:
                client.sendall(sent)
                client.shutdown(socket.SHUT_WR)
                return b"".join(iter(lambda: client.recv(1_000), b""))
            except OSError as error:  # it is closed before all was sent
                assert not isinstance(error, TimeoutError)
                return b""

    try:
        for head in HEADS:
            answer = told(head.encode("latin-1"))
            assert not answer or answer[9:10] == b"4", (head[:80], answer[:200])
            well = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
            assert told(well).startswith(b"HTTP/1.1 200"), head[:80]
    finally:
        server.should_exit = True
        thread.join()


def test_more_requests_than_are_taken_are_told_to_come_again():
    import asyncio

    from cutaway.serve.operations.guard import Guard
    from cutaway.serve.settings import ServeSettings

    async def slow(scope, receive, send):
        await asyncio.sleep(3600)

    async def main() -> tuple[dict, bool]:
        guard = Guard(slow, ServeSettings(requests=1, seconds=0.05))
        sent: list[dict] = []

        async def send(message):
            sent.append(message)

        async def receive():
            return {"type": "http.request", "body": b"", "more_body": False}

        scope = {"type": "http", "path": "/v1/models", "method": "GET", "headers": []}
        first = asyncio.create_task(guard(dict(scope), receive, send))
        while not guard.busy:
            await asyncio.sleep(0)
        await guard(dict(scope), receive, send)
        busy = sent[0]
        await first  # which takes longer than an answer may
        return busy, sent[2]["status"] == 504 and guard.busy == 0

    busy, ended = asyncio.run(main())
    assert busy["status"] == 503 and (b"retry-after", b"1") in busy["headers"] and ended


@pytest.mark.parametrize("kind", ["application/json", "multipart/form-data; boundary=x"])
def test_a_body_that_comes_too_slowly_is_given_up(kind):
    import asyncio

    from cutaway.serve.operations.guard import Guard, whole
    from cutaway.serve.settings import ServeSettings

    async def app(scope, receive, send):
        await whole(receive)
        raise AssertionError("the body did not come")

    async def main() -> int:
        sent: list[dict] = []
        parts = [{"type": "http.request", "body": b"{", "more_body": True}]

        async def send(message):
            sent.append(message)

        async def receive():
            return parts.pop() if parts else await asyncio.sleep(3600)

        scope = {"type": "http", "path": "/v1/completions", "method": "POST"}
        scope["headers"] = [(b"content-type", kind.encode())]
        await Guard(app, ServeSettings(receive_seconds=0.05))(scope, receive, send)
        return sent[0]["status"]

    assert asyncio.run(main()) == 408


@pytest.mark.parametrize("kind", [httptools_protocol, h11_protocol])
def test_a_head_that_comes_letter_by_letter_is_given_up(kind):
    import threading

    import uvicorn

    from cutaway.serve import start

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    def all_of(connection) -> bytes:
        """What comes until the server closes it; a server that never does is what this test is about."""
        connection.settimeout(60)
        return b"".join(iter(lambda: connection.recv(1_000), b""))

    listener = start.bind()
    options = {"log_level": "error", "lifespan": "off", "timeout_keep_alive": 3600}
    server = uvicorn.Server(uvicorn.Config(app, http=kind(0.2), **options))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    whole = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    try:
        for sent, answers in (
            (b"", 0),
            (whole[:1], 0),
            (whole[:-2], 0),
            (whole, 1),
            (whole + whole[:-3], 1),
            (whole + whole, 2),
        ):
            with socket.create_connection(listener.getsockname()) as client:
                client.sendall(sent)
                assert all_of(client).count(b"200 OK") == answers, sent
    finally:
        server.should_exit = True
        thread.join()
