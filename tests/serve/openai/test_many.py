"""Many at once: whoever asks gets what they would get alone, and nobody is kept waiting by another."""

from __future__ import annotations

import json
import random
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

START = "Once upon a time there was a little fox who wanted to see"


def some_request(number: int) -> dict:
    chance = random.Random(number)
    prompt = START[: chance.randrange(1, len(START))] + chance.choice(["", " the hill", " a robot must obey"] * 2)
    return {
        "prompt": prompt * chance.choice([1, 1, 3]),
        "max_tokens": chance.randrange(1, 30),
        "seed": number,
        "temperature": chance.choice([0, 0.7, 1.0]),
    }


def waits(server, condition) -> None:
    """Until a condition of the server's holds."""
    done = threading.Event()
    while not condition():
        done.wait(0.01)


def writer(server):
    return next(iter(server.pool.awake.values())).writer


def test_requests_side_by_side_get_what_each_gets_alone(running, folder, alone):
    server = running(folder, rows=6, piece=16, turn=5, queue=400)
    asked = [some_request(number) for number in range(60)]

    def ask(body: dict) -> str:
        with httpx.Client(base_url=server.url, timeout=120) as client:
            if body["seed"] % 2:
                answer = client.post("/v1/completions", json={**body, "stream": True})
                parts = [part.removeprefix("data: ") for part in answer.text.split("\n\n") if part]
                return "".join(json.loads(part)["choices"][0]["text"] for part in parts[:-1])
            return client.post("/v1/completions", json=body).json()["choices"][0]["text"]

    with ThreadPoolExecutor(16) as threads:
        texts = list(threads.map(ask, asked))
    assert texts == [alone(**body).text for body in asked]
    assert writer(server).pending == 0


def test_beyond_the_queue_the_answer_is_429_and_says_when_to_come_again(running, folder):
    server = running(folder, rows=1, queue=1)
    server.complete("A", max_tokens=1)
    one = writer(server)
    with one.condition:
        one.pending += 2  # as if one were being written, and one waited
    refused = server.post("/v1/completions", prompt="A", max_tokens=1)
    assert refused.status_code == 429 and int(refused.headers["Retry-After"]) >= 1
    assert refused.json()["error"]["code"] == "queue_full"
    with one.condition:
        one.pending -= 2
    assert server.texts("A", max_tokens=1)
    assert server.post("/v1/completions", prompt=["A"] * 3, max_tokens=1).status_code == 400  # never fits


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_goes_away_frees_its_place(server, stream):
    server.complete("A", max_tokens=1)
    body = json.dumps(
        {"prompt": START, "max_tokens": 100_000, "n": 8, "stream": stream, "logit_bias": {"319": -100}}
    ).encode()
    waits(server, lambda: writer(server).pending == 0)
    before = writer(server).written
    host, port = server.listener.getsockname()
    with socket.create_connection((host, port)) as connection:
        head = f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        waits(server, lambda: writer(server).written > before + 8)
    waits(server, lambda: writer(server).pending == 0)
    assert not writer(server).owner and not writer(server).main.running
    assert writer(server).written - before < 8 * 230  # they were not written to the end of the context


def test_one_who_reads_nothing_keeps_nobody_waiting(server):
    body = json.dumps({"prompt": START, "max_tokens": 200, "n": 16, "stream": True, "logprobs": 20}).encode()
    host, port = server.listener.getsockname()
    with socket.create_connection((host, port)) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        head = f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert len(server.texts("The fox", max_tokens=5)) == 1
        waits(server, lambda: writer(server).pending == 0)  # its own texts end, too, read or not


def test_explanations_keep_no_completion_waiting_and_too_many_are_told_to_come_again(running, folder, monkeypatch):
    from cutaway.serve.openai.explain import Explainer

    go_on, begun, run = threading.Event(), threading.Event(), Explainer.run

    def slowly(self, work):
        return run(self, lambda: (begun.set(), go_on.wait(), work())[-1])

    monkeypatch.setattr(Explainer, "run", slowly)
    server = running(folder, explanations=1)
    with ThreadPoolExecutor(1) as thread:
        explained = thread.submit(server.post, "/v1/explanations/lens", input="A fox", position=-1)
        begun.wait()
        assert len(server.texts("A fox", max_tokens=20)) == 1  # while it is being explained
        refused = server.post("/v1/explanations/lens", input="A fox", position=-1)
        assert refused.status_code == 429 and int(refused.headers["Retry-After"]) >= 1
        go_on.set()
        assert explained.result().status_code == 200 and "layers" in explained.result().json()


def test_what_goes_wrong_in_one_text_ends_no_other(server, monkeypatch):
    from cutaway.runtime.native.batch import NativeBatch
    from cutaway.runtime.torch_batch import TorchBatch

    server.complete("A", max_tokens=1)
    kind = type(writer(server).main.batch)
    assert kind in (NativeBatch, TorchBatch)
    whole = kind.step

    def fails(self, tokens):
        monkeypatch.setattr(kind, "step", whole)
        raise MemoryError("no more")

    monkeypatch.setattr(kind, "step", fails)
    answer = server.post("/v1/completions", prompt=START, max_tokens=4)
    assert answer.status_code == 503 and "memory" in answer.json()["error"]["message"]
    assert server.texts(START, max_tokens=4, temperature=0)
    assert writer(server).pending == 0


def test_models_are_loaded_on_demand_and_the_one_used_longest_ago_sleeps(running, folder, served_lm, tmp_path):
    other, third = tmp_path / "other", tmp_path / "third"
    served_lm.save(other)
    served_lm.save(third)
    size = 4 * sum(one.numel() for one in served_lm.model.parameters())
    server = running(folder, other, third, memory=int(2.5 * size))
    names = [one["id"] for one in server.http.get("/v1/models").json()["data"]]
    assert names == ["small", "other", "third"] and not server.pool.awake
    for name in ("small", "other", "small", "third"):
        assert server.complete("A", model=name, max_tokens=1)["model"] == name
    assert set(server.pool.awake) == {"small", "third"}
    assert server.complete("A", max_tokens=1)["model"] == "small"  # who names none gets the first
    assert server.http.get("/v1/models/third").json()["loaded"] is True


def test_a_model_that_cannot_be_loaded_is_refused_and_the_others_answer(running, folder, served_lm, tmp_path):
    broken = tmp_path / "broken"
    served_lm.save(broken)
    server = running(folder, broken)
    (broken / "model.safetensors").write_bytes(b"nothing")
    for _ in range(2):
        answer = server.post("/v1/completions", prompt="A", model="broken")
        assert answer.status_code == 503 and answer.json()["error"]["code"] == "model_not_loaded"
    assert server.texts("A", model="small", max_tokens=1)
    served_lm.save(broken)
    assert len(server.texts("A", model="broken", max_tokens=1)) == 1


def test_a_shared_beginning_is_read_once(running, folder):
    server = running(folder, rows=4)
    long = list(range(5, 105))
    server.complete([*long, 200], max_tokens=1)
    if not hasattr(writer(server).main.batch, "prefixes"):
        pytest.skip("the native engine is not built here: no C++ compiler")
    before = writer(server).figures()["prefix_tokens"]
    server.complete([*long, 201], max_tokens=1)
    assert writer(server).figures()["prefix_tokens"] - before == 100
