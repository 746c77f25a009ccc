"""The distribution of a matrix counts every weight once."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.inspect.distribution import distribution


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
