"""Edges and paths: those of a circuit written by hand, and what literal computations give."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.inspect.circuit import Compared, edges, path_logits, paths, receivers_of, senders_of
from cutaway.inspect.metric import LogitDifference, Rank
from cutaway.inspect.path import attribution, direct

CLEAN, CORRUPTED = "Once upon a time there was a fox", "Once upon the time there was a box"
METRIC = LogitDifference(7, 9)


def difference(logits):
    return float(logits[-1, 7] - logits[-1, 9])


def literal(lm, sender, receiver):
    """As it was first described: one run with the sender as in the clean run and all others held as they were, of
    which the receiver's input is put into a second run.
    """
    clean, base = lm.trace(CLEAN), lm.trace(CORRUPTED)
    held = {name: base[name] for name in base if name.endswith((".attention.output", ".mlp.output"))}
    if sender == "embedding":
        held["residual.0"] = clean["residual.0"]
    elif sender.startswith("mlp"):
        name = f"blocks.{sender.removeprefix('mlp ')}.mlp.output"
        held[name] = clean[name]
    else:
        layer, head = map(int, sender.removeprefix("head ").split("."))
        name, width = f"blocks.{layer}.attention.merged", lm.config.head_width
        merged = base[name].clone()
        merged[:, head * width : (head + 1) * width] = clean[name][:, head * width : (head + 1) * width]
        held[f"blocks.{layer}.attention.output"] = lm.model.blocks[layer].attention.projection(merged).detach()
    first = lm.trace(CORRUPTED, replace=held)
    if receiver == "output":
        return difference(first["logits"])
    if receiver.startswith("mlp"):
        name = f"blocks.{receiver.removeprefix('mlp ')}.mlp.norm"
        return difference(lm.trace(CORRUPTED, "logits", replace={name: first[name]})["logits"])
    place, part = receiver.removeprefix("head ").split(" ")
    layer, head = map(int, place.split("."))
    name = f"blocks.{layer}.attention.{part}"
    put = base[name].clone()
    put[head] = first[name][head]
    return difference(lm.trace(CORRUPTED, "logits", replace={name: put})["logits"])


RECEIVERS = ["output", "mlp 1", "head 1.2 queries", "head 2.0 keys", "head 2.3 values"]


@pytest.mark.parametrize("receiver", RECEIVERS)
def test_a_path_is_what_two_literal_runs_give(tiny_lm, receiver):
    found = paths(tiny_lm, CLEAN, CORRUPTED, [receiver], metric=METRIC)
    ready = receivers_of(tiny_lm)[receiver]
    assert list(found.senders) == [name for name, at in senders_of(tiny_lm) if at <= ready]
    for sender, value in zip(found.senders, found.values, strict=True):
        assert float(value) == pytest.approx(literal(tiny_lm, sender, receiver), abs=1e-4), sender
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False)) == found.to_dict()


def test_an_edge_is_the_slope_of_its_path(tiny_lm):
    """A difference quotient along every path knows nothing of gradients."""
    found = edges(tiny_lm, CLEAN, CORRUPTED, metric=METRIC)
    both, step = Compared(tiny_lm, CLEAN, CORRUPTED, METRIC, "edges"), 2e-2
    with torch.no_grad():
        for receiver in RECEIVERS:
            wanted = {receiver: receivers_of(tiny_lm)[receiver]}
            some = [at for at, (_, ready) in enumerate(senders_of(tiny_lm)) if ready <= wanted[receiver]]
            ends = [path_logits(both, some, wanted, way * both.differences) for way in (step, -step)]
            slopes = ((ends[0] - ends[1])[:, 7] - (ends[0] - ends[1])[:, 9]).double() / (2 * step)
            column = found.scores[:, found.receivers.index(receiver)]
            np.testing.assert_allclose(column[some], slopes, rtol=0.05, atol=3e-3)
            assert not np.delete(column, some).any()  # no edge leads back


def test_in_a_model_written_by_hand_the_strongest_edges_are_its_circuit(induction_lm):
    clean, corrupted = [319, 5, 9, 2, 7, 5], [319, 5, 11, 2, 7, 5]
    found = edges(induction_lm, clean, corrupted, metric=LogitDifference(9, 11))
    best = {(sender, receiver) for sender, receiver, _ in found.strongest(2)}
    assert best == {("embedding", "head 1.1 values"), ("head 1.1", "output")}
    told = paths(induction_lm, clean, corrupted, ["output"], metric=LogitDifference(9, 11))
    assert told.strongest(1)[0][0] == "head 1.1" and told.strongest(1)[0][1] > 0.99
    # Without the first 5 nobody notes it: the note goes from head 0.0 to the keys of head 1.1, and nowhere else.
    clean, corrupted = [319, 5, 9, 2, 7, 5], [319, 6, 9, 2, 7, 5]
    for part, is_circuit in (("keys", True), ("queries", False), ("values", False)):
        told = paths(induction_lm, clean, corrupted, [f"head 1.1 {part}"], metric=LogitDifference(9, 5))
        share = dict(zip(told.senders, told.recovered, strict=True))["head 0.0"]
        assert share > 0.9 if is_circuit else abs(share) < 0.1


@pytest.mark.parametrize(
    ("receivers", "metric", "said"),
    [
        (["head 1.9 queries"], METRIC, "no receiver 'head 1.9 queries'"),
        (["mlps 1"], METRIC, "Did you mean 'mlp 1'"),
        ([], METRIC, "No receiver is named"),
        (["output"], lambda logits: 3.0, "no difference to explain"),
    ],
)
def test_a_path_to_nowhere_is_refused(tiny_lm, receivers, metric, said):
    with pytest.raises(CutawayError, match=said):
        paths(tiny_lm, CLEAN, CORRUPTED, receivers, metric=metric)


def test_edges_need_a_gradient_and_texts_of_one_length(tiny_lm):
    with pytest.raises(CutawayError, match="Rank has none"):
        edges(tiny_lm, CLEAN, CORRUPTED, metric=Rank(7))
    with pytest.raises(CutawayError, match="same number of tokens"):
        edges(tiny_lm, CLEAN, "Once", metric=METRIC)


def test_every_column_of_the_direct_attribution_is_that_of_one_position(seen):
    found = direct(seen)
    np.testing.assert_allclose(found.values.sum(0), found.logits, rtol=1e-4, atol=1e-4)
    for position in (0, 3, len(seen) - 1):
        one = attribution(seen, position)
        assert found.targets[position] == one.token and found.logits[position] == pytest.approx(one.logit, abs=1e-4)
        for layer in range(3):
            for head in range(4):
                assert found.of(f"head {layer}.{head}")[position] == pytest.approx(one.heads[layer, head], abs=1e-4)
            assert found.of(f"mlp {layer}")[position] == pytest.approx(one.mlp[layer], abs=1e-4)
            assert found.of(f"mlp bias {layer}")[position] == pytest.approx(one.mlp_bias[layer], abs=1e-4)
            assert found.of(f"attention bias {layer}")[position] == pytest.approx(one.attention_bias[layer], abs=1e-4)
        assert found.of("final norm bias")[position] == pytest.approx(one.norm_bias, abs=1e-4)
    assert np.abs(found.of("rest")).max() < 1e-3
    lead = direct(seen, token=7, against=9)
    assert lead.logits[2] == pytest.approx(float(seen.logits()[2, 7] - seen.logits()[2, 9]), abs=1e-4)
    with pytest.raises(CutawayError, match="Did you mean 'mlp 1'"):
        found.of("mpl 1")
