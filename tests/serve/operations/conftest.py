"""A server with keys, as it is when it listens on more than this machine; asked without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("sqlalchemy", reason="the extra `serve` is not installed")

from fastapi.testclient import TestClient

from cutaway.serve.server import create_server
from cutaway.serve.settings import ServeSettings
from cutaway.serve.store import open_database
from cutaway.serve.store.keys import Keys
from cutaway.serve.teaching.runner import Runner


@pytest.fixture(scope="session")
def model(tmp_path_factory, tiny_lm) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    tiny_lm.save(folder)
    return folder


@pytest.fixture
def settings(model, tmp_path, monkeypatch) -> ServeSettings:
    monkeypatch.setattr(Runner, "start", lambda self: None)
    return ServeSettings(models=(str(model),), state=str(tmp_path / "state"), log="off")


@pytest.fixture
def serve(settings) -> Iterator[Callable[..., TestClient]]:
    """A function: settings that differ -> a client of a server with them."""
    with ExitStack() as stack:

        def make(base: str = "http://127.0.0.1:8000", **changes: Any) -> TestClient:
            app = create_server(replace(settings, **changes))
            return stack.enter_context(TestClient(app, base_url=base, raise_server_exceptions=False))

        yield make


@pytest.fixture
def keys(settings) -> Iterator[Keys]:
    database = open_database(settings)
    yield Keys(database)
    database.close()
