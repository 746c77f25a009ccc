"""A server with a folder of its own and a model that learns in a blink, asked without a network; or as a process."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("sqlalchemy", reason="the extra `serve` is not installed")

from fastapi.testclient import TestClient

from cutaway.language_model import LanguageModel
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.serve.server import create_server
from cutaway.serve.settings import ServeSettings

RECORDS = [
    {"prompt": f"The {who} likes", "completion": f" the {what}."}
    for who in ("fox", "dog", "owl", "bear")
    for what in ("sun", "sea")
]


def lines(records: list[Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


@pytest.fixture(scope="session")
def learner(tmp_path_factory, tiny_lm) -> Path:
    """A folder with a very small model."""
    import torch

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("models") / "learner"
    shape = Config(vocabulary=len(tiny_lm.tokenizer), context=256, width=16, layers=1, heads=2)
    LanguageModel(GPT(shape), tiny_lm.tokenizer, "learner").save(folder)
    return folder


@pytest.fixture
def settings(learner, tmp_path) -> ServeSettings:
    return ServeSettings(models=(str(learner),), state=str(tmp_path / "state"), log="off")


@pytest.fixture
def client(settings) -> Iterator[TestClient]:
    """The server, as long as the test lasts."""
    app = create_server(settings)
    with TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def still(monkeypatch) -> None:
    """Nobody works on the jobs."""
    from cutaway.serve.teaching.runner import Runner

    monkeypatch.setattr(Runner, "start", lambda self: None)


class Served:
    """A server in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], address: str):
        self.process, self.address = process, address

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait()


@pytest.fixture
def serving(learner, tmp_path) -> Callable[..., Any]:
    """A function: starts `cutaway serve` on a free port, and ends it with the block."""

    @contextmanager
    def start(*args: str, before: Sequence[str] = (), **environment: str) -> Iterator[Served]:
        command = [*before, sys.executable, "-m", "cutaway", "serve", str(learner), "--port", "0", *args]
        given = {"CUTAWAY_SERVE_STATE": str(tmp_path / "state"), "COLUMNS": "1000", "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=(tmp_path / "log").open("a"), text=True,
            env={**os.environ, **given, **environment},
        )  # fmt: skip
        try:
            assert process.stdout is not None
            told = ""
            for line in process.stdout:
                told += line
                if found := re.search(r"API at (http://\S+)/v1", line):
                    break
            else:
                raise AssertionError(f"it did not begin: {told} {(tmp_path / 'log').read_text()}")
            yield Served(process, found[1])
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()

    return start


def until(done: Callable[[], Any]) -> Any:
    """What `done` says as soon as it says something; a test that hangs is ended by whoever runs the tests."""
    import time

    while not (said := done()):
        time.sleep(0.05)
    return said
