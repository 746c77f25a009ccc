"""A real server on real sockets, in a thread, with small random models; and one that asks it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")

import httpx
import uvicorn

from cutaway.serve import start
from cutaway.serve.server import create_server
from cutaway.serve.settings import ServeSettings


class Running:
    """A server that answers at `url` until it is closed."""

    def __init__(self, settings: ServeSettings):
        self.app = create_server(settings)
        self.listener = start.bind()
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.server = uvicorn.Server(uvicorn.Config(self.app, log_level="warning", timeout_graceful_shutdown=5))
        self.thread = threading.Thread(target=self.server.run, args=([self.listener],))
        self.thread.start()
        self.http = httpx.Client(base_url=self.url, timeout=120, transport=httpx.HTTPTransport(retries=20))
        self.http.get("/api/health").raise_for_status()

    @property
    def pool(self) -> Any:
        return self.app.state.pool

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self.http.post(path, json=body)

    def complete(self, prompt: Any, **body: Any) -> dict[str, Any]:
        answer = self.post("/v1/completions", prompt=prompt, **body)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def texts(self, prompt: Any, **body: Any) -> list[str]:
        return [one["text"] for one in self.complete(prompt, **body)["choices"]]

    def close(self) -> None:
        self.http.close()
        self.server.should_exit = True
        self.thread.join()


@pytest.fixture(scope="session")
def served_lm(tiny_lm) -> Any:
    """Random weights, the tiny vocabulary, 256 positions."""
    import torch

    from cutaway.language_model import LanguageModel
    from cutaway.models.gpt2.model import GPT

    torch.manual_seed(5)
    model = GPT(replace(tiny_lm.config, context=256))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    return LanguageModel(model, tiny_lm.tokenizer, "small")


@pytest.fixture(scope="session")
def folder(served_lm, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("served") / "small"
    served_lm.save(path)
    return path


@pytest.fixture(scope="session")
def running() -> Iterator[Callable[..., Running]]:
    """A function: settings -> a server, closed at the end of the session."""
    open_ones: list[Running] = []

    def begin(*models: Path | str, **settings: Any) -> Running:
        open_ones.append(Running(ServeSettings(models=tuple(map(str, models)), port=0, log="off", **settings)))
        return open_ones[-1]

    yield begin
    for one in open_ones:
        one.close()


@pytest.fixture(scope="session")
def server(running, folder) -> Running:
    return running(folder)


@pytest.fixture(scope="session")
def alone(folder) -> Callable[..., Any]:
    """A function: a prompt and settings -> what the model writes of it with nobody beside it."""
    import cutaway

    lm = cutaway.load(folder)

    def write(prompt: Any, **settings: Any) -> Any:
        return lm.generate(prompt, **{"top_k": None, **settings})

    return write
