"""A matrix of weights as a small heat picture: its mean, lowest, highest and spread, cell by cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from cutaway.errors import CutawayError
from cutaway.inspect.numbers import Array, Table, ViewResult, looked_at
from cutaway.inspect.parameters import find

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel


@dataclass(frozen=True)
class Picture(ViewResult):
    """A matrix in at most so many cells each way; a vector is one row."""

    name: str
    shape: tuple[int, ...]
    mean: Table
    """[row, column], as are the others."""
    low: Table
    high: Table
    spread: Table
    """The standard deviation inside the cell."""
    total: dict[str, float]
    """mean, std, min and max of the whole matrix."""
    told = ("rows", "columns")

    @property
    def rows(self) -> int:
        return self.mean.shape[0]

    @property
    def columns(self) -> int:
        return self.mean.shape[1]


def picture(lm: LanguageModel, name: str, size: int = 64) -> Picture:
    """One matrix of a model in at most size x size cells.

    By its name here (`blocks.0.mlp.widen.weight`) it has the shape of torch's parameter, outputs x inputs; by its name
    in a checkpoint (`h.0.mlp.c_fc.weight`) the shape it is stored in there, inputs x outputs.
    """
    if size < 1:
        raise CutawayError(f"A picture has 1 cell or more each way, not {size}.")
    matrix = find(lm.config, name)
    weights = looked_at(dict(lm.model.named_parameters())[matrix.name])
    if name != matrix.name and matrix.transposed:
        weights = weights.T
    shape = weights.shape
    if weights.ndim == 1:
        weights = weights[None]
    rows, columns = cuts(weights.shape[0], size), cuts(weights.shape[1], size)
    bands = np.split(weights, rows[1:])  # a band of rows at a time: a large matrix is never copied as a whole
    sums, squares = (np.array(one) for one in zip(*(band_sums(band) for band in bands), strict=True))
    count = np.diff([*rows, weights.shape[0]])[:, None] * np.diff([*columns, weights.shape[1]])
    sums, squares = (np.add.reduceat(one, columns, axis=1) for one in (sums, squares))
    mean = sums / count
    low = np.minimum.reduceat(np.array([band.min(axis=0) for band in bands]), columns, axis=1)
    high = np.maximum.reduceat(np.array([band.max(axis=0) for band in bands]), columns, axis=1)
    whole = float(sums.sum()) / weights.size
    return Picture(
        matrix.name,
        shape,
        mean.astype(np.float32),
        low,
        high,
        np.sqrt(np.maximum(squares / count - mean**2, 0)).astype(np.float32),
        {
            "mean": whole,
            "std": float(np.sqrt(max(0.0, float(squares.sum()) / weights.size - whole**2))),
            "min": float(low.min()),
            "max": float(high.max()),
        },
    )


def cuts(length: int, size: int) -> npt.NDArray[np.int64]:
    """Where each of at most `size` bins of nearly equal length begins."""
    bins = min(length, size)
    return np.arange(bins) * length // bins


def band_sums(band: Array) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The sum of each column of a few rows, and of its squares."""
    exact = band.astype(np.float64)
    return exact.sum(axis=0), np.square(exact, out=exact).sum(axis=0)
