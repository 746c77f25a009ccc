"""Small data to train on, and a recipe that takes a second."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from cutaway.train import state
from cutaway.train.loop import train
from cutaway.train.metrics import read_lines
from cutaway.train.recipe import Recipe

WORDS = """
the a fox bear owl hill river moon saw went found lost red small quick old up down and then again
""".split()  # noqa: SIM905


def sentences(count: int, seed: int) -> list[str]:
    dice = random.Random(seed)
    return [" ".join(dice.choices(WORDS, k=dice.randint(4, 14))).capitalize() + "." for _ in range(count)]


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a text, pairs, and labelled sentences, of a few hundred lines each."""
    folder = tmp_path_factory.mktemp("data")
    some = sentences(400, seed=1)
    documents = [" ".join(some[at : at + 8]) for at in range(0, len(some), 8)]
    (folder / "text.txt").write_text("\n<|endoftext|>\n".join(documents) + "\n")
    (folder / "pairs.tsv").write_text("".join(f"{one}\t{one.upper()}\n" for one in sentences(80, seed=2)))
    labelled = [f"{one}\t{'yes' if 'fox' in one.lower() else 'no'}\n" for one in sentences(120, seed=3)]
    (folder / "labels.tsv").write_text("text\tlabel\n" + "".join(labelled))
    return folder


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def settings(data: Path, cache: Path) -> dict[str, dict[str, Any]]:
    """A recipe as plain values: two small blocks, dropout, two pieces a step."""
    return {
        "model": {"layers": 2, "width": 16, "heads": 2, "context": 24, "vocabulary": 300, "dropout": 0.1},
        "data": {"paths": [str(data / "text.txt")], "cache": str(cache), "held_out": 0.1},
        "train": {
            "steps": 12, "batch": 4, "at_once": 2, "learning_rate": 5e-3, "checkpoint_every": 5, "evaluate_every": 4,
            "evaluate_batches": 2, "sample_every": 6, "precision": "float32", "seed": 7,
        },
    }  # fmt: skip


@pytest.fixture
def settings_for(settings: dict[str, Any], data: Path) -> Callable[[str], dict[str, Any]]:
    """The same recipe for another task, or trained in another way."""

    def change(kind: str) -> dict[str, Any]:
        if kind in ("translation", "classification"):
            file = {"translation": "pairs.tsv", "classification": "labels.tsv"}[kind]
            settings["data"] |= {"paths": [str(data / file)]}
            settings["task"] = {"name": kind}
            settings["model"] |= {"context": 64}
        elif kind == "recompute":
            settings["train"] |= {"recompute": True}
        elif kind == "muon":
            settings["train"] |= {"optimizer": "muon"}
        elif kind == "best":
            settings["train"] |= {"schedule": "constant", "keep": "best"}
        return settings

    return change


@pytest.fixture(scope="session")
def record() -> Callable[[Path], list[dict[str, Any]]]:
    """The metrics in an output folder, without what a clock says."""

    def read(output: Path) -> list[dict[str, Any]]:
        lines = read_lines(output / "metrics.jsonl")
        return [{name: line[name] for name in line if name not in ("time", "tokens_per_second")} for line in lines]

    return read


@pytest.fixture(scope="session")
def assert_same(record: Callable[[Path], list[dict[str, Any]]]) -> Callable[[Path, Path], None]:
    """Weights, both moments, place in the data, metrics, samples and the model: the same to the last bit."""

    def check(one: Path, other: Path) -> None:
        last, there = state.latest(one / "training"), state.latest(other / "training")
        assert last is not None and there is not None and last.name == there.name
        tensors, others = load_file(last / state.TENSORS), load_file(there / state.TENSORS)
        assert tensors.keys() == others.keys()
        assert all(torch.equal(tensors[name], others[name]) for name in tensors)
        assert any(name.startswith("exp_avg_sq.") for name in tensors)
        assert state.read_state(last).cursor == state.read_state(there).cursor
        assert record(one) == record(other)
        assert (one / "samples.jsonl").read_text() == (other / "samples.jsonl").read_text()
        assert (one / "model.safetensors").read_bytes() == (other / "model.safetensors").read_bytes()

    return check


@pytest.fixture(scope="session")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict[str, Any]], Path]:
    """A function: a recipe's plain values -> the folder of a training that went through in one go; do not change it."""
    made: dict[str, Path] = {}

    def run(settings: dict[str, Any]) -> Path:
        key = json.dumps(settings)
        if key not in made:
            made[key] = tmp_path_factory.mktemp("whole") / "model"
            train(Recipe.from_dict(settings), made[key])
        return made[key]

    return run
