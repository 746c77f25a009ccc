"""A table of words and their vectors, and which words are near which."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cutaway.errors import CutawayError, nearest


class WordVectors:
    """One vector for each of many words. Never changes: share it freely."""

    def __init__(self, words: Sequence[str], table: NDArray[np.float32], name: str = "word vectors"):
        if table.ndim != 2 or len(table) != len(words) or not len(words) or not table.shape[1]:
            raise CutawayError(f"{name}: {len(words):,} words, and a table of the shape {list(table.shape)}.")
        if not np.isfinite(table).all():
            row = int(np.flatnonzero(~np.isfinite(table).all(1))[0])
            raise CutawayError(f"{name}: the vector of {words[row]!r} has a value that is NaN or infinite.")
        self.words, self.table, self.name = tuple(words), table.astype(np.float32, copy=False), name
        self._rows = {word: row for row, word in enumerate(self.words)}
        if len(self._rows) < len(self.words):
            twice = next(word for row, word in enumerate(self.words) if self._rows[word] != row)
            raise CutawayError(f"{name}: {twice!r} is there twice, so it is not clear which vector it has.")

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._rows

    @property
    def width(self) -> int:
        return int(self.table.shape[1])

    def row(self, word: str) -> int:
        """Where a word stands in the table."""
        if word not in self._rows:
            lower = f" {word.lower()!r} is there." if word.lower() in self._rows else nearest(word, self.words[:20_000])
            raise CutawayError(f"{self.name} has no vector for {word!r:.80}.{lower}")
        return self._rows[word]

    def __getitem__(self, word: str) -> NDArray[np.float32]:
        return self.table[self.row(word)]

    @cached_property
    def directions(self) -> NDArray[np.float32]:
        """Every vector at length 1; a vector of zeros stays one."""
        lengths = np.linalg.norm(self.table, axis=1, keepdims=True)
        found: NDArray[np.float32] = (self.table / np.where(lengths == 0, 1, lengths)).astype(np.float32)
        return found

    def cosine(self, one: str, other: str) -> float:
        """How alike two words' vectors are: 1 is the same direction."""
        return float(self.directions[self.row(one)] @ self.directions[self.row(other)])

    def nearest(self, word: str, k: int = 10) -> list[tuple[str, float]]:
        """The k words whose vectors point most nearly the same way, without the word itself, nearest first."""
        own = self.row(word)
        cosines = self.directions @ self.directions[own]
        order = [int(row) for row in np.argsort(-cosines, kind="stable") if row != own]
        return [(self.words[row], float(cosines[row])) for row in order[: max(0, k)]]
