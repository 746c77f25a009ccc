"""What usually follows the last one, two or three tokens: a table, made once of texts such as the model writes.

It guesses ahead on ordinary text, in microseconds, where looking up the text's own past has nothing to say. A wrong
guess costs a little time and changes nothing (see speculation.py), so the table may be small and inexact.

The file, `draft.npy`, is an array of 64-bit numbers, a power of two of them, in which an n-gram is found by its hash:

bits 0-19    the token that followed most often
bits 20-27   how often, in 255ths
bits 28-63   the lower bits of the n-gram's hash; its upper bits say where to look first. Zero: nothing is here
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cutaway.atomic import written_beside
from cutaway.errors import CutawayError

NAME = "draft.npy"
ORDER = 3
"""Tokens of the longest n-gram."""
SLOTS = 1 << 16
FULL = 0.7
"""How much of the table is used at most: beyond that looking takes longer."""
SEEN = 3
"""So often an n-gram must have been seen."""
SURPRISE = 0.25
"""An n-gram that says what its shorter end says, with a chance that differs by less, is left out."""
FACTOR, SHIFT = 0x9E3779B97F4A7C15, 29
WHOLE, TOKEN, CHANCE, MARK = (1 << 64) - 1, (1 << 20) - 1, 20, 28
Counts = tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], npt.NDArray[np.float64], npt.NDArray[np.int64]]


def hashes(ids: list[int]) -> Iterator[int]:
    """The hashes of the last token, the last two and the last three."""
    found = 0
    for token in ids[: -ORDER - 1 : -1]:
        found = ((found ^ (token + 1)) * FACTOR) & WHOLE
        found ^= found >> SHIFT
        yield found


class NGrams:
    """The table, which may lie in a file."""

    def __init__(self, table: npt.NDArray[np.uint64]):
        self.table = table
        self.entries = memoryview(table)  # type: ignore[arg-type]  # three times as fast as asking numpy for a number
        self.shift = 64 - (len(table).bit_length() - 1)

    def __reduce__(self) -> tuple[Any, ...]:
        return NGrams, (np.array(self.table),)

    def find(self, hashed: int) -> int:
        """The entry of an n-gram; 0 if there is none."""
        mark, at, entries = hashed & (WHOLE >> MARK), hashed >> self.shift, self.entries
        while entry := entries[at]:
            if entry >> MARK == mark:
                return entry
            at = (at + 1) % len(entries)
        return 0

    def guess(self, ids: list[int]) -> tuple[int, float]:
        """The token that may follow, and how likely; a chance of 0 if nothing is known."""
        best = 0
        for hashed in hashes(ids):
            best = self.find(hashed) or best
        return best & TOKEN, (best >> CHANCE & 255) / 255

    @property
    def vocabulary(self) -> int:
        """How many tokens a model must have that it is for."""
        used = self.table[self.table > 0]
        return int((used & np.uint64(TOKEN)).max()) + 1 if len(used) else 0

    def save(self, path: str | Path) -> None:
        with written_beside(Path(path)) as partial, partial.open("wb") as file:
            np.save(file, self.table)

    @classmethod
    def load(cls, path: str | Path, vocabulary: int) -> NGrams:
        """The table in a file, if it is for a model with so many tokens."""
        try:
            table = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise CutawayError(f"{path} is no table of n-grams ({error}). Make it again or take it away.") from None
        slots = len(table) if table.ndim == 1 and table.dtype == np.uint64 else 0
        if slots < 2 or slots & (slots - 1) or table.all():
            raise CutawayError(f"{path} is no table of n-grams. Make it again or take it away.")
        found = cls(table)
        if found.vocabulary > vocabulary:
            raise CutawayError(
                f"{path} guesses tokens up to {found.vocabulary - 1:,}, and this model has {vocabulary:,}: "
                "it was made for another model."
            )
        return found


def beside(model: Path) -> Path:
    """Where the table of a model lies: in its folder, or next to its file."""
    return model.with_suffix(f".{NAME}") if model.is_file() else model / NAME


def make_ngrams(ids: npt.NDArray[np.uint64], slots: int = SLOTS) -> NGrams:
    """The n-grams of a text that are worth the most."""
    if len(ids) and int(ids.max()) > TOKEN:
        raise CutawayError(f"A table of n-grams is for at most {TOKEN + 1:,} tokens.")
    orders = {n: count(ids, n) for n in range(1, ORDER + 1)}
    chosen: list[tuple[float, list[int], int, float]] = []
    shorter: dict[int, tuple[int, float]] = {}
    for n, columns in orders.items():
        known: dict[int, tuple[int, float]] = {}
        end = TOKEN + 1 << 20 * (n - 2) if n > 1 else 1
        for key, token, chance, seen in zip(*(column.tolist() for column in columns), strict=True):
            known[key] = token, chance
            before, likely = shorter.get(key % end, (-1, 0.0))
            if before != token or abs(likely - chance) >= SURPRISE:
                worth = seen * (abs(chance - likely) if before == token else chance)
                chosen.append((worth, [key >> 20 * (n - 1 - i) & TOKEN for i in range(n)], token, chance))
        shorter = known
    chosen.sort(key=lambda one: (-one[0], one[1]))
    return fill(((ngram, token, chance) for _, ngram, token, chance in chosen[: int(slots * FULL)]), slots)


def count(ids: npt.NDArray[np.uint64], n: int) -> Counts:
    """Every n-gram seen often enough: itself as one number, what followed most, its share of all, and their number."""
    size = max(0, len(ids) - n)
    keys = np.zeros(size, np.uint64)
    for i in range(n):
        keys = keys << np.uint64(20) | ids[i : i + size].astype(np.uint64)
    after = ids[n : n + size].astype(np.uint64)
    order = np.lexsort((after, keys))
    keys, after = keys[order], after[order]
    first = np.flatnonzero(starts(keys) | starts(after))
    times = np.diff(np.append(first, size))
    keys, after = keys[first], after[first]
    group = np.flatnonzero(starts(keys))
    total = np.add.reduceat(times, group) if size else times
    best = np.lexsort((-times, keys))[group]  # stable: of those that came as often, the lowest
    often = total >= SEEN
    return keys[group][often], after[best][often], (times[best] / total)[often], total[often]


def starts(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Where a number differs from the one before it."""
    return np.append(np.ones(min(1, len(numbers)), bool), numbers[1:] != numbers[:-1])


def fill(ngrams: Iterator[tuple[list[int], int, float]], slots: int) -> NGrams:
    table = NGrams(np.zeros(slots, np.uint64))
    for ngram, token, chance in ngrams:
        *_, hashed = hashes(ngram)
        at = hashed >> table.shift
        while table.entries[at]:
            at = (at + 1) % slots
        table.entries[at] = (hashed & (WHOLE >> MARK)) << MARK | max(1, round(255 * chance)) << CHANCE | token
    return table


def text_of(documents: list[list[int]], end: int) -> npt.NDArray[np.uint64]:
    """The tokens of several texts, each after the end token."""
    edges = np.cumsum([0, *(len(ids) + 1 for ids in documents)])
    whole = np.full(edges[-1], end, np.uint64)
    for ids, (first, last) in zip(documents, pairwise(edges.tolist()), strict=True):
        whole[first + 1 : last] = ids
    return whole
