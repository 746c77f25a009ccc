"""A packed file is run without torch, and begins without whatever else is slow to start."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

import cutaway
from cutaway import checkpoint, loading
from cutaway.cli.screen import FORCED
from cutaway.runtime.native import library
from cutaway.runtime.native import packed_file as stored
from cutaway.runtime.native.pack import pack

if library.load() is None:
    pytest.skip("the native engine is not built here: no C++ compiler", allow_module_level=True)

SLOW = {"torch", "tiktoken", "tokenizers", "typer", "pydantic", "http", "ssl"}


@pytest.fixture(scope="module")
def file(tiny_lm, tmp_path_factory):
    path = tmp_path_factory.mktemp("without") / "tiny.cutaway"
    stored.write_packed(pack(tiny_lm.model, "int8"), tiny_lm.tokenizer, path)
    return path


@pytest.fixture(scope="module")
def folder(tiny_lm, tmp_path_factory):
    """What the package ships is such a folder, too."""
    path = tmp_path_factory.mktemp("without") / "tiny"
    tiny_lm.save(path)
    return path


def python(code: str, *also: str) -> str:
    slow = SLOW - set(also)
    code = f"{code}\nimport sys\nassert not {slow!r} & set(sys.modules), {slow!r} & set(sys.modules)"
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


@pytest.mark.parametrize("call", ["lm.generate('Once', 5)", "lm.generate('Once', 5, beams=2)", "lm.predict('Once')"])
@pytest.mark.parametrize("name", ["folder", "builtin"])
def test_a_plain_folder_writes_without_torch(folder, name, call):
    python(
        f"import cutaway\nlm = cutaway.load({str(folder) if name == 'folder' else name!r})\n{call}",
        "tiktoken",
        "http",
        "ssl",
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_it_is_the_model_that_torch_reads(tiny_lm, tmp_path, dtype):
    checkpoint.write_model(tiny_lm.model, tiny_lm.tokenizer, tmp_path / "stored", dtype)
    quick, slow = cutaway.load(tmp_path / "stored"), cutaway.load(tmp_path / "stored", engine="torch")
    assert quick._model is None and quick._engine is not None
    assert all(torch.equal(a, b) for a, b in zip(quick.model.parameters(), slow.model.parameters(), strict=True))
    packed = pack(slow.model, "float32")
    assert quick._engine.packed.memory.tobytes() == packed.memory.tobytes()
    assert (
        quick.generate("Once", 8, seed=1).ids
        == cutaway.load(tmp_path / "stored", weights="float32").generate("Once", 8, seed=1).ids
    )


def spoiled(path, tmp_path, spoil):
    """The folder again, with another file of weights."""
    shutil.copytree(path, tmp_path / "spoiled")
    weights = load_file(path / "model.safetensors")
    spoil(weights)
    save_file(weights, tmp_path / "spoiled" / "model.safetensors")
    return tmp_path / "spoiled"


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda weights: weights.pop("transformer.ln_f.bias"), "lacks ln_f.bias"),
        (lambda weights: weights["transformer.ln_f.bias"].fill_(math.nan), "NaN or infinite"),
        (lambda weights: weights["transformer.ln_f.bias"].fill_(math.inf), "NaN or infinite"),
        (lambda weights: weights.update({"transformer.ln_f.bias": torch.zeros(3)}), "has the shape"),
        (lambda weights: weights.update({"another": torch.zeros(3)}), "another"),
        (lambda weights: weights.update({"transformer.ln_f.bias": torch.zeros(48, dtype=torch.int8)}), "int8"),
    ],
)
def test_what_is_not_plain_is_left_to_torch_which_says_what_is_wrong(folder, tmp_path, spoil, said):
    with pytest.raises(cutaway.CutawayError, match=said):
        cutaway.load(spoiled(folder, tmp_path, spoil))


@pytest.mark.parametrize("cut", [0, 5, 9, 200, -1])
def test_a_truncated_file_is_refused(folder, tmp_path, cut):
    shutil.copytree(folder, tmp_path / "cut")
    whole = (folder / "model.safetensors").read_bytes()
    (tmp_path / "cut" / "model.safetensors").write_bytes(whole[:cut])
    with pytest.raises(cutaway.CutawayError, match="truncated or damaged"):
        cutaway.load(tmp_path / "cut")


def test_where_there_may_be_an_accelerator_torch_is_asked(folder, monkeypatch):
    monkeypatch.setattr(loading, "has_accelerator", lambda: True)
    assert cutaway.load(folder)._model is not None
    assert cutaway.load(folder, device="cpu")._model is None


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


@pytest.mark.parametrize("more", [[], ["--json"], ["--samples", "2", "--json"]], ids=str)
@pytest.mark.parametrize("model", ["file", "builtin"])
def test_a_pipe_is_written_to_without_rich(file, model, more):
    line = ["generate", "Once", "-n", "3", "--model", str(file) if model == "file" else model, *more]
    code = f"from cutaway.cli import run\nassert run({line!r}) == 0\nimport sys\nassert 'rich' not in sys.modules"
    unforced = {name: value for name, value in os.environ.items() if name not in FORCED}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=unforced)
    assert ran.returncode == 0, ran.stderr
    assert "Once" in ran.stdout
    assert more or ran.stderr.count("\n") == 1  # why it ended, and how much it is


def test_what_needs_torch_still_has_it(file, tiny_lm):
    code = (
        f"import cutaway\nlm = cutaway.load({str(file)!r})\nprint(lm.trace('Once', keep='logits')['logits'].shape[-1])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ran.stdout.strip() == str(tiny_lm.config.vocabulary), ran.stderr
