"""Pieces replaced by zero, a mean or another text's; every metric; estimates from one backward pass; sets of pairs."""

from __future__ import annotations

import json

import pytest
import torch
from torch.nn.functional import kl_div, log_softmax, softmax

from cutaway.errors import CutawayError
from cutaway.inspect.metric import KL, LogitDifference, Loss, Own, Probability, Rank
from cutaway.inspect.resume import PIECES
from tests.inspect.test_sweep import CLEAN, CORRUPTED, SOME, difference, literal

OTHERS = ["a fox and a box", "the little hill", "Once upon a day there was"]
METRIC = LogitDifference(7, 9)


@pytest.mark.parametrize("what", PIECES)
def test_zero_and_resample_are_what_one_run_after_the_other_gives(tiny_lm, what):
    found = tiny_lm.sweep(CLEAN, what=what, how="zero", metric=METRIC, **SOME[what])
    slow = literal(tiny_lm, what, difference, CLEAN, CLEAN, torch.zeros_like)
    torch.testing.assert_close(found.values, slow, atol=1e-4, rtol=0)
    assert found.corrupted is None and found.base == found.clean == pytest.approx(
        float(difference(tiny_lm.logits(CLEAN))), abs=1e-4
    )
    assert found.to_dict()["recovered"] is None
    found = tiny_lm.sweep(CLEAN, CORRUPTED, what, how="resample", metric=METRIC, **SOME[what])
    slow = literal(tiny_lm, what, difference, CLEAN, CORRUPTED)
    torch.testing.assert_close(found.values, slow, atol=1e-4, rtol=0)
    gap = found.corrupted - found.clean
    torch.testing.assert_close(found.recovered, (slow - found.clean) / gap, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("what", [what for what in PIECES if what != "attention pattern"])
def test_the_mean_is_over_every_token_of_the_texts(tiny_lm, what):
    found = tiny_lm.sweep(CLEAN, what=what, how="mean", over=OTHERS, metric=METRIC, **SOME[what])
    traces = [tiny_lm.trace(text) for text in OTHERS]

    class Mean(dict):
        def __missing__(self, name):
            stacked = torch.cat([one[name] for one in traces], dim=-2)
            return stacked.mean(-2, keepdim=True)

    means = Mean()
    original = tiny_lm.trace

    def trace(text, *given, **more):  # the run that literal takes pieces from is the mean
        return means if not given and not more else original(text, *given, **more)

    tiny_lm.trace = trace
    try:
        slow = literal(tiny_lm, what, difference, CLEAN, CLEAN)
    finally:
        del tiny_lm.trace
    torch.testing.assert_close(found.values, slow, atol=1e-4, rtol=0)


@pytest.mark.parametrize("how", ["zero", "mean", "resample"])
def test_ablation_finds_the_heads_of_a_circuit_written_by_hand(induction_lm, how):
    clean, corrupted = [319, 5, 9, 2, 7, 5], [319, 6, 11, 2, 7, 5]
    given = {"zero": {}, "mean": {"over": [[319, 1, 2, 3], [319, 4, 8]]}, "resample": {"corrupted": corrupted}}[how]
    found = induction_lm.sweep(clean, what="head", how=how, metric=LogitDifference(9, 5), **given)
    assert sorted(found.strongest(2)) == [(0, 0), (1, 1)]
    assert found.values[1, 1] < 0.2 * found.clean and found.values[0, 0] < 0.2 * found.clean
    if how != "mean":  # a mean is no zero, but what the others do is nothing all the same
        assert found.effect[0, 1] == found.effect[1, 0] == 0


@pytest.mark.parametrize(
    ("metric", "literally"),
    [
        (Loss(7), lambda logits, clean: -logits[-1].log_softmax(-1)[7]),
        (Rank(7), lambda logits, clean: float((logits[-1].argsort(descending=True) == 7).nonzero()) + 1),
        (
            KL(),
            lambda logits, clean: kl_div(log_softmax(logits[-1:], -1), softmax(clean[-1:], -1), reduction="batchmean"),
        ),
        (
            KL(position=None),
            lambda logits, clean: kl_div(log_softmax(logits, -1), softmax(clean, -1), reduction="batchmean"),
        ),
    ],
)
def test_every_metric_is_its_definition(tiny_lm, metric, literally):
    clean = tiny_lm.logits(CLEAN)
    found = tiny_lm.sweep(CLEAN, CORRUPTED, "head", metric=metric)
    slow = literal(tiny_lm, "head", lambda logits: literally(logits, clean))
    torch.testing.assert_close(found.values, slow, atol=1e-4, rtol=1e-4)
    assert found.clean == pytest.approx(float(literally(clean, clean)), abs=1e-5) and found.metric


@pytest.mark.parametrize("how", ["patch", "resample", "zero"])
@pytest.mark.parametrize("what", PIECES)
def test_an_estimate_is_the_slope_of_every_cell(tiny_lm, what, how):
    """The gradient says how the metric begins to move: a difference quotient knows nothing of autograd."""
    corrupted = None if how == "zero" else CORRUPTED
    units = [0, 2, 3]
    metric = LogitDifference(7, 9)
    found = tiny_lm.sweep(CLEAN, corrupted, what, how=how, metric=metric, exact=False, units=units)
    base, other = (CORRUPTED, CLEAN) if how == "patch" else (CLEAN, CORRUPTED)
    assert not found.exact and found.values.shape == (3, 3)
    step, source, own = 1e-2, tiny_lm.trace(other), tiny_lm.trace(base)
    from cutaway.inspect.estimate import place_of

    for layer in range(3):
        name = f"blocks.{layer}.attention.heads" if what == "head" else place_of(what, layer)
        goal = torch.zeros_like(own[name]) if how == "zero" else source[name]
        axis = 1 if what == "neuron" else 0
        for at, unit in enumerate(units):
            measured = []
            for way in (step, -step):
                moved = own[name].clone()
                moved.select(axis, unit).add_(way * (goal - own[name]).select(axis, unit))
                logits = tiny_lm.trace(base, "logits", replace={name: moved})["logits"]
                measured.append(float(difference(logits).double()))
            slope = (measured[0] - measured[1]) / (2 * step)
            assert float(found.effect[layer, at]) == pytest.approx(slope, rel=0.05, abs=3e-3)


def test_an_estimate_agrees_with_what_it_estimates(tiny_lm):
    exact = tiny_lm.sweep(CLEAN, CORRUPTED, "mlp", metric=METRIC)
    rough = tiny_lm.sweep(CLEAN, CORRUPTED, "mlp", metric=METRIC, exact=False)
    assert rough.agreement(exact) == pytest.approx(exact.agreement(rough)) and exact.agreement(rough) > 0.8
    assert exact.agreement(exact) == pytest.approx(1)
    with pytest.raises(CutawayError, match="same pieces"):
        exact.agreement(tiny_lm.sweep(CLEAN, CORRUPTED, "head", metric=METRIC))


def test_some_layers_and_columns_are_the_same_cells(tiny_lm):
    whole = tiny_lm.sweep(CLEAN, CORRUPTED, "head", metric=METRIC)
    some = tiny_lm.sweep(CLEAN, CORRUPTED, "head", metric=METRIC, layers=[-1, 0], units=[3, 1])
    assert some.layers == (2, 0) and some.units == (3, 1)
    torch.testing.assert_close(some.values, whole.values[[2, 0]][:, [3, 1]], atol=1e-5, rtol=0)
    assert set(some.strongest(4)) == {(2, 3), (2, 1), (0, 3), (0, 1)}
    told = some.to_dict()
    assert told == json.loads(json.dumps(told, allow_nan=False)) and told["layers"] == [2, 0]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"how": "erase", "corrupted": CORRUPTED}, "Known: patch, resample"),
        ({}, "needs a corrupted text"),
        ({"how": "zero", "corrupted": CORRUPTED}, "leave the corrupted text out"),
        ({"how": "mean"}, "over="),
        ({"how": "zero", "over": OTHERS}, "leave it out"),
        ({"how": "mean", "over": OTHERS, "what": "attention pattern"}, "has no mean"),
        ({"corrupted": CORRUPTED, "layers": [3]}, "no layer 3"),
        ({"corrupted": CORRUPTED, "layers": []}, "No layer is named"),
        ({"corrupted": CORRUPTED, "units": [99]}, "no token 99"),
        ({"corrupted": CORRUPTED, "units": [4], "what": "head"}, "no head 4"),
        ({"corrupted": CORRUPTED, "units": [-999], "what": "neuron"}, "no neuron -999"),
        ({"how": "zero", "metric": lambda logits: 4.0}, "No cell moves the metric, which is 4"),
        ({"corrupted": CORRUPTED, "metric": Rank(7), "exact": False}, "Rank has none"),
        (
            {"corrupted": CORRUPTED, "metric": lambda logits: float(difference(logits.detach())), "exact": False},
            "has none",
        ),
        ({"how": "zero", "metric": KL(position=99)}, "no token 99"),
    ],
)
def test_what_would_fail_in_silence_is_refused(tiny_lm, given, said):
    with pytest.raises(CutawayError, match=said):
        tiny_lm.sweep(CLEAN, **{"metric": METRIC, **given})


PAIRS = [("a fox", "a box"), ("the little fox", "the little box"), ("once a fox", "once a box")]


def test_over_a_set_of_pairs_each_cell_has_a_mean_and_an_interval(tiny_lm):
    told = []
    found = tiny_lm.sweeps(PAIRS, "head", metric=METRIC, progress=lambda done, total: told.append((done, total)))
    each = torch.stack([tiny_lm.sweep(*pair, "head", metric=METRIC).effect for pair in PAIRS])
    torch.testing.assert_close(found.mean, each.mean(0))
    torch.testing.assert_close(found.margin, 1.96 * each.std(0) / 3**0.5)
    assert told == [(1, 3), (2, 3), (3, 3)] and found.pairs == 3
    assert all(abs(found.mean[at]) > found.margin[at] for at in found.certain())
    told = found.to_dict()
    assert told == json.loads(json.dumps(told, allow_nan=False)) and told["axes"] == ["layer", "head"]


def test_over_a_set_of_pairs_the_built_heads_are_certain_and_no_others(induction_lm):
    pairs = [([319, a, b, 2, 7, a], [319, c, b, 2, 7, a]) for a, b, c in ((5, 9, 6), (11, 4, 3), (20, 30, 40))]
    metrics = [Own(lambda row, b=b: row[b] - row.mean()) for b in (9, 4, 30)]
    found = induction_lm.sweeps(pairs, "head", metric=metrics)
    assert sorted(found.certain()) == [(0, 0), (1, 1)] and found.recovered[1, 1] > 0.99


def test_pairs_of_unequal_length_are_swept_at_tokens_counted_from_the_end(tiny_lm):
    pairs = [([1, 2, 3, 4], [1, 5, 3, 4]), ([9, 8, 1, 2, 3, 4], [9, 8, 1, 5, 3, 4])]
    found = tiny_lm.sweeps(pairs, "residual", metric=METRIC, units=[-1, -3])
    assert found.units == (-1, -3) and set(found.strongest(2)) <= {
        (layer, unit) for layer in range(3) for unit in (-1, -3)
    }
    for at, (clean, corrupted) in enumerate(pairs):
        alone = tiny_lm.sweep(clean, corrupted, metric=METRIC)
        torch.testing.assert_close(found.each[at], alone.effect[:, [-1, -3]], atol=1e-5, rtol=0)
    assert {one[1] for one in found.certain()} <= {-1, -3}


def test_a_data_set_is_cancelled_between_two_pairs_and_leaves_nothing_behind(tiny_lm):
    told = []

    def cancel(done, total):
        told.append((done, total))
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tiny_lm.sweeps(PAIRS, "head", metric=METRIC, progress=cancel)
    assert told == [(1, len(PAIRS)), (2, len(PAIRS))] and torch.is_grad_enabled()
    assert tiny_lm.sweeps(PAIRS, "head", metric=METRIC).pairs == len(PAIRS)


@pytest.mark.parametrize(
    ("pairs", "given", "said"),
    [
        (PAIRS[:1], {}, "2 pairs or more"),
        (PAIRS, {"metric": [METRIC]}, "3 pairs and 1 metrics"),
        ([PAIRS[0], ("a", "a fox")], {}, "Pair 1: The two texts must have the same number"),
        ([PAIRS[0], 7], {}, "Pair 1 is not a clean"),
        ([PAIRS[0], PAIRS[1]], {"what": "residual"}, "texts of one length"),
        (PAIRS, {"how": "zero"}, "by patch or resample"),
        (PAIRS, {"metric": lambda logits: 1.0}, "Pair 0: The metric is 1 for the clean"),
        (PAIRS, {"metric": Probability(7), "what": "heads"}, "Did you mean"),
    ],
)
def test_a_set_of_pairs_that_cannot_be_swept_is_refused(tiny_lm, pairs, given, said):
    with pytest.raises(CutawayError, match=said):
        tiny_lm.sweeps(pairs, **{"metric": METRIC, **given})
