"""A shuffling of any number of things that is computed place by place, so that it takes no memory and can be entered
anywhere. It is the same on every machine and with every version of every library."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cutaway.train.data.held_out import mix

ROUNDS = 8


def key(*parts: int) -> int:
    """One number for several, scattered over 64 bits."""
    seen = 0
    for part in parts:
        seen = int(mix(seen, part))
    return seen


def shuffled(places: NDArray[np.int64], count: int, seed: int) -> NDArray[np.int64]:
    """Which of `count` things comes at each of these places.

    A Feistel network shuffles the numbers of 2k bits; a number that is too large goes through it again until it is not.
    """
    half = np.uint64(max(1, ((count - 1).bit_length() + 1) // 2))
    mask = (np.uint64(1) << half) - np.uint64(1)
    keys = [key(seed, number) for number in range(ROUNDS)]
    values = places.astype(np.uint64)
    todo = np.arange(len(values))
    while len(todo):
        left, right = values[todo] >> half, values[todo] & mask
        for one in keys:
            left, right = right, left ^ (mix(right, one) & mask)
        values[todo] = (left << half) | right
        todo = todo[values[todo] >= count]
    return values.astype(np.int64)
