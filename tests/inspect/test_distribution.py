"""The distribution of a matrix counts every weight once."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.inspect import distribution as module
from cutaway.inspect.distribution import Order, distribution


@pytest.mark.parametrize("name", ["token_embedding.weight", "h.1.mlp.c_fc.weight", "final_norm.weight"])
def test_every_weight_is_counted_once_and_in_its_bin(tiny_lm, name):
    found = distribution(tiny_lm, name, bins=7)
    weights = dict(tiny_lm.model.named_parameters())[found.name].detach().double().ravel()
    assert found.counts.sum() == weights.numel()
    middle = (weights >= found.edges[3]) & (weights < found.edges[4])
    assert abs(int(middle.sum()) - found.counts[3]) <= 1  # a weight on the edge
    assert found.quantiles == pytest.approx(torch.quantile(weights, torch.tensor([0.25, 0.5, 0.75]).double()).tolist())
    assert np.all(np.diff(found.edges) > 0)


def test_a_matrix_that_is_not_there_is_refused(tiny_lm):
    with pytest.raises(CutawayError, match="No matrix"):
        distribution(tiny_lm, "nothing.weight")
    with pytest.raises(CutawayError, match="1 bin"):
        distribution(tiny_lm, "wte.weight", bins=0)


DICE = np.random.default_rng(3)
ROWS = {
    "normal": DICE.standard_normal(5_000) * 0.02,
    "all on one side": 1 + DICE.random(3_000) * 1e-4,
    "negative": -np.exp(5 * DICE.standard_normal(3_000)),
    "few different": DICE.choice([-1.5, -0.0, 0.0, 0.25], 4_000),
    "zeros": np.array([0.0, -0.0] * 50),
    "tiny": DICE.standard_normal(1_000) * 1e-41,
    "one": np.array([0.3]),
    "two": np.array([0.3, -0.7]),
    "on the edges": np.repeat(np.linspace(-3, 3, 13), 7),
}


@pytest.mark.parametrize("bins", [1, 7, 61])
@pytest.mark.parametrize("name", ROWS)
def test_without_sorting_all_it_says_what_sorting_says(monkeypatch, name, bins):
    monkeypatch.setattr(module, "AT_ONCE", 1_000)
    numbers = ROWS[name].astype(np.float32)
    ordered = np.sort(numbers)
    edges = np.linspace(float(ordered[0]), float(ordered[-1]), bins + 1)
    places = [0, numbers.size // 3, numbers.size // 2, numbers.size - 1]
    order = Order(numbers, edges, places)
    assert [order[place] for place in places] == [float(ordered[place]) for place in places]
    assert order[numbers.size - 1 + 1] == ordered[-1]
    assert [order.smaller(edge) for edge in edges] == np.searchsorted(ordered, edges).tolist()


def test_it_takes_out_and_sorts_only_what_is_asked_about():
    numbers = np.linspace(1, 2, 1 << 16, dtype=np.float32)
    order = Order(numbers, np.array([1.5]), [100])
    assert len(order.sorted) <= 2 * numbers.size / 128 + 2  # two of the 128 classes between 1 and 2


def test_looking_at_the_weights_leaves_them_as_they_are(tiny_lm):
    before = tiny_lm.model.token_embedding.weight.detach().clone()
    distribution(tiny_lm, "wte.weight")
    assert torch.equal(before, tiny_lm.model.token_embedding.weight)
