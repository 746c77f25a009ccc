"""A packed file is run without torch, and begins without whatever else is slow to start."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cutaway.runtime.native import library
from cutaway.runtime.native import packed_file as stored
from cutaway.runtime.native.pack import pack

if library.load() is None:
    pytest.skip("the native engine is not built here: no C++ compiler", allow_module_level=True)

SLOW = {"torch", "tiktoken", "tokenizers", "typer", "pydantic", "http", "ssl"}


@pytest.fixture(scope="module")
def file(tiny_lm, tmp_path_factory):
    path = tmp_path_factory.mktemp("without") / "tiny.cutaway"
    stored.write(pack(tiny_lm.model, "int8"), tiny_lm.tokenizer, path)
    return path


def python(code: str) -> str:
    code = f"{code}\nimport sys\nassert not {SLOW!r} & set(sys.modules), {SLOW!r} & set(sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize(
    "call",
    [
        "lm.generate('Once', 5)",
        "lm.generate('Once', 5, top_k=1)",
        "lm.generate(['Once', 'Upon a'], 5, samples=2, top_p=0.9, min_p=0.01, repetition_penalty=1.2, stop=['q'])",
        "lm.generate('Once', 60, overflow='slide')",
        "lm.generate('Once', 5, beams=3)",
        "list(lm.stream('Once', 5))",
        "lm.predict('Once')",
    ],
)
def test_a_packed_file_writes_without_torch(file, call):
    python(f"import cutaway\nlm = cutaway.load({str(file)!r})\n{call}")


@pytest.mark.parametrize(
    "line",
    [
        ["generate", "Once upon a time", "--max-tokens", "3"],
        ["generate", "Once upon a time", "--max-tokens", "3", "--greedy", "--json"],
        ["generate", "Once", "-n", "3", "--samples", "2"],
        ["predict", "Once upon", "-k", "3"],
    ],
)
def test_the_command_line_does_too(file, line):
    said = python(f"from cutaway.cli import run\nassert run({[*line, '--model', str(file)]!r}) == 0")
    assert said.strip()


def test_what_needs_torch_still_has_it(file, tiny_lm):
    code = (
        f"import cutaway\nlm = cutaway.load({str(file)!r})\nprint(lm.trace('Once', keep='logits')['logits'].shape[-1])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ran.stdout.strip() == str(tiny_lm.config.vocabulary), ran.stderr
