"""A sweep gives what patching one piece after the other gives, finds the circuit that was built, and computes only what
a patch changes; what cannot be explained is refused.
"""

from __future__ import annotations

import gc
import json
from collections import Counter
from dataclasses import FrozenInstanceError
from itertools import pairwise

import numpy as np
import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.inspect.estimate import place_of
from cutaway.inspect.metric import LogitDifference, Metric, Own, Probability
from cutaway.inspect.resume import PIECES, Pair
from cutaway.language_model import LanguageModel

CLEAN = "Once upon a time there was a fox"
CORRUPTED = "Once upon the time there was a box"
NEURONS = [0, 3, 17, 40, 63]
SOME = {what: {"units": NEURONS} if what == "neuron" else {} for what in PIECES}


def difference(logits):
    return logits[-1, 7] - logits[-1, 9]


def literal(lm, what, metric, base=CORRUPTED, other=CLEAN, make=lambda value: value):
    """The same by a loop: one whole run for every cell, with one piece replaced by what is made of the other run's."""
    source = lm.trace(other)
    axis, units = (0, range(lm.config.heads)) if "head" in what or "pattern" in what else (0, range(len(lm.ids(base))))
    if what == "neuron":
        axis, units = 1, NEURONS
    values = torch.empty(lm.config.layers, len(units))
    for layer in range(lm.config.layers):
        name = place_of(what, layer) if what != "head" else f"blocks.{layer}.attention.heads"
        for at, unit in enumerate(units):

            def patch(value, name=name, unit=unit):
                patched = value.clone()
                patched.select(axis, unit).copy_(make(source[name]).expand_as(value).select(axis, unit))
                return patched

            values[layer, at] = float(metric(lm.trace(base, "logits", replace={name: patch})["logits"]))
    return values


@pytest.mark.parametrize("what", PIECES)
def test_it_gives_what_one_patch_after_the_other_gives(tiny_lm, what):
    found = tiny_lm.sweep(CLEAN, CORRUPTED, what, metric=LogitDifference(7, 9), **SOME[what])
    slow = literal(tiny_lm, what, difference)
    assert found.values.shape == slow.shape and slow.std() > 0.01
    torch.testing.assert_close(found.values, slow, atol=1e-4, rtol=0)
    assert found.clean == pytest.approx(float(difference(tiny_lm.logits(CLEAN))), abs=1e-4)
    assert found.corrupted == pytest.approx(float(difference(tiny_lm.logits(CORRUPTED))), abs=1e-4)


@pytest.mark.parametrize("what", PIECES)
def test_a_function_of_ones_own_is_given_the_logits_after_every_token(tiny_lm, what):
    tokens = len(tiny_lm.ids(CLEAN))

    def surprise(logits):
        assert logits.shape == (tokens, 320)
        return -logits.log_softmax(-1)[range(tokens - 1), tiny_lm.ids(CLEAN)[1:]].mean()

    found = tiny_lm.sweep(CLEAN, CORRUPTED, what, metric=surprise, **SOME[what])
    torch.testing.assert_close(found.values, literal(tiny_lm, what, surprise), atol=1e-4, rtol=0)


@pytest.mark.parametrize("what", PIECES)
def test_a_metric_may_be_of_an_earlier_token(tiny_lm, what):
    at = len(tiny_lm.ids(CLEAN)) - 4
    found = tiny_lm.sweep(CLEAN, CORRUPTED, what, metric=Probability(7, position=at), **SOME[what])
    slow = literal(tiny_lm, what, lambda logits: logits[at].softmax(-1)[7])
    torch.testing.assert_close(found.values, slow, atol=1e-4, rtol=0)
    if what in ("residual", "attention", "mlp"):
        assert (found.values[:, at + 1 :] == found.corrupted).all()  # what comes after cannot have caused it
    alike = tiny_lm.sweep(CLEAN, CORRUPTED, what, metric=Own(lambda row: row.softmax(-1)[7], position=at), **SOME[what])
    torch.testing.assert_close(alike.values, found.values, atol=1e-6, rtol=0)


@pytest.mark.parametrize("what", PIECES)
def test_how_many_cells_go_side_by_side_does_not_change_the_numbers(tiny_lm, what):
    for metric in (LogitDifference(7, 9), difference):
        whole = tiny_lm.sweep(CLEAN, CORRUPTED, what, metric=metric, **SOME[what])
        for batch in (1, 5, 1000):
            other = tiny_lm.sweep(CLEAN, CORRUPTED, what, metric=metric, batch=batch, **SOME[what])
            torch.testing.assert_close(other.values, whole.values, atol=1e-5, rtol=0)


def test_in_a_model_written_by_hand_it_finds_exactly_the_heads_of_the_circuit(induction_lm):
    # ... 5 9 ... 5 -> 9. Without the first 5 nobody notes it (head 0.0), and so nobody finds it (head 1.1).
    clean, corrupted = [319, 5, 9, 2, 7, 5], [319, 6, 9, 2, 7, 5]
    found = induction_lm.sweep(clean, corrupted, "head", metric=Own(lambda row: row[9] - row.mean()))
    assert found.recovered[0, 0] > 0.99 and found.recovered[1, 1] > 0.99
    assert found.values[0, 1] == found.values[1, 0] == found.corrupted
    assert sorted(found.strongest(2)) == [(0, 0), (1, 1)]

    # With another token after the first 5, the note is there all the same: only head 1.1 brings the answer.
    clean, corrupted = [319, 5, 9, 2, 7, 5], [319, 5, 11, 2, 7, 5]
    found = induction_lm.sweep(clean, corrupted, "head", metric=LogitDifference(9, 11))
    assert found.clean > 1 and found.corrupted < -1
    assert found.recovered[1, 1] > 0.99 and found.recovered[0, 0].abs() < 0.05 and found.strongest(1) == [(1, 1)]
    assert found.values[0, 1] == found.values[1, 0] == found.corrupted


def test_in_a_model_written_by_hand_the_answer_moves_from_where_it_stands_to_the_end(induction_lm):
    clean, corrupted = [319, 5, 9, 2, 7, 5], [319, 5, 11, 2, 7, 5]

    def moved(what):
        found = induction_lm.sweep(clean, corrupted, what, metric=LogitDifference(9, 11))
        return [tuple(at) for at in (found.recovered > 0.9).nonzero().tolist()], found

    assert moved("residual")[0] == [(0, 2), (1, 2)]  # the token stands there until head 1.1 takes it
    assert moved("attention")[0] == [(1, 5)]  # to the last token
    places, found = moved("mlp")
    assert places == [] and (found.values == found.corrupted).all()  # its MLPs do nothing


@pytest.mark.parametrize("what", PIECES)
def test_only_what_a_patch_changes_is_computed(tiny_lm, what):
    """Block by block as many rows as there are tokens from a patch on, and none below it; at the end only the last."""
    clean, corrupted = [3, 4, 5, 6, 7, 8], [3, 4, 9, 6, 7, 8]
    rows, thought = Counter(), Counter()
    handles = [
        module.register_forward_hook(
            lambda _module, given, _made, at=at, count=count: count.update({at: given[0].shape[:-1].numel()})
        )
        for at, block in enumerate(tiny_lm.model.blocks)
        for module, count in ((block.attention.queries_keys_values, rows), (block.mlp, thought))
    ]
    try:
        tiny_lm.sweep(clean, corrupted, what, metric=LogitDifference(7, 9), batch=1, **SOME[what])
    finally:
        for handle in handles:
            handle.remove()
    both, tokens = 12, [4, 3, 2, 1]  # from each position on that can matter: the first two tokens are the same
    if what == "residual":  # of what enters the first block only one token differs; of what is patched, only one at all
        assert rows == {0: both + 1, 1: both + 4 + 4, 2: both + 4 + 10 + 4}
        assert thought == {0: both + 4, 1: both + 14, 2: both + 1 + 2 * len(tokens)}
    elif what in ("head", "attention pattern"):  # four heads a layer, from the first difference on
        assert rows == {0: both, 1: both + 16, 2: both + 32}
        assert thought == {0: both + 16, 1: both + 16 + 16, 2: both + 8 + 4}
    elif what == "neuron":  # five of them
        assert rows == {0: both, 1: both + 20, 2: both + 40}
        assert thought == {0: both, 1: both + 20, 2: both + 10}
    elif what == "mlp":
        assert rows == {0: both, 1: both + 4, 2: both + 10 + 4}
        assert thought == {0: both, 1: both + 10, 2: both + 2 * len(tokens)}
    else:  # the MLP after the patched attention, once for all tokens
        assert rows == {0: both, 1: both + 4, 2: both + 10 + 4}
        assert thought == {0: both + 6, 1: both + 10 + 6, 2: both + 2 * len(tokens) + 6}


def test_tokens_are_named_by_text_or_id_and_the_result_says_all_of_it(tiny_lm):
    [one] = tiny_lm.ids(" a")
    found = tiny_lm.sweep(CLEAN, CORRUPTED, "head", metric=LogitDifference(" a", f"id:{one + 1}"))
    by_id = tiny_lm.sweep(tiny_lm.ids(CLEAN), CORRUPTED, "head", metric=LogitDifference(one, one + 1))
    assert torch.equal(found.values, by_id.values)
    told = found.to_dict()
    assert told == json.loads(json.dumps(told, allow_nan=False))
    assert told["what"] == "head" and told["axes"] == ["layer", "head"] and "' a'" in told["metric"]
    assert "".join(one["text"] for one in told["clean_tokens"]) == CLEAN
    assert "".join(one.text for one in found.corrupted_tokens) == CORRUPTED
    assert np.allclose(told["values"], found.values, rtol=1e-4) and told["clean"] == pytest.approx(found.clean, 1e-5)
    span = found.clean - found.corrupted
    assert torch.allclose(found.recovered * span + found.corrupted, found.values, atol=1e-5)
    with pytest.raises(FrozenInstanceError):
        found.what = "mlp"
    with torch.inference_mode():
        inside = tiny_lm.sweep(CLEAN, CORRUPTED, "head", metric=LogitDifference(one, one + 1))
    assert not inside.values.is_inference() and not inside.values.requires_grad


def test_progress_counts_every_cell(tiny_lm):
    told = []
    tiny_lm.sweep(CLEAN, CORRUPTED, metric=difference, batch=4, progress=lambda done, total: told.append((done, total)))
    cells = tiny_lm.config.layers * len(tiny_lm.ids(CLEAN))
    assert {total for _, total in told} == {cells} and told[-1] == (cells, cells)
    done = [one for one, _ in told]
    assert done == sorted(set(done)) and done[0] > 0  # those before the first difference are known at once
    assert max(after - before for before, after in pairwise(done)) == 4


def test_a_sweep_that_is_cancelled_leaves_nothing_behind(tiny_lm):
    class Cancelled(Exception):
        pass

    def cancel(done, total):
        if done > total // 2:
            raise Cancelled

    whole = tiny_lm.sweep(CLEAN, CORRUPTED, "mlp", metric=difference)
    weights = [parameter.clone() for parameter in tiny_lm.model.parameters()]
    try:
        tiny_lm.sweep(CLEAN, CORRUPTED, "mlp", metric=difference, batch=2, progress=cancel)
    except Cancelled:
        cancelled = True
    assert cancelled and torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
    gc.collect()
    assert not [one for one in gc.get_objects() if type(one) is Pair]
    assert all(map(torch.equal, weights, tiny_lm.model.parameters()))
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in tiny_lm.model.modules())
    assert torch.equal(tiny_lm.sweep(CLEAN, CORRUPTED, "mlp", metric=difference).values, whole.values)


@pytest.mark.parametrize(
    ("clean", "corrupted", "metric", "said"),
    [
        ([1, 2, 3], [1, 2], difference, r"the clean one has 3 \(.*│.*│.*\), the corrupted one 2 \(.*│.*\)"),
        ("", "fox", difference, "The clean text is empty"),
        ("fox", [], difference, "The corrupted text is empty"),
        ([1] * 49, [2] * 49, difference, "49 tokens long"),
        ([1, 2], [1, 2], difference, "are the same"),
        ([1, 2], [1, 3], lambda logits: 4.0, "is 4 for the clean text and 4 for the corrupted one"),
        ([1, 2], [1, 3], lambda logits: logits[0, 7], "no difference to explain"),
        ([1, 2], [1, 3], Probability(7, position=0), "looks at token 0, .* the same up to token 0"),
        ([1, 2], [1, 3], LogitDifference(7, 7), "over itself"),
        ([1, 2], [1, 3], lambda logits: logits[-1], r"single number, and gave the shape \[320\] for the clean text"),
        ([1, 2], [1, 3], lambda logits: None, "single number, and gave None"),
        ([1, 2], [1, 3], lambda logits: "much", "single number, and gave 'much'"),
        ([1, 2], [1, 3], lambda logits: logits[-1, 0] * torch.nan, "gave nan for the clean text"),
        ([1, 2], [1, 3], lambda logits: float("inf"), "gave inf"),
        ([1, 2], [1, 3], "logits", "A metric is LogitDifference"),
        ([1, 2], [1, 3], Probability("wondrous"), "not one token"),
        ([1, 2], [1, 3], Probability(999), "no token 999"),
        ([1, 2], [1, 3], Probability(7, position=2), "no token 2"),
        ([1, 2], [1, 3], Probability(7, position=None), "name its position"),
    ],
)
def test_what_cannot_be_explained_is_refused(tiny_lm, clean, corrupted, metric, said):
    with pytest.raises(CutawayError, match=said):
        tiny_lm.sweep(clean, corrupted, metric=metric)


def test_a_difference_that_is_only_rounding_is_refused_and_a_small_one_is_not(tiny_lm):
    def sweep(*values):
        calls = iter(values)
        return tiny_lm.sweep([1, 2], [1, 3], "head", metric=lambda logits: next(calls, 0.0))

    with pytest.raises(CutawayError, match="no difference to explain"):
        sweep(100.0, 100.0001)
    assert sweep(1e-9, 2e-9).clean == 1e-9
    logits = torch.zeros(320)
    logits[7], logits[9] = 100.0, 99.0  # a lead of 1 has the rounding of the 100 it was made from
    assert LogitDifference(7, 9).size(logits, 1.0) == 100


def test_a_metric_that_fails_in_one_cell_says_in_which(tiny_lm):
    calls = iter([1.0, 2.0])
    with pytest.raises(CutawayError, match=r"gave nan with mlp patched at layer 0, token 1"):
        tiny_lm.sweep([1, 2, 3], [1, 4, 3], "mlp", metric=lambda logits: next(calls, float("nan")), batch=1)


@pytest.mark.parametrize(
    ("what", "said"),
    [("heads", "Did you mean 'head'"), ("pattern", "Known: residual"), ("neurons", "Did you mean 'neuron'"), (3, "3")],
)
def test_what_cannot_be_patched_is_refused_with_what_can(tiny_lm, what, said):
    with pytest.raises(CutawayError, match=said):
        tiny_lm.sweep(CLEAN, CORRUPTED, what, metric=difference)


@pytest.mark.parametrize("batch", [0, -1, 1.5])
def test_no_cells_side_by_side_are_refused(tiny_lm, batch):
    with pytest.raises(CutawayError, match="1 or more"):
        tiny_lm.sweep(CLEAN, CORRUPTED, metric=difference, batch=batch)


def test_packed_weights_are_refused(tiny_lm):
    packed = LanguageModel(tiny_lm.model, tiny_lm.tokenizer, "packed", "int8")
    with pytest.raises(CutawayError, match="A sweep is made by torch, and packed has weights packed to int8"):
        packed.sweep(CLEAN, CORRUPTED, metric=difference)


def test_a_metric_of_ones_own_kind(tiny_lm):
    class Entropy(Metric):
        def of(self, logits):
            return torch.special.entr(logits.softmax(-1)).sum()

        def describe(self, lm):
            return "entropy"

    found = tiny_lm.sweep(CLEAN, CORRUPTED, "head", metric=Entropy())
    slow = literal(tiny_lm, "head", lambda logits: Entropy().of(logits[-1]))
    assert found.metric == "entropy" and torch.allclose(found.values, slow, atol=1e-4)
