"""A model in one file, GGUF or nanoGPT's, is taken by the verbs as a folder is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cutaway.checkpoint import gguf


@pytest.mark.parametrize(
    "verb",
    [["predict", "Once upon"], ["generate", "Once upon", "--max-tokens", "2"], ["tokens", "Once upon"], ["parameters"]],
    ids=lambda verb: verb[0],
)
def test_a_gguf_file_is_a_model(cutaway, verb: list[str], tiny_lm, tmp_path: Path):
    lm = tiny_lm
    gguf.write_gguf(lm.model, lm.tokenizer, tmp_path / "model.gguf", "f16")
    said = cutaway(*verb, "--model", tmp_path / "model.gguf", "--json")
    assert said.code == 0, said
    assert json.loads(said.out)


def test_another_file_is_refused_with_what_is_read(cutaway, tmp_path: Path):
    (tmp_path / "notes.txt").write_text("no model")
    said = cutaway("predict", "Once", "--model", tmp_path / "notes.txt")
    assert said.code == 2
    assert ".gguf" in said.err


def test_a_folder_named_as_an_included_model_is_not_mistaken_for_it(cutaway, tiny_lm, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tiny_lm.save("translator")
    included, own = (cutaway("parameters", "--model", name, "--json") for name in ("translator", "./translator"))
    assert included.json["total"] != own.json["total"] == sum(one.numel() for one in tiny_lm.model.parameters())
    assert "the folder of that name here is --model ./translator" in included.err and own.err == ""
