"""Which documents are held out: chosen by their contents and a seed, whatever their order; equal ones together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]


def mix(values: Any, seed: int) -> Keys:
    """Numbers scattered over all of 64 bits (SplitMix64's last steps), each seed its own way."""
    with np.errstate(over="ignore"):
        x = np.asarray(values, np.uint64) + np.uint64((seed * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) % 2**64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


@dataclass(frozen=True)
class Part:
    """Some of the sections of documents, in order."""

    keys: Keys
    """The key of the document each section is of."""
    starts: NDArray[np.uint8]
    """1 where a document begins."""
    lengths: NDArray[np.uint32]
    """Their tokens."""


def choose(parts: Callable[[], Iterator[Part]], total: int, wanted: int, largest: int, room: int) -> Keys:
    """The keys, in order, of `wanted` of `total` documents, or of as many as can be.

    Those with the smallest keys, if they have no more than `largest` tokens each and `room` together. Documents with
    equal keys are taken all or not at all. Only small keys are kept in memory.
    """
    share = min(1.0, 2 * wanted / total + 64 / total)
    while True:
        keys, counts, sizes = _small(parts, share)
        taken, left, free = [], wanted, room
        for key, count, size in zip(keys, counts.tolist(), sizes.tolist(), strict=True):
            if count <= left and size <= min(largest, free):
                taken.append(key)
                left, free = left - count, free - size
            if not left or not free:
                break
        if not left or not free or share >= 1:
            return np.array(taken, np.uint64)
        share = min(1.0, share * 4)


def least(parts: Callable[[], Iterator[Part]]) -> Keys:
    """The key of the documents that have the fewest tokens together; none, if all documents have one key."""
    keys, _, sizes = _small(parts, 1)
    return keys[[int(np.argmin(sizes))]] if len(keys) > 1 else np.empty(0, np.uint64)


def _small(parts: Callable[[], Iterator[Part]], share: float) -> tuple[Keys, NDArray[np.int64], NDArray[np.int64]]:
    """The keys up to so far from 0, in order, how many documents have each, and how many tokens those have."""
    limit = np.uint64(min(2**64 - 1, int(share * 2**64)))
    found = []
    for part in parts():
        small = part.keys <= limit
        found.append((part.keys[small], part.starts[small], part.lengths[small]))
    if not found:
        return np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64)
    keys, starts, lengths = (np.concatenate(column) for column in zip(*found, strict=True))
    unique, places = np.unique(keys, return_inverse=True)
    counts, sizes = (np.bincount(places, one, len(unique)).astype(np.int64) for one in (starts, lengths))
    return unique, counts, sizes


def among(keys: Keys, chosen: Keys) -> NDArray[np.bool_]:
    """Which of the keys have been chosen."""
    if not len(chosen):
        return np.zeros(len(keys), bool)
    place = np.minimum(np.searchsorted(chosen, keys), len(chosen) - 1)
    return chosen[place] == keys
