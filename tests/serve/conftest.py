"""The explorer's server on the tiny model (a vocabulary of 320, a context of 48), asked without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")

from fastapi.testclient import TestClient

from cutaway.serve.app import create_app
from cutaway.serve.explorer import Explorer


@pytest.fixture
def explorer(tiny_lm) -> Iterator[Explorer]:
    explorer = Explorer()
    explorer.models.add(tiny_lm)
    yield explorer
    explorer.close()


@pytest.fixture
def client(explorer: Explorer) -> TestClient:
    return TestClient(create_app(explorer), base_url="http://127.0.0.1:8000", raise_server_exceptions=False)


@pytest.fixture
def trace(client: TestClient) -> Callable[..., dict[str, Any]]:
    """A function: a text -> what POST /api/traces says of it."""

    def ask(text: str, **more: Any) -> dict[str, Any]:
        answer = client.post("/api/traces", json={"model": "tiny", "text": text, **more})
        assert answer.status_code == 200, answer.text
        return answer.json()

    return ask
