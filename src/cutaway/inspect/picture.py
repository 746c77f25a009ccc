"""A matrix of weights as a small heat picture: its mean, lowest, highest and spread, cell by cell."""

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
class Picture:
    """A matrix as a checkpoint stores it (inputs x outputs), in at most so many cells each way; a vector is one row."""

    name: str
    shape: tuple[int, ...]
    mean: Array
    """[row, column], as are the others."""
    low: Array
    high: Array
    spread: Array
    """The standard deviation inside the cell."""
    total: dict[str, float]
    """mean, std, min and max of the whole matrix."""

    def to_dict(self) -> dict[str, Any]:
        rows, columns = self.mean.shape
        arrays = {name: rounded(getattr(self, name)) for name in ("mean", "low", "high", "spread")}
        return {
            "name": self.name,
            "shape": list(self.shape),
            "rows": rows,
            "columns": columns,
            **arrays,
            "total": rounded(self.total),
        }


def picture(lm: LanguageModel, name: str, size: int = 64) -> Picture:
    """One matrix of a model, by its name here or in a checkpoint, in at most size x size cells."""
    if size < 1:
        raise CutawayError(f"A picture has 1 cell or more each way, not {size}.")
    matrix = find(lm.config, name)
    weights = array(dict(lm.model.named_parameters())[matrix.name])
    if weights.ndim == 1:
        weights = weights[None]
    elif matrix.block is not None:
        weights = weights.T  # a Linear holds outputs x inputs
    rows, columns = cuts(weights.shape[0], size), cuts(weights.shape[1], size)
    mean = pool(np.add, weights.astype(np.float64), rows, columns)
    squares = pool(np.add, np.square(weights, dtype=np.float64), rows, columns)
    count = np.diff([*rows, weights.shape[0]])[:, None] * np.diff([*columns, weights.shape[1]])
    mean, squares = mean / count, squares / count
    return Picture(
        matrix.name,
        matrix.shape,
        mean.astype(np.float32),
        pool(np.minimum, weights, rows, columns),
        pool(np.maximum, weights, rows, columns),
        np.sqrt(np.maximum(squares - mean**2, 0)).astype(np.float32),
        {
            "mean": float((mean * count).sum() / weights.size),
            "std": float(weights.std(dtype=np.float64)),
            "min": float(weights.min()),
            "max": float(weights.max()),
        },
    )


def cuts(length: int, size: int) -> npt.NDArray[np.int64]:
    """Where each of at most `size` bins of nearly equal length begins."""
    bins = min(length, size)
    return np.arange(bins) * length // bins


def pool(how: np.ufunc, weights: Any, rows: Any, columns: Any) -> Any:
    """Each cell of the picture from the weights in it."""
    return how.reduceat(how.reduceat(weights, rows, axis=0), columns, axis=1)
