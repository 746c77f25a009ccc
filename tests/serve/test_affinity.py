"""Requests go where their beginning has been read: which replica that is, and the front that asks it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as some

from cutaway.serve.cluster.affinity import Affinity, beginning
from cutaway.serve.cluster.front import Behind, Front, create_front
from cutaway.serve.settings import ServeSettings
from cutaway.serve.store import open_database
from cutaway.serve.store.keys import Keys


def body(**asked: Any) -> bytes:
    return json.dumps(asked).encode()


@given(some.text(max_size=400), some.text(max_size=400), some.text(max_size=400))
def test_two_prompts_have_as_many_blocks_alike_as_they_begin_alike(shared, one, other):
    first, second = beginning(body(prompt=shared + one)), beginning(body(prompt=shared + other))
    assert len(first) == len(shared + one) // 64
    alike = sum(a == b for a, b in zip(first, second, strict=False))
    assert first[:alike] == second[:alike] and alike >= len(shared) // 64
    whole = next((n for n, (a, b) in enumerate(zip(shared + one, shared + other, strict=False)) if a != b), None)
    assert whole is None or alike == whole // 64


def test_every_kind_of_prompt_has_a_beginning_and_other_models_another():
    ids, text = list(range(40)), "x" * 100
    assert len(beginning(body(prompt=ids))) == 2 and beginning(body(prompt=[ids])) == beginning(body(prompt=ids))
    assert len(beginning(body(prompt=[text, "other"]))) == 1 and len(beginning(body(input=text))) == 1
    said = [{"role": "system", "content": text}, {"role": "user", "content": "Hi"}]
    assert beginning(body(messages=said)) and beginning(body(messages=said[:1])) == beginning(body(messages=said))
    assert beginning(body(prompt=text)) != beginning(body(prompt=text, model="other"))
    for nothing in (b"", b"{", b"[1]", b"[" * 100_000, b"\xff", body(prompt=3), body(prompt={}), body(prompt=[])):
        assert beginning(nothing) == []


def test_the_replica_that_has_read_most_is_chosen_unless_it_is_much_busier():
    known, blocks = Affinity(), beginning(body(prompt="a" * 640))
    assert len(blocks) == 10
    known.note(blocks[:3], "one")
    known.note(blocks[:7], "two")
    assert known.choose(blocks, {"one": 0, "two": 4, "three": 0}, spare=4) == ["two", "one", "three"]
    assert known.choose(blocks, {"one": 0, "two": 5, "three": 0}, spare=4) == ["one", "three", "two"]
    assert known.choose(blocks[:2], {"one": 1, "two": 0, "three": 0}, spare=4)[0] == "two"  # as much, less busy
    assert known.choose([], {"one": 0, "two": 0, "three": 0}, spare=4)[0] == "three"  # has read least
    known.keep({"one", "three"})
    assert known.choose(blocks, {"one": 3, "three": 0}, spare=4)[0] == "one" and known.matched(blocks, "two") == 0


def test_what_was_not_seen_for_longest_is_forgotten():
    known = Affinity(most=2)
    known.note([b"a"], "one")
    known.note([b"b"], "one")
    known.note([b"a"], "two")
    known.note([b"c"], "one")
    assert set(known.readers) == {b"a", b"c"} and known.held == {"one": 2, "two": 1}


class Handle:
    """Stands for Ray's: hands requests to one replica in this process."""

    def __init__(self, replica: Any):
        self.replica, self.asked = replica, []

    def options(self, stream: bool, method_name: str) -> Handle:
        assert stream and method_name == "answer"
        return self

    def remote(self, *args: Any) -> Answer:
        self.asked.append(args)
        return Answer(self.replica.answer(*args))


class Answer:
    """The messages of a replica that runs by itself."""

    def __init__(self, messages: AsyncIterator[Any]):
        self.queue: asyncio.Queue[Any] = asyncio.Queue()
        self.task = asyncio.ensure_future(self.run(messages))

    async def run(self, messages: AsyncIterator[Any]) -> None:
        end: Any = StopAsyncIteration()
        try:
            async for message in messages:
                self.queue.put_nowait(message)
        except (Exception, asyncio.CancelledError) as error:
            end = error if isinstance(error, Exception) else RuntimeError("cancelled")
        self.queue.put_nowait(end)

    def __aiter__(self) -> Answer:
        return self

    async def __anext__(self) -> Any:
        found = await self.queue.get()
        if isinstance(found, Exception):
            raise found
        return found

    def cancel(self) -> None:
        self.task.cancel()


@pytest.fixture
def settings(tiny_lm, tmp_path) -> ServeSettings:
    tiny_lm.save(tmp_path / "tiny")
    return ServeSettings(models=(str(tmp_path / "tiny"),), state=str(tmp_path / "state"), log="off", body=10_000)


def test_through_the_front_everything_is_as_it_is_without_it(settings):
    async def ask() -> None:
        replica = Behind(settings)
        handle = Handle(replica)
        front = Front(handle, settings)
        client = httpx.AsyncClient(transport=httpx.ASGITransport(front), base_url="http://127.0.0.1")
        asked = {"prompt": "A robot must obey the orders " * 3, "max_tokens": 5, "temperature": 0}
        answer = await client.post("/v1/completions", json=asked)
        straight = httpx.AsyncClient(transport=httpx.ASGITransport(replica.app), base_url="http://127.0.0.1")
        alone = await straight.post("/v1/completions", json=asked)
        assert answer.status_code == 200 and answer.json()["choices"] == alone.json()["choices"]
        assert answer.headers["x-replica"] == replica.name and answer.headers["x-request-id"]
        assert handle.asked[0][2] == beginning(json.dumps(asked).encode()) != []
        text = (await client.post("/v1/completions", json=asked | {"stream": True})).text
        assert text.rstrip().endswith("data: [DONE]")
        for path, sent in (("/ready", None), ("/v1/models", None), ("/v1/none", None), ("/v1/completions", b"{")):
            mine = await client.request("POST" if sent else "GET", path, content=sent)
            theirs = await straight.request("POST" if sent else "GET", path, content=sent)
            assert (mine.status_code, len(mine.content)) == (theirs.status_code, len(theirs.content)), path
        file = {"file": ("x.jsonl", b'{"text": "kept"}\n')}
        kept = (await client.post("/v1/files", files=file, data={"purpose": "fine-tune"})).json()
        assert (await client.get(f"/v1/files/{kept['id']}/content")).content == b'{"text": "kept"}\n'
        before = len(handle.asked)
        assert (await client.post("/v1/completions", content=b"x" * 10_001)).status_code == 413
        assert len(handle.asked) == before  # it went no further
        await replica.end()

    asyncio.run(ask())


def test_the_front_hands_on_nothing_of_one_who_has_no_key(settings):
    database = open_database(settings)
    _, secret = Keys(database).add("me", ["use"])
    database.close()

    async def ask() -> None:
        keyed = replace(settings, require_keys=True)
        replica = Behind(keyed)
        handle = Handle(replica)
        transport = httpx.ASGITransport(create_front(handle, keyed))
        client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")
        asked = {"prompt": "A", "max_tokens": 1}
        for shown in ({}, {"Authorization": "Bearer sk-cutaway-none"}):
            assert (await client.post("/v1/completions", json=asked, headers=shown)).status_code == 401
        assert not handle.asked
        shown = {"Authorization": f"Bearer {secret}"}
        assert (await client.post("/v1/completions", json=asked, headers=shown)).status_code == 200
        assert (await client.get("/v1/files", headers=shown)).status_code == 403
        await replica.end()

    asyncio.run(ask())


def test_one_who_goes_away_frees_the_place_behind_the_front(settings, monkeypatch):
    from cutaway.serve.writer import Writer

    left, cancel, step = threading.Event(), Writer.cancel, Writer.step
    monkeypatch.setattr(Writer, "cancel", lambda self, job: (cancel(self, job), left.set()))
    steps = []

    def slowly(self: Writer, scheduler: Any) -> None:
        steps.append(scheduler)
        assert len(steps) < 3 or left.wait(120)  # no text ends before somebody has gone away
        step(self, scheduler)

    monkeypatch.setattr(Writer, "step", slowly)

    async def ask() -> None:
        replica = Behind(settings)
        await replica.begin()
        first = asyncio.Event()
        sent = body(prompt="A", max_tokens=40, n=4, stream=True, logit_bias={"319": -100})
        messages = [{"type": "http.request", "body": sent, "more_body": False}]

        async def receive() -> Any:
            if messages:
                return messages.pop()
            await first.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message.get("body"):
                first.set()

        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
            "path": "/v1/completions", "raw_path": b"/v1/completions", "query_string": b"", "root_path": "",
            "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")],
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
        }  # fmt: skip
        await Front(Handle(replica), settings)(scope, receive, send)
        [model] = replica.app.state.pool.awake.values()
        while model.writer.pending or model.users:
            await asyncio.sleep(0.01)
        assert left.is_set()
        await replica.end()

    asyncio.run(ask())


def test_a_replica_that_has_died_is_said_so_and_asked_again_by_the_client(settings):
    class Dead:
        async def answer(self, *_: Any) -> AsyncIterator[Any]:
            raise ConnectionError("gone")
            yield

    class Dying:
        async def answer(self, *_: Any) -> AsyncIterator[Any]:
            yield {"type": "http.response.start", "status": 200, "headers": []}
            yield {"type": "http.response.body", "body": b"data: ", "more_body": True}
            raise ConnectionError("gone")

    async def ask() -> None:
        dead, dying = (
            httpx.AsyncClient(transport=httpx.ASGITransport(Front(Handle(one), settings)), base_url="http://127.0.0.1")
            for one in (Dead(), Dying())
        )
        answer = await dead.post("/v1/completions", json={"prompt": "A"})
        assert answer.status_code == 503 and answer.headers["retry-after"]
        assert "Try again" in answer.json()["error"]["message"]
        with pytest.raises(ConnectionError):  # what was begun breaks off
            await dying.post("/v1/completions", json={"prompt": "A"})

    asyncio.run(ask())
