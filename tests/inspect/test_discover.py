"""What is found in the weights, compared with a literal computation."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.inspect.discover import neighbours, waves


def test_neighbours_are_the_rows_with_the_highest_cosine(tiny_lm):
    rows = tiny_lm.model.token_embedding.weight.detach()[: len(tiny_lm.tokenizer)].numpy().astype(np.float64)
    rows = rows - rows.mean(0)
    at = tiny_lm.ids("Once")[0]
    cosine = rows @ rows[at] / np.linalg.norm(rows, axis=1) / np.linalg.norm(rows[at])
    cosine[at] = -2
    best = np.argsort(-cosine)[:5]
    found = neighbours(tiny_lm, "Once", 5)
    assert found.of.id == at and [one.id for one in found.tokens] == best.tolist()
    assert found.cosine == pytest.approx(cosine[best], abs=1e-5)
    with pytest.raises(CutawayError):
        neighbours(tiny_lm, "")


def test_a_circle_of_positions_is_found_as_two_waves(tiny_lm):
    count, width = tiny_lm.model.position_embedding.weight.shape
    angle = 2 * torch.pi * torch.arange(count) / count
    plane = torch.linalg.qr(torch.randn(width, 2, generator=torch.Generator().manual_seed(1)))[0]
    kept = tiny_lm.model.position_embedding.weight.detach().clone()
    try:
        with torch.no_grad():
            tiny_lm.model.position_embedding.weight.copy_(torch.stack([angle.cos(), angle.sin()], 1) @ plane.T)
        found = waves(tiny_lm, 2)
    finally:
        with torch.no_grad():
            tiny_lm.model.position_embedding.weight.copy_(kept)
    assert found.share.sum() == pytest.approx(1, abs=1e-4)
    assert np.square(found.lines).sum(0) == pytest.approx(np.ones(len(found.positions)), abs=1e-3)  # on the circle
    assert found.positions[0] == 0 and found.positions[-1] == count - 1
