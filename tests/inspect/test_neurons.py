"""Neurons, groups and factors: the strongest are the strongest, factors are not negative, more of them explain more."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.inspect.change import AblateNeuron
from cutaway.inspect.factors import factors, groups
from cutaway.inspect.neurons import activations, neuron, neurons
from cutaway.inspect.runs import run

WIDTH = 192


def everything(seen) -> np.ndarray:
    return np.stack([seen[f"blocks.{layer}.mlp.activation"].numpy().T for layer in range(3)])  # [layer, neuron, token]


def test_the_strongest_neurons_are_found_anywhere_and_at_a_token(seen):
    whole = everything(seen)
    found = neurons(seen, top=5)
    assert [one.peak for one in found.neurons] == sorted(whole.max(axis=2).flatten().tolist(), reverse=True)[:5]
    for one in found.neurons:
        np.testing.assert_array_equal(one.activations, whole[one.layer, one.neuron])
        assert one.activations[one.at] == one.activations.max()
    at = neurons(seen, top=4, position=2, layers=[1])
    best = np.argsort(-whole[1][:, 2])[:4]
    assert [(one.layer, one.neuron) for one in at.neurons] == [(1, number) for number in best]
    np.testing.assert_allclose(found.active, (whole > 0).mean(axis=1), rtol=1e-6)


def test_what_a_neuron_writes_is_what_its_column_does_to_the_logits(tiny_lm, seen):
    one = neuron(seen, 1, 7)
    model = tiny_lm.model
    with torch.no_grad():
        column = model.blocks[1].mlp.projection.weight[:, 7]
        raised = model.token_embedding.weight @ ((column - column.mean()) * model.final_norm.weight)
    assert [token.id for token, _ in one.writes] == raised.topk(5).indices.tolist()
    assert [logit for _, logit in one.writes] == pytest.approx(raised.topk(5).values.tolist(), rel=1e-4)
    assert one.to_dict()["layer"] == 1 and one.to_dict()["neuron"] == 7


def test_all_activations_stand_layer_after_layer(seen):
    np.testing.assert_array_equal(activations(seen, [2, 0]), everything(seen)[[2, 0]].reshape(2 * WIDTH, -1))


@pytest.mark.parametrize("changes", [(), (AblateNeuron(1, 5, 3),)])
def test_of_a_long_text_the_neurons_are_the_same_and_no_mlp_is_run_to_its_end(tiny_lm, seen, monkeypatch, changes):
    whole = run(tiny_lm, seen.ids, changes=changes)
    monkeypatch.setattr("cutaway.inspect.runs.KEEP_WHOLE", 0)
    part, ended = run(tiny_lm, seen.ids, changes=changes), list[int]()
    hooks = [
        block.mlp.projection.register_forward_pre_hook(lambda *_, layer=layer: ended.append(layer))
        for layer, block in enumerate(tiny_lm.model.blocks)
    ]
    try:
        for asked in ({}, {"position": 3}, {"layers": [2, 1], "top": 30}):
            ours, theirs = neurons(part, **asked), neurons(whole, **asked)
            assert [(one.layer, one.neuron) for one in ours.neurons] == [
                (one.layer, one.neuron) for one in theirs.neurons
            ]
            for one, other in zip(ours.neurons, theirs.neurons, strict=True):
                np.testing.assert_allclose(one.activations, other.activations, rtol=1e-5, atol=1e-6)
                assert [token.id for token, _ in one.writes] == [token.id for token, _ in other.writes]
                np.testing.assert_allclose([logit for _, logit in one.writes], [logit for _, logit in other.writes])
            np.testing.assert_array_equal(ours.active, theirs.active)
        np.testing.assert_allclose(neuron(part, 2, 9).activations, everything(whole)[2, 9], rtol=1e-5, atol=1e-6)
    finally:
        for hook in hooks:
            hook.remove()
    assert set(ended) <= ({1} if changes else set())  # a changed one is made again as a whole


def test_every_neuron_is_in_one_group(seen):
    pytest.importorskip("sklearn")
    found = groups(seen, count=4)
    assert sum(group.size for group in found.groups) == 3 * WIDTH
    assert [sum(group.by_layer[layer] for group in found.groups) for layer in range(3)] == [WIDTH] * 3
    whole = everything(seen)
    for group in found.groups:
        values = np.stack([whole[one] for one in group.examples])
        if group.size == len(group.examples):
            np.testing.assert_allclose(group.mean, values.mean(axis=0), rtol=1e-4, atol=1e-5)
    [only] = groups(seen, count=1, layers=[1]).groups
    np.testing.assert_allclose(only.mean, whole[1].mean(axis=0), rtol=1e-4, atol=1e-5)
    assert groups(seen, count=4).to_dict() == found.to_dict()


def test_factors_are_not_negative_and_more_of_them_explain_more(seen):
    pytest.importorskip("sklearn")
    found = [factors(seen, count) for count in (2, 5, 10, 20)]
    left = [one.unexplained for one in found]
    assert left == sorted(left, reverse=True) and left[-1] < left[0] - 0.05
    for one in found:
        assert all((factor.tokens >= 0).all() and factor.tokens.max() == pytest.approx(1) for factor in one.factors)
        assert all(weight >= 0 for factor in one.factors for _, _, weight in factor.neurons)
        shares = [factor.share for factor in one.factors]
        assert shares == sorted(shares, reverse=True) and sum(shares) == pytest.approx(1)
        assert all(factor.by_layer.sum() == pytest.approx(1) for factor in one.factors)


def test_what_factors_leave_is_a_share_of_the_sum_of_squares(seen, monkeypatch):
    """Planted: two factors can make the 1s, and nothing of the smaller numbers at every third token."""
    pytest.importorskip("sklearn")
    tokens = np.arange(len(seen))
    fires = np.where(np.arange(WIDTH)[:, None] < 50, tokens % 2 == 0, tokens % 2 == 1).astype(np.float32)
    rest = np.random.default_rng(0).random(fires.shape, dtype=np.float32) * 0.5
    monkeypatch.setattr("cutaway.inspect.factors.activations", lambda *_: fires + rest)
    left = factors(seen, 2, layers=[0]).unexplained
    # The best of rank 2, whatever its signs, leaves the squares of the other singular values.
    values = np.linalg.svd(fires + rest, compute_uv=False) ** 2
    assert left == pytest.approx(values[2:].sum() / values.sum(), rel=0.05)


def test_factors_of_one_layer_name_only_its_neurons(seen):
    pytest.importorskip("sklearn")
    found = factors(seen, 3, layers=[-1])
    assert found.layers == (2,) and {layer for one in found.factors for layer, _, _ in one.neurons} == {2}
    assert factors(seen, 3, layers=[-1]).to_dict() == json.loads(json.dumps(found.to_dict(), allow_nan=False))


def test_two_patterns_are_told_apart(seen, monkeypatch):
    """Planted: some neurons fire at even tokens, others at odd ones; below zero is not firing."""
    pytest.importorskip("sklearn")
    tokens = np.arange(len(seen))
    fires = np.where(np.arange(WIDTH)[:, None] < 50, tokens % 2 == 0, tokens % 2 == 1)
    planted = np.where(fires, 2, -1).astype(np.float32)
    monkeypatch.setattr("cutaway.inspect.factors.activations", lambda *_: planted)
    found = factors(seen, 2, layers=[0])
    assert found.unexplained < 1e-6
    np.testing.assert_allclose(found.factors[0].tokens, tokens % 2 == 1, atol=1e-3)
    np.testing.assert_allclose(found.factors[1].tokens, tokens % 2 == 0, atol=1e-3)
    assert [group.size for group in groups(seen, 2, layers=[0]).groups] in ([50, 142], [142, 50])


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (lambda seen: factors(seen, 1), "between 2 and 20"),
        (lambda seen: factors(seen, 21), "between 2 and 20"),
        (lambda seen: factors(run(seen.lm, [1, 2, 3]), 4), "tokens of the text"),
        (lambda seen: groups(seen, 0), "between 1 and"),
        (lambda seen: neurons(seen, top=0), "1 or more"),
        (lambda seen: neuron(seen, 0, WIDTH), "no neuron 192"),
        (lambda seen: neuron(seen, 3, 0), "no layer 3"),
    ],
)
def test_what_there_is_none_of_is_refused(seen, what, said):
    with pytest.raises(CutawayError, match=said):
        what(seen)


def test_without_scikit_learn_it_says_what_to_install(seen, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.decomposition", None)
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    for view in (factors, groups):
        with pytest.raises(CutawayError, match=r"pip install 'cutaway\[inspect\]'"):
            view(seen, 3)


def test_a_layer_named_twice_is_looked_at_once_and_none_is_refused(seen):
    assert neurons(seen, layers=[2, -1], top=3).to_dict() == neurons(seen, layers=[2], top=3).to_dict()
    assert factors(seen, 2, layers=[-1, 2]).layers == (2,)
    for view in (neurons, factors, groups):
        with pytest.raises(CutawayError, match="No layer is named"):
            view(seen, layers=[])


def test_principal_components_are_those_of_scikit_learn(seen):
    decomposition = pytest.importorskip("sklearn.decomposition")
    from cutaway.inspect.factors import factors
    from cutaway.inspect.neurons import activations

    found = factors(seen, count=4, layers=[1, 2], method="pca")
    theirs = decomposition.PCA(4, svd_solver="full").fit(activations(seen, [1, 2]).T.astype(np.float64))
    np.testing.assert_allclose([one.share for one in found.factors], theirs.explained_variance_ratio_, rtol=1e-4)
    assert found.unexplained == pytest.approx(1 - theirs.explained_variance_ratio_.sum(), abs=1e-5)
    along = theirs.transform(activations(seen, [1, 2]).T.astype(np.float64))  # [token, component]
    for at, one in enumerate(found.factors):
        assert np.abs(one.tokens).max() == pytest.approx(1) and one.tokens.max() == pytest.approx(1)
        assert abs(np.corrcoef(one.tokens, along[:, at])[0, 1]) == pytest.approx(1, abs=1e-4)
    with pytest.raises(CutawayError, match="Known: nmf, pca"):
        factors(seen, method="ica")
