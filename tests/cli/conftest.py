"""The command line, run inside the test: `cutaway("predict", "Hello", "--model", folder, stdin=b"")`."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cutaway import cli


@dataclass(frozen=True)
class Ran:
    """What a command line left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def cutaway(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Runs a command line. `stdin` is what is piped in; without it standard input is a terminal nobody types at."""

    def run(*args: object, stdin: bytes | None = None) -> Ran:
        buffer = io.BytesIO(stdin or b"")
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=buffer, isatty=lambda: stdin is None))
        capsys.readouterr()
        code = cli.run([str(arg) for arg in args])
        return Ran(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def folder(tiny_lm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model (a vocabulary of 320, a context of 48) as a checkpoint."""
    path = tmp_path_factory.mktemp("models") / "tiny"
    tiny_lm.save(path)
    return path
