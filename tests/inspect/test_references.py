"""What nnsight, TransformerLens and inseq said about the model of references.py, within 1e-4 of what we say."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from cutaway.inspect.metric import LogitDifference
from cutaway.inspect.path import attribution
from cutaway.inspect.resume import PIECES
from cutaway.inspect.runs import run
from cutaway.inspect.saliency import saliency

spec = importlib.util.spec_from_file_location("references", Path(__file__).with_name("references.py"))
assert spec is not None and spec.loader is not None
made = importlib.util.module_from_spec(spec)
spec.loader.exec_module(made)
AGAINST, CLEAN, NEURONS, TOKEN, texts = made.AGAINST, made.CLEAN, made.NEURONS, made.TOKEN, made.texts

WITHIN = 1e-4
TOLD = json.loads(made.WRITTEN.read_text())


@pytest.fixture(scope="module")
def lm():
    return made.reference_lm()


@pytest.mark.parametrize(
    ("package", "what"), [(package, what) for package in TOLD for what in PIECES if what in TOLD[package]]
)
def test_a_sweep_is_theirs(lm, package, what):
    units = list(range(0, lm.config.mlp_width, NEURONS)) if what == "neuron" else None
    found = lm.sweep(*texts(lm), what, metric=LogitDifference(TOKEN, AGAINST), units=units)
    theirs = torch.tensor(TOLD[package][what])
    assert theirs.shape == found.values.shape and theirs.std() > 100 * WITHIN
    torch.testing.assert_close(found.values, theirs, atol=WITHIN, rtol=0)


def test_the_written_numbers_are_of_every_piece_and_of_all_three():
    assert set(TOLD) == {"nnsight", "transformer_lens", "inseq"}
    assert {what for package in TOLD.values() for what in package} >= set(PIECES)


def test_direct_logit_attribution_is_transformer_lens(lm):
    heads = attribution(run(lm, CLEAN), -1, TOKEN, AGAINST).heads
    np.testing.assert_allclose(heads, TOLD["transformer_lens"]["direct"], atol=WITHIN)


@pytest.mark.parametrize(("name", "against"), [("gradient", None), ("rather", AGAINST)])
def test_gradient_x_input_is_inseq_with_its_sign_and_of_one_token_rather_than_another(lm, name, against):
    ids = lm.ids(CLEAN)
    found = saliency(run(lm, [*ids, TOKEN]), [len(ids)], against=against)
    np.testing.assert_allclose(found.signed[0, : len(ids)], TOLD["inseq"][name], atol=WITHIN)
    share = np.array(TOLD["inseq"][f"{name} norm"])
    np.testing.assert_allclose(found.share[0, : len(ids)], share / share.sum(), atol=WITHIN)
