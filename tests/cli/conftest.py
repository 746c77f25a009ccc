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


@pytest.fixture(scope="session")
def trained(tiny_lm, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Any], Path]:
    """A function: a task -> the folder of a model for it, small and with random weights, context 48."""
    import torch

    from cutaway.language_model import LanguageModel
    from cutaway.models.gpt2.model import GPT
    from cutaway.models.gpt2.shape import Config
    from cutaway.tasks import save_task
    from cutaway.tasks.head import Classifier, write_classifier

    def make(task: Any) -> Path:
        path = tmp_path_factory.mktemp("trained") / task.name
        tokenizer = tiny_lm.tokenizer.with_specials(list(task.specials))
        torch.manual_seed(5)
        gpt = GPT(Config(len(tokenizer), context=48, width=32, layers=2, heads=2, end_token=tokenizer.end))
        with torch.no_grad():
            gpt.token_embedding.weight.mul_(20)  # so that answers differ from text to text
        if task.outputs:
            classifier = Classifier(gpt, task.outputs)
            torch.nn.init.normal_(classifier.score.weight)
            write_classifier(classifier, tokenizer, task, path)
        else:
            LanguageModel(gpt, tokenizer).save(path)
            save_task(task, path)
        return path

    return make
