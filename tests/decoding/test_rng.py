"""The random numbers are numpy's."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cutaway.decoding.rng import Random

NUMBERS = st.one_of(st.integers(0, 2**32 - 1), st.integers(0, 2**200), st.sampled_from([0, 2**32, 2**64 - 1]))


@given(st.lists(NUMBERS, min_size=1, max_size=6))
def test_they_are_those_of_numpys_generator(seed):
    ours, theirs = Random(seed), np.random.default_rng(seed)
    assert [ours.random() for _ in range(20)] == [theirs.random() for _ in range(20)]
