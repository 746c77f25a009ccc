"""What runs a model, as far as decoding is concerned: texts in, scores for the next token out.

runtime/torch_batch.py and runtime/native/ answer; whatever else does can be decoded, streamed and searched, too.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float32]
"""The model's scores for what comes next, before anything is done to them. [row, vocabulary]"""


class Limits(Protocol):
    """What decoding has to know of a model's shape; of one that has a `start` token, see `used`."""

    @property
    def context(self) -> int:
        """How many tokens a text may have."""

    @property
    def end(self) -> int:
        """The token that ends a text, and that every text begins after."""


class Batch(Protocol):
    """Texts that are read side by side, a row each. What a row's scores are does not depend on the others."""

    def add(self, windows: list[list[int]]) -> Scores:
        """These texts join below the rows there are, and are read whole; their own scores only."""

    def step(self, tokens: list[int]) -> Scores:
        """Every row reads one token more."""

    def keep(self, rows: list[int]) -> None:
        """Go on with these rows, in this order; a row may be named twice (a beam that forks), and all may go."""


class PiecewiseBatch(Batch, Protocol):
    """A batch that can also read a text in pieces before it joins, and set a row aside."""

    def begin(self, window: list[int], whole: bool = False) -> Any:
        """A text that is to join, as an opaque row of which `done(row)` tokens are known already (0 if `whole`)."""

    def done(self, row: Any) -> int:
        """How many of its tokens have been read."""

    def read(self, rows: list[Any], counts: list[int], every: list[bool]) -> list[Scores]:
        """Each reads so many tokens more; the scores after the last of them, or after every one. [token, vocabulary]"""

    def join(self, rows: list[Any], copies: list[int]) -> None:
        """Texts that are read, or were set aside, go below the rows there are, each so many times."""

    def hold(self, row: int) -> Any:
        """What `join` takes, of a row that is about to go (`keep`)."""


class Runtime(Protocol):
    """A model that something can run."""

    @property
    def config(self) -> Limits: ...

    def open(self) -> Batch:
        """A batch without rows."""


def continued(limits: Limits, window: list[int]) -> list[int]:
    """The part of a text that is written on: all of it; of a pair, `source <start> target`, the target.

    It is what takes room in the context (a source has places of its own) and what penalties are for.
    """
    start = getattr(limits, "start", None)
    return window[window.index(start) :] if start is not None and start in window else window


def distinct(windows: list[list[int]]) -> tuple[list[list[int]], list[int]]:
    """The texts without those that are there twice, and which of them each was: samples of one prompt are read once."""
    rows = {window: row for row, window in enumerate(dict.fromkeys(map(tuple, windows)))}
    return [list(window) for window in rows], [rows[tuple(window)] for window in windows]
