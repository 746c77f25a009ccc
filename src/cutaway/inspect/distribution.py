"""How the weights of a matrix are spread: how many of them lie in each of a row of equal bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
import numpy.typing as npt

from cutaway.errors import CutawayError
from cutaway.inspect.numbers import Array, Axes, ViewResult, looked_at
from cutaway.inspect.parameters import find

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel


@dataclass(frozen=True)
class Distribution(ViewResult):
    """Counts of weights in equal bins between the smallest and the largest."""

    name: str
    edges: Annotated[npt.NDArray[np.float64], Axes(1)]
    """Where the bins begin, and where the last one ends."""
    counts: Annotated[npt.NDArray[np.int64], Axes(1)]
    quantiles: tuple[float, float, float]
    """A quarter, a half and three quarters of the weights are smaller."""


def distribution(lm: LanguageModel, name: str, bins: int = 61) -> Distribution:
    """How the weights of one matrix, by its name here or in a checkpoint, are spread."""
    if bins < 1:
        raise CutawayError(f"A distribution has 1 bin or more, not {bins}.")
    matrix = find(lm.config, name)
    weights = looked_at(dict(lm.model.named_parameters())[matrix.name]).ravel()
    low, high = float(weights.min()), float(weights.max())
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, bins + 1)
    places = [share * (weights.size - 1) for share in (0.25, 0.5, 0.75)]  # in their order
    order = Order(weights, edges[:-1], [number for place in places for number in (int(place), int(place) + 1)])
    quarters = [part_way(order, place) for place in places]
    return Distribution(
        matrix.name,
        edges,
        np.diff([*(order.smaller(edge) for edge in edges[:-1]), weights.size]),
        (quarters[0], quarters[1], quarters[2]),
    )


def part_way(order: Order, place: float) -> float:
    """The number at a place in their order; between two, in proportion."""
    below, above = order[int(place)], order[int(place) + 1]
    return below + (above - below) * (place - int(place))


AT_ONCE = 1 << 18
"""So many numbers are looked at together: they stay in the processor's cache."""
FINE = np.arange(1 << 16, dtype=np.uint32)
RANK = np.where(FINE < 1 << 15, FINE, np.uint32(0x8000) - FINE).astype(np.int32) + (1 << 15) - 1
"""Which place in the order numbers have whose upper 16 bits are these; zero and minus zero have the same."""


class Order:
    """What sorting a long row of numbers would tell about some of them, without sorting it.

    Numbers with the same sign, exponent and first 7 bits are a class. The classes are counted; only those that
    something is asked about are taken out and sorted.
    """

    def __init__(self, numbers: Array, edges: npt.NDArray[np.float64], places: list[int]):
        """`edges` and `places` are all that will be asked for."""
        self.last = numbers.size - 1
        pieces = [numbers[first : first + AT_ONCE] for first in range(0, numbers.size, AT_ONCE)]
        fine = np.zeros(FINE.size, np.int64)
        for piece in pieces:
            fine += np.bincount(upper(piece), minlength=FINE.size)
        counts = np.bincount(RANK, weights=fine, minlength=FINE.size).astype(np.int64)
        self.ends = counts.cumsum()
        wanted = np.zeros(FINE.size, bool)
        wanted[[self.rank_at(place) for place in places]] = True
        wanted[RANK[upper(edges.astype(np.float32))]] = True
        table = wanted[RANK]
        self.sorted = np.sort(np.concatenate([piece[table[upper(piece)]] for piece in pieces]))
        self.left_out = np.where(wanted, 0, counts).cumsum()
        """How many smaller ones were not taken out, for each class."""

    def rank_at(self, place: int) -> int:
        return int(np.searchsorted(self.ends, min(place, self.last), side="right"))

    def __getitem__(self, place: int) -> float:
        """The number at this place in their order; beyond the last, the last."""
        place = min(place, self.last)
        return float(self.sorted[place - self.left_out[self.rank_at(place)]])

    def smaller(self, edge: np.float64) -> int:
        """How many numbers are smaller than this edge."""
        [rank] = RANK[upper(np.array([edge], np.float32))]
        return int(np.searchsorted(self.sorted, edge) + self.left_out[rank])


def upper(numbers: Array) -> npt.NDArray[np.uint32]:
    """The upper 16 of their 32 bits."""
    return numbers.view(np.uint32) >> np.uint32(16)
