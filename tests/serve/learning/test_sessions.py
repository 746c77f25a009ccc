"""Trainings over HTTP: each in a process of its own that ends with its page, a few at a time."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")

from cutaway.errors import CutawayError
from cutaway.serve.learning.sessions import Sessions
from cutaway.serve.learning.training import Training

TEXT = "The fox saw the bird. The bird saw the fox. " * 4


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[str, Any]]:
    import uvicorn

    from cutaway.serve.app import create_app
    from cutaway.serve.explorer import Explorer
    from cutaway.serve.start import bind

    explorer, listener = Explorer(), bind()
    server = uvicorn.Server(uvicorn.Config(create_app(explorer), log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/api", explorer
    server.should_exit = True
    thread.join()
    assert not explorer.learning.open


def gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_training_answers_and_ends_when_its_page_is_gone(served):
    address, explorer = served
    literal = Training(TEXT, 2)
    literal.advance(3)
    with httpx.Client(timeout=120) as client, httpx.Client(timeout=120) as page:
        with page.stream("POST", f"{address}/learning", json={"page": "a", "text": TEXT, "seed": 2}) as life:
            lines = life.iter_lines()
            about = json.loads(next(lines))
            at = f"{address}/learning/{about['key']}"
            assert {**about, "key": ""} == {"key": "", **literal.about()}
            shown = client.post(f"{at}/show", json={"step": 3, "row": 1, "position": 2}).json()
            assert [one["loss"] for one in shown["curve"]] == [one["loss"] for one in literal.curve]
            assert shown["rows"] == literal.show(3, 1, 2)["rows"]
            far = client.post(f"{at}/show", json={"step": 90, "known": 3}).json()
            assert far["step"] == 53 and [one["step"] for one in far["curve"]] == [*range(4, 54)]  # 50 at a time
            assert client.get(f"{at}/sample", params={"step": 3}).json() == literal.sample(3)
            name = "position_embedding.weight"
            numbers = client.get(f"{at}/matrix", params={"name": name, "step": 3, "kind": "change"})
            rows, columns = (int(one) for one in numbers.headers["x-shape"].split(","))
            found = np.frombuffer(numbers.content, numbers.headers["x-type"]).reshape(rows, columns)
            assert np.array_equal(found, literal.matrix(3, name, "change"))
            cell = {"name": name, "step": 3, "row": 1, "column": 1}
            assert client.get(f"{at}/cell", params=cell).json() == literal.cell(3, name, 1, 1)
            wrong = client.get(f"{at}/cell", params={**cell, "row": 99})
            assert wrong.status_code == 422
            assert client.post(f"{at}/open", json={"step": 3}).json() == ["untrained", "learned"]
            process = explorer.learning.open[about["key"]].process.pid
        while not gone(process):  # the connection is closed: it notices by itself
            time.sleep(0.01)
        ended = client.post(f"{at}/show", json={"step": 1})
        assert ended.json()["error"]["code"] == "learn_ended"
    # Both ends of it are models now, with the weights they had.
    for model, step in (("untrained", 0), ("learned", 3)):
        explorer.models.wake(model)
        while (now := explorer.models.progress(model)).phase not in ("awake", "failed"):
            time.sleep(0.01)
        assert now.phase == "awake", now.error
        lm = explorer.models.get(model)
        weights = np.concatenate([one.detach().numpy().reshape(-1) for one in lm.model.parameters()])
        assert np.allclose(weights, literal.kept[step], atol=1e-6)
        assert model in [one["name"] for one in explorer.models.listing()]


def test_a_page_has_one_training_and_a_few_pages_have_one_each():
    sessions = Sessions(at_once=1)
    try:
        first, _ = sessions.begin("a", TEXT, 0)
        with pytest.raises(CutawayError) as busy:
            sessions.begin("b", TEXT, 0)
        assert busy.value.code == "learn_busy"
        sessions.open[first].process.kill()  # whatever ended it: it is said
        with pytest.raises(CutawayError) as killed:
            sessions.ask(first, "show", step=0, known=0)
        assert killed.value.code == "learn_ended"
        with pytest.raises(CutawayError) as short:
            sessions.begin("a", "a b", 0)  # in place of the first one
        assert short.value.code == "learn_short" and not sessions.open
        with pytest.raises(CutawayError) as ended:
            sessions.ask(first, "show", step=0, known=0)
        assert ended.value.code == "learn_ended"
    finally:
        sessions.close()
