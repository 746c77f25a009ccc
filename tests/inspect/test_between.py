"""The attention from some tokens to others, and to the rest."""

from __future__ import annotations

import numpy as np
import pytest

from cutaway.errors import CutawayError
from cutaway.inspect.between import between


def test_weights_and_rest_add_up_to_one_in_a_head_and_on_average(seen):
    table = seen["blocks.2.attention.weights"].numpy()
    for head, own in ((1, table[1]), (None, table.mean(axis=0))):
        found = between(seen, rows=[6, -1], columns=[0, 3], layer=-1, head=head)
        np.testing.assert_allclose(found.weights, own[[6, -1]][:, [0, 3]], rtol=1e-5)
        np.testing.assert_allclose(found.weights.sum(axis=1) + found.rest, 1, rtol=1e-5)


def test_a_token_named_twice_is_counted_once_in_the_rest(seen):
    once, twice = between(seen, [5], [0, 2], 1), between(seen, [5], [0, 2, 2 - len(seen)], 1)
    np.testing.assert_allclose(twice.rest, once.rest, rtol=1e-5)
    np.testing.assert_array_equal(twice.weights, once.weights[:, [0, 1, 1]])


@pytest.mark.parametrize("asked", [([99], [0], 1), ([1], [99], 1), ([1], [0], 3), ([1], [0], 1, -5)])
def test_what_is_not_there_is_refused(seen, asked):
    with pytest.raises(CutawayError, match="There is no"):
        between(seen, *asked)
