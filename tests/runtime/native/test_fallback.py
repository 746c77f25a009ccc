"""Where nothing was compiled: torch does the work, and what only the kernels can do is refused in plain words."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

import cutaway
from cutaway.errors import CutawayError
from cutaway.runtime.native import library

ROOT = Path(__file__).parents[3]
KERNELS = "src/cutaway/runtime/native/kernels"


@pytest.fixture
def nothing_compiled(monkeypatch):
    library.load.cache_clear()
    monkeypatch.setattr(library, "find_library", lambda: None)
    yield
    library.load.cache_clear()


def test_texts_are_the_same_with_the_kernels_and_without(nothing_compiled, monkeypatch):
    """To the bit where torch writes; the kernels, which write by themselves where they are, round differently."""
    without = cutaway.load().generate("Once upon a time", 12, seed=1)
    monkeypatch.undo()
    library.load.cache_clear()
    assert cutaway.load(engine="torch").generate("Once upon a time", 12, seed=1) == without
    by_kernels = cutaway.load().generate("Once upon a time", 12, seed=1)
    assert by_kernels.logprobs == pytest.approx(without.logprobs, abs=1e-5)
    assert replace(by_kernels, logprobs=without.logprobs) == without


@pytest.mark.parametrize("asked", [{"weights": "int8"}, {"engine": "native"}, {"engine": "auto", "weights": "float32"}])
def test_what_needs_the_kernels_says_how_to_get_them(nothing_compiled, asked):
    with pytest.raises(CutawayError, match=r"not built here.*compiler.*install Cutaway again"):
        cutaway.load(**asked)


def test_a_file_of_another_version_counts_as_none(nothing_compiled, monkeypatch, tmp_path):
    (tmp_path / "kernels.so").write_bytes(b"not a library")
    monkeypatch.setattr(library, "find_library", lambda: tmp_path / "kernels.so")
    assert library.load() is None


def test_without_a_compiler_the_installation_goes_on_and_says_so_once(tmp_path):
    if find_spec("setuptools") is None:
        pytest.skip("there is no setuptools here to build with")
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / KERNELS, tmp_path / KERNELS)
    ran = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=tmp_path, capture_output=True, text=True,
        env=os.environ | {"CC": "/bin/false", "CXX": "/bin/false"}, timeout=120, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count("the native engine was not built") == 1
    assert not list(tmp_path.rglob("*.so"))
