"""How the weights of a matrix are spread: how many of them lie in each of a row of equal bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cutaway.errors import CutawayError
from cutaway.inspect.numbers import Array, array, rounded
from cutaway.inspect.parameters import find

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel


@dataclass(frozen=True)
class Distribution:
    """Counts of weights in equal bins between the smallest and the largest."""

    name: str
    edges: npt.NDArray[np.float64]
    """Where the bins begin, and where the last one ends."""
    counts: npt.NDArray[np.int64]
    quantiles: tuple[float, float, float]
    """A quarter, a half and three quarters of the weights are smaller."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "edges": rounded(self.edges),
            "counts": self.counts.tolist(),
            "quantiles": rounded(list(self.quantiles)),
        }


def distribution(lm: LanguageModel, name: str, bins: int = 61) -> Distribution:
    """How the weights of one matrix, by its name here or in a checkpoint, are spread."""
    if bins < 1:
        raise CutawayError(f"A distribution has 1 bin or more, not {bins}.")
    matrix = find(lm.config, name)
    weights = np.sort(array(dict(lm.model.named_parameters())[matrix.name]), axis=None)
    low, high = float(weights[0]), float(weights[-1])
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, bins + 1)
    begins = np.searchsorted(weights, edges[:-1])  # where each bin begins in their order
    quarters = [part_way(weights, share) for share in (0.25, 0.5, 0.75)]
    return Distribution(
        matrix.name,
        edges,
        np.diff([*begins, weights.size]),
        (quarters[0], quarters[1], quarters[2]),
    )


def part_way(ordered: Array, share: float) -> float:
    """The number that such a share of the others, in their order, are smaller than; between two, in proportion."""
    at = share * (ordered.size - 1)
    below, above = ordered[int(at)], ordered[min(int(at) + 1, ordered.size - 1)]
    return float(below + (float(above) - float(below)) * (at - int(at)))
