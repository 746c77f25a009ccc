"""What puts an encoder into the package: small ones, whose cards are filled from their own training."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

import cutaway
from cutaway import train

ROOT = Path(__file__).resolve().parents[2]
SAID = "We stick to the plan. He found a stick in the wood. The dog sat in the park on day"
TEXTS = [f"{SAID} {number}." for number in range(24)]
SMALL = {
    "bert": (
        {"task": {"name": "masked words", "next_sentence": False}},
        {"layers": 1, "width": 16, "heads": 2, "context": 32, "vocabulary": 300},
    ),
    "elmo": (
        {"task": {"name": "both directions"}},
        {"kind": "elmo", "width": 8, "vocabulary": 300,
         "shape": {"cell_width": 12, "filters": [[1, 4], [3, 8]], "highways": 1}},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def recipe():
    sys.path.insert(0, str(ROOT / "recipes"))
    try:
        yield importlib.import_module("ship_encoder")
    finally:
        sys.path.remove(str(ROOT / "recipes"))
        for name in ("ship_encoder", "ship_translator"):
            sys.modules.pop(name, None)


@pytest.mark.parametrize("kind", SMALL)
def test_a_trained_encoder_becomes_a_folder_that_loads_and_says_what_it_is(kind, recipe, tmp_path):
    asked, model = SMALL[kind]
    train.run(tmp_path / "made", texts=TEXTS, **asked, model=model, steps=2, held_out=2, cache=tmp_path / "cache")
    recipe.main([kind, str(tmp_path / "made"), "--out", str(tmp_path / kind)])
    card = (tmp_path / kind / "README.md").read_text(encoding="utf-8")
    report = json.loads((tmp_path / "made" / "report.json").read_text())
    assert "{" not in card and f"{report['held_loss']:.3f} nats" in card
    assert sum(one.numel() for one in cutaway.load(tmp_path / kind).model.parameters()) > 0
    assert (card.count("[MASK]") if kind == "bert" else card.count("| stick |")) >= 1
