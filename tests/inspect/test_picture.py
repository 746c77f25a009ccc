"""A picture of a matrix: bins that cover it all, in the shape that belongs to its name."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutaway.errors import CutawayError
from cutaway.inspect.parameters import parameters
from cutaway.inspect.picture import cuts, picture


def test_every_matrix_has_a_picture_in_the_shape_that_its_name_has_here_or_in_a_checkpoint(tiny_lm):
    for matrix in parameters(tiny_lm.config).matrices:
        own = tuple(tiny_lm.model.get_parameter(matrix.name).shape)
        for name, shape in ((matrix.name, own), (matrix.stored, matrix.shape)):
            found = picture(tiny_lm, name, size=7)
            sides = shape if len(shape) == 2 else (1, *shape)
            assert found.mean.shape == tuple(min(7, side) for side in sides)
            told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
            assert (told["rows"], told["columns"]) == found.mean.shape and told["shape"] == list(shape)


def test_a_parameter_has_a_picture_in_its_own_shape(tiny_lm):
    weights = tiny_lm.model.get_parameter("blocks.0.attention.queries_keys_values.weight").detach().numpy()
    found = picture(tiny_lm, "blocks.0.attention.queries_keys_values.weight", size=1000)
    assert found.shape == weights.shape
    np.testing.assert_allclose(found.mean, weights, rtol=1e-6)


def test_a_cell_has_the_mean_the_lowest_the_highest_and_the_spread_of_its_numbers(tiny_lm):
    found = picture(tiny_lm, "h.1.mlp.c_fc.weight", size=10)
    weights = tiny_lm.model.blocks[1].mlp.widen.weight.detach().numpy().T  # inputs x outputs
    rows, columns = [*cuts(48, 10), 48], [*cuts(192, 10), 192]
    for i, j in [(0, 0), (3, 7), (9, 9)]:
        cell = weights[rows[i] : rows[i + 1], columns[j] : columns[j + 1]]
        assert found.mean[i, j] == pytest.approx(cell.mean(), abs=1e-6)
        assert (found.low[i, j], found.high[i, j]) == (cell.min(), cell.max())
        assert found.spread[i, j] == pytest.approx(cell.std(), abs=1e-5)
    assert found.total["mean"] == pytest.approx(weights.mean(), abs=1e-6)
    assert found.total["std"] == pytest.approx(weights.std(), abs=1e-6)


def test_a_small_matrix_is_its_own_picture(tiny_lm):
    found = picture(tiny_lm, "h.0.attn.c_proj.weight", size=64)
    weights = tiny_lm.model.blocks[0].attention.projection.weight.detach().numpy().T
    np.testing.assert_allclose(found.mean, weights, rtol=1e-6)
    assert np.abs(found.spread).max() < 1e-6 and found.name == "blocks.0.attention.projection.weight"


@given(length=st.integers(1, 300), size=st.integers(1, 80))
def test_bins_cover_everything_once_and_differ_by_one_at_most(length, size):
    sizes = np.diff([*cuts(length, size), length])
    assert sizes.sum() == length and len(sizes) == min(length, size) and sizes.max() - sizes.min() <= 1


def test_a_wrong_name_is_answered_with_the_nearest(tiny_lm):
    with pytest.raises(CutawayError, match=r"Did you mean 'token_embedding\.weight'"):
        picture(tiny_lm, "token_embeding.weight")
    with pytest.raises(CutawayError, match="1 cell"):
        picture(tiny_lm, "token_embedding.weight", 0)
