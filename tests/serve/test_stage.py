"""Presenting: the remote is heard by the page on the wall, needs its token, and opens nothing else to the network."""

from __future__ import annotations

import asyncio
import json

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")

from fastapi.testclient import TestClient

from cutaway.serve.app import create_app
from cutaway.serve.explorer import Explorer
from cutaway.serve.stage import LISTENERS, STAGES, Channel, Presenting

DOOR = 9_431


@pytest.fixture
def presenting():
    return Presenting(DOOR, f"http://192.168.0.9:{DOOR}/")


@pytest.fixture
def ask(presenting):
    explorer = Explorer()
    app = create_app(explorer, parts=[presenting])

    def ask(port: int = 8000, host: str = "127.0.0.1") -> TestClient:
        return TestClient(app, base_url=f"http://{host}:{port}")

    yield ask
    explorer.close()


def test_what_is_said_is_heard_by_all_and_the_last_of_it_by_those_who_come_later():
    async def scene() -> list[str]:
        channel = Channel(repeat=True)
        first = channel.heard()
        assert (await anext(first)).startswith(":")
        channel.say({"at": 1})
        later = channel.heard()
        await anext(later)
        heard = [await anext(first), await anext(later)]
        await first.aclose()
        assert len(channel.listeners) == 1
        orders = Channel()
        orders.say({"do": "next"})  # said to nobody: an order is not kept for later
        listener = orders.heard()
        await anext(listener)
        orders.say({"do": "back"})
        return [*heard, await anext(listener)]

    assert [json.loads(one.removeprefix("data: ")) for one in asyncio.run(scene())] == [
        {"at": 1},
        {"at": 1},
        {"do": "back"},
    ]


def test_only_so_many_listen_and_are_under_way(ask, presenting):
    async def scene() -> int:
        channel = Channel()
        streams = [channel.heard() for _ in range(LISTENERS + 3)]
        for one in streams:
            await anext(one)
        return len(channel.listeners)

    assert asyncio.run(scene()) == LISTENERS
    tokens = [ask().post("/api/stage").json()["token"] for _ in range(STAGES + 1)]
    assert len(set(tokens)) == STAGES + 1 and min(map(len, tokens)) >= 32  # nobody guesses it
    assert ask().post(f"/api/remote/{tokens[0]}", json={"do": "next"}).status_code == 422  # the oldest is over
    assert ask().post(f"/api/remote/{tokens[-1]}", json={"do": "next"}).status_code == 204


def test_orders_need_the_token_and_are_three(ask, presenting):
    begun = ask().post("/api/stage").json()
    assert begun["address"] == presenting.address
    remote = f"/api/remote/{begun['token']}"
    assert ask().post(remote, json={"do": "erase"}).status_code == 422
    for path in ("/api/remote/wrong", "/api/stage/wrong", "/api/stage/wrong/orders"):
        answer = ask().post(path, json={"do": "next"}) if "orders" not in path else ask().get(path)
        assert answer.status_code == 422 and answer.json()["error"]["code"] == "no_stage", path
    assert ask().post(f"/api/stage/{begun['token']}", json={"title": "T", "at": 1, "all": 3}).status_code == 204
    assert presenting.find(begun["token"]).shown.last["title"] == "T"


def test_the_door_to_the_network_opens_the_remote_and_nothing_else(ask):
    token = ask().post("/api/stage").json()["token"]
    phone = ask(DOOR, "192.168.0.9")
    assert phone.post(f"/api/remote/{token}", json={"do": "next"}).status_code == 204
    assert phone.get("/").status_code == 200 and '<div id="app">' in phone.get("/").text
    assert (
        phone.post(f"/api/remote/{token}", json={"do": "next"}, headers={"Origin": "http://evil.example"}).status_code
        == 403
    )
    for method, path in (
        ("GET", "/api/models"), ("POST", "/api/traces"), ("POST", "/api/stage"), ("GET", f"/api/stage/{token}/orders"),
        ("GET", "/openapi.json"), ("GET", "/api/tour"), ("GET", "/digest.json"), ("POST", "/"), ("GET", "/v1/models"),
    ):  # fmt: skip
        assert phone.request(method, path).status_code == 403, path
    assert phone.get("/api/remote/../models").status_code in (403, 404)
    assert ask(8000, "192.168.0.9").get("/api/models").status_code == 403  # elsewhere, all is as without a door
    assert ask().get("/api/models").status_code == 200


def test_without_presenting_there_is_no_stage(explorer):
    client = TestClient(create_app(explorer), base_url="http://127.0.0.1:8000")
    assert client.post("/api/stage").status_code in (404, 405)
    assert client.get("/api/tour").json() == {"tour": None, "remote": False}
