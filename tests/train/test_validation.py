"""Files of their own to evaluate on (`data.validation`), in place of documents held out."""

from __future__ import annotations

import json
import math

import pytest
import torch

import cutaway
from cutaway.errors import CutawayError
from cutaway.train import run
from cutaway.train.metrics import read_lines
from cutaway.train.recipe import Recipe

SMALL = {
    "layers": 1, "width": 16, "heads": 2, "context": 32, "vocabulary": 300, "steps": 4, "batch": 4, "sample_every": 0,
    "precision": "float32", "learning_rate": 0.01, "evaluate_every": 2, "seed": 3, "held_out": 0,
}  # fmt: skip


def write(path, records):
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


def pairs(*words: str):
    return [{"prompt": f"The {one} said", "completion": f" {one} again."} for one in words]


def test_the_loss_is_that_of_the_file_and_the_steps_are_those_without_it(tmp_path, cache):
    learned, measured = pairs("fox", "owl", "bear", "dog", "hen"), pairs("goose", "mole", "toad")
    file = write(tmp_path / "valid.jsonl", measured)
    report = run(tmp_path / "with", records=learned, task="completion", validation=file, cache=cache, **SMALL)
    run(tmp_path / "without", records=learned, task="completion", cache=cache, **SMALL)
    made = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("with", "without")]
    assert made[0] == made[1]
    lm = cutaway.load(tmp_path / "with")
    end, losses = lm.tokenizer.end, []
    for one in measured:  # what is counted: the completion and the end
        given, answer = lm.tokenizer.encode(one["prompt"]), [*lm.tokenizer.encode(one["completion"]), end]
        chances = torch.as_tensor(lm.logits([*given, *answer[:-1]])).log_softmax(-1)[len(given) - 1 :]
        losses += [-chances[at, token].item() for at, token in enumerate(answer)]
    assert report.held_loss == pytest.approx(math.fsum(losses) / len(losses), rel=1e-4)
    lines = read_lines(tmp_path / "with" / "metrics.jsonl")
    assert [one["step"] for one in lines if "held_loss" in one] == [2, 4]
    assert not any("held_loss" in one for one in read_lines(tmp_path / "without" / "metrics.jsonl"))


def test_a_recipe_finds_it_beside_itself_and_a_missing_one_is_refused(tmp_path):
    write(tmp_path / "a.jsonl", pairs("fox"))
    write(tmp_path / "valid.jsonl", pairs("owl"))
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('[data]\npaths = ["a.jsonl"]\nvalidation = ["valid.jsonl"]\n')
    assert Recipe.load(recipe).data.validation == (str(tmp_path / "valid.jsonl"),)
    recipe.write_text('[data]\npaths = ["a.jsonl"]\nvalidation = ["none.jsonl"]\n')
    with pytest.raises(CutawayError, match=r"none\.jsonl does not exist"):
        Recipe.load(recipe)
