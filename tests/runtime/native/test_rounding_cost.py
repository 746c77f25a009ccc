"""What rounding the weights costs: on the built-in model in nats, on one of GPT-2's size in its scores."""

from __future__ import annotations

import lzma

import numpy as np
import pytest
import torch

import cutaway
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import SIZES
from cutaway.runtime.native import library
from cutaway.runtime.native.calibrate import pack_calibrated
from cutaway.runtime.native.engine import Engine
from cutaway.runtime.native.pack import pack
from cutaway.runtime.native.rounding_cost import measure, windows_of

if library.load() is None:
    pytest.skip("the native engine is not built here: no C++ compiler", allow_module_level=True)

ALLOWED = {"bfloat16": 0.001, "int8": 0.01, "int4": 0.05}
"""Nats a token that the loss may go up by."""


@pytest.fixture(scope="module")
def builtin():
    return cutaway.load()


@pytest.fixture(scope="module")
def own_writing(builtin):  # of few texts, chance is as large as bfloat16's bound
    return windows_of(builtin.model, builtin.tokenizer, None, most=48)


def packed(lm, kind):
    return pack_calibrated(lm.model, lm.tokenizer) if kind == "int4" else pack(lm.model, kind)


@pytest.mark.parametrize("kind", ALLOWED)
def test_the_built_in_model_loses_little_on_its_own_writing(builtin, own_writing, kind):
    cost = measure(builtin.model, Engine(packed(builtin, kind)), own_writing, "its own writing")
    assert cost.tokens > 200
    assert cost.loss_added <= ALLOWED[kind]
    assert 0 < cost.mean_difference < cost.largest_difference


@pytest.mark.parametrize("kind", ALLOWED)
def test_the_built_in_model_loses_little_on_stories(builtin, shared_data, kind):
    with lzma.open(shared_data / "stories/stories.txt.xz", "rt", encoding="utf-8") as file:
        text = file.read(400_000).replace("<|endoftext|>", "")
    windows = windows_of(builtin.model, builtin.tokenizer, text, most=60)
    cost = measure(builtin.model, Engine(packed(builtin, kind)), windows, "stories")
    assert cost.loss_float32 < 4
    assert cost.loss_added <= ALLOWED[kind]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "mean", "largest"), [("bfloat16", 0.01, 0.05), ("int8", 0.03, 0.2), ("int4", 0.3, 2)])
def test_the_scores_of_a_model_of_gpt2s_size_move_little(kind, mean, largest):
    """In shares of the scores' own spread; docs/engine.md has the numbers."""
    torch.manual_seed(0)
    model = GPT(SIZES["gpt2"]).eval()
    windows = np.random.default_rng(0).integers(0, model.config.vocabulary, (2, 64)).tolist()
    with torch.inference_mode():
        spread = float(model(torch.tensor(windows)).std())
    cost = measure(model, Engine(pack(model, kind)), windows, "random tokens")
    assert cost.mean_difference < mean * spread
    assert cost.largest_difference < largest * spread
