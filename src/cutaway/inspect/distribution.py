"""How the weights of a matrix are spread: how many of them lie in each of a row of equal bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cutaway.errors import CutawayError
from cutaway.inspect.numbers import array, rounded
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
    weights = array(dict(lm.model.named_parameters())[matrix.name]).ravel()
    low, high = float(weights.min()), float(weights.max())
    if low == high:
        low, high = low - 0.5, high + 0.5
    counts, edges = np.histogram(weights, bins, (low, high))
    quarters = np.quantile(weights, (0.25, 0.5, 0.75))
    return Distribution(matrix.name, edges, counts, (float(quarters[0]), float(quarters[1]), float(quarters[2])))
