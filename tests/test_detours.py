"""On the way to a text a model is located once, and what says its shape is read once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cutaway.runtime.native import library

COUNT = """
import json, sys
from pathlib import Path
from cutaway.checkpoint import locate as places

opened, located, find = {}, [], places.locate

def count(event, args):
    if event == "open" and isinstance(args[0], str | Path):
        name = Path(args[0]).name
        opened[name] = opened.get(name, 0) + 1

def counted(name, progress=None):
    located.append(str(name))
    return find(name, progress)

sys.addaudithook(count)
places.locate = counted
"""
COMMAND = "\nfrom cutaway.cli import run\nassert run({line!r}) == 0\nsys.stderr.write(json.dumps([opened, located]))"
PYTHON = "\nimport cutaway\ncutaway.load({line[0]!r}, engine='torch').generate('Once', 2)\n"
PYTHON += "sys.stderr.write(json.dumps([opened, located]))"


def counts(code: str, line: list[str]) -> tuple[dict[str, int], list[str]]:
    """How often each file was opened (those that are checked first, twice), and what was located."""
    ran = subprocess.run(
        [sys.executable, "-c", COUNT + code.format(line=line)],
        capture_output=True, text=True, timeout=300, env=os.environ | {"NO_COLOR": "1"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    opened, located = json.loads(ran.stderr.splitlines()[-1])
    return opened, located


@pytest.fixture(scope="module")
def folder(tiny_lm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("model") / "tiny"
    tiny_lm.save(path)
    return path


CHECKED_AND_READ = 2
ASKED = ["generate", "Once", "--max-tokens", "2", "--seed", "1", "--json"]


@pytest.mark.skipif(library.load() is None, reason="the native engine is not built here: no C++ compiler")
def test_the_built_in_model():
    opened, located = counts(COMMAND, ASKED)
    assert located == ["builtin"]
    assert opened["config.json"] == CHECKED_AND_READ
    assert opened["tokenizer.json"] == opened["model.safetensors"] == 1


@pytest.mark.parametrize("code", [COMMAND, PYTHON], ids=["command", "python"])
def test_a_folder_through_torch(folder, code):
    line = [*ASKED, "--engine", "torch", "--model", str(folder)] if code is COMMAND else [str(folder)]
    opened, located = counts(code, line)
    assert located == [str(folder)]
    assert opened["config.json"] == CHECKED_AND_READ
    assert opened["tokenizer.json"] == 1


@pytest.mark.skipif(library.load() is None, reason="the native engine is not built here: no C++ compiler")
def test_a_packed_file(tiny_lm, tmp_path):
    from cutaway.runtime.native.pack import pack
    from cutaway.runtime.native.packed_file import write_packed

    file = tmp_path / "tiny.cutaway"
    write_packed(pack(tiny_lm.model, "int8"), tiny_lm.tokenizer, file)
    opened, located = counts(COMMAND, [*ASKED, "--model", str(file)])
    assert located == [str(file)]
    assert opened["tiny.cutaway"] == 3  # the header; the weights and the tokens, mapped into memory
    assert "config.json" not in opened
