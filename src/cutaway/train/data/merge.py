"""Pieces -> a data set: the documents to train on and those held out, each in one row of tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cutaway.errors import CutawayError
from cutaway.train.data.held_out import Keys, Part, among, choose, least, mix
from cutaway.train.data.pieces import Method, Piece, Summary

SIDES = ("train", "held")


def file_names(array: str) -> tuple[str, str]:
    """Under what names a side's files hold an array: its values, and where those of each example begin."""
    return ("tokens", "offsets") if array == "ids" else (array, f"{array}.offsets")


def merge(
    paths: Sequence[Path], summary: Summary, folder: Path, method: Method, held_out: float | int, seed: int
) -> dict[str, dict[str, int]]:
    """Write both sides into the folder; how many documents, tokens and bytes each has."""
    plain = method.task.packed
    held, by_section = _choose(paths, summary, plain, held_out, seed)
    previous = np.bool_(False)  # whether the example before is held out
    with ExitStack() as stack:
        writers = [stack.enter_context(_Writer(folder, name, method)) for name in SIDES]
        for piece, part in _known(paths, seed, by_section):
            chosen = among(part.keys, held)
            begins = (piece.starts > 0) | (chosen != np.concatenate([[previous], chosen[:-1]]))
            previous = chosen[-1]
            for side, writer in zip((False, True), writers, strict=True):
                writer.add(piece, chosen == side, begins)
        return {name: writer.close() for name, writer in zip(SIDES, writers, strict=True)}


def _choose(
    paths: Sequence[Path], summary: Summary, plain: bool, held_out: float | int, seed: int
) -> tuple[Keys, bool]:
    """The keys of what is held out, and whether these are keys of sections and not of whole documents.

    Whole documents, unless that cannot be done without holding out far more than was asked for: of a single book, some
    sections are held out.
    """
    if not held_out:
        return np.empty(0, np.uint64), False
    units = {False: summary.records, True: summary.examples if plain else summary.records}
    wanted = {kind: round(held_out * n) if isinstance(held_out, float) else held_out for kind, n in units.items()}
    if units[True] < 2 or wanted[True] >= units[True]:
        what = "document" if plain else "record"
        have = f"There is only one {what}" if units[True] == 1 else f"There are only {units[True]:,} {what}s"
        raise CutawayError(_too_few(have, plain, max(1, wanted[True])))
    half = summary.tokens // 2
    largest = int(min(0.5, held_out) * summary.tokens)
    limits = largest, min(2 * largest, half)
    ways = [(False, wanted[False], *limits), (plain, wanted[True], *limits), (plain, 1, half, half)]
    for by_section, number, most, room in ways:
        if 0 < number < units[by_section]:
            held = choose(partial(_parts, paths, seed, by_section), units[by_section], number, most, room)
            if len(held):
                return held, by_section
    held = least(partial(_parts, paths, seed, plain))
    if not len(held):
        raise CutawayError(_too_few("All documents are alike", plain))
    return held, plain


def _parts(paths: Sequence[Path], seed: int, by_section: bool) -> Iterator[Part]:
    """What the examples of every piece are known by."""
    return (part for _, part in _known(paths, seed, by_section))


def _known(paths: Sequence[Path], seed: int, by_section: bool) -> Iterator[tuple[Piece, Part]]:
    """Every piece, and what its examples are known by: each by itself, or by the first of its document."""
    before = np.empty(1, np.uint64)  # the key of the document that goes on in the next piece
    for piece in map(_read, paths):
        if len(piece.lengths):
            keys, starts = mix(piece.hashes, seed), piece.starts
            if by_section:
                starts = np.ones_like(starts)
            else:
                keys = np.concatenate([before, keys[starts > 0]])[np.cumsum(starts, dtype=np.int64)]
                before = keys[-1:]
            yield piece, Part(keys, starts, piece.lengths)


def _too_few(have: str, plain: bool, wanted: int = 1) -> str:
    number = f"{wanted:,} of them" if wanted > 1 else "one of them"
    more = "a longer text, or several documents divided by lines of <|endoftext|>" if plain else "more records"
    return (
        f"{have}, and {number} should be held out to measure how good the model is. "
        f"Give {more}; or hold nothing out (held_out = 0)."
    )


def _read(path: Path) -> Piece:
    piece = Piece.read(path)
    if piece is None:
        path.unlink(missing_ok=True)
        raise CutawayError(f"{path} was damaged while the data was being prepared. Run the same command again.")
    return piece


class _Writer:
    """Writes one side, piece after piece."""

    def __init__(self, folder: Path, side: str, method: Method):
        self.end, self.packed = method.tokenizer.end, method.task.packed
        names = [one for name in method.kinds for one in file_names(name)]
        self.files = {name: (folder / f"{side}.{name}").open("wb") for name in names}
        self.written = dict.fromkeys(method.kinds, 0)
        self.documents = self.bytes = 0

    def add(self, piece: Piece, mine: NDArray[Any], begins: NDArray[Any]) -> None:
        """Take the examples that are mine; `begins` marks those that do not go on with the one before."""
        for name, ragged in piece.arrays.items():
            picked = ragged.pick(mine)
            values, lengths = picked.values, picked.lengths.astype(np.uint64)
            offsets = np.cumsum(lengths, dtype=np.uint64) - lengths
            if self.packed:  # sections of a document join; where one is missing between them, a new document begins
                torn = begins[mine] & (piece.starts[mine] == 0)
                values = np.insert(values, offsets[torn].astype(np.int64), self.end)
                offsets = (offsets + np.cumsum(torn, dtype=np.uint64) - torn)[begins[mine]]
            offsets = offsets + np.uint64(self.written[name])
            for file, part in zip(file_names(name), (values, offsets), strict=True):
                self.files[file].write(np.ascontiguousarray(part).data)
            self.written[name] += len(values)
        self.documents += len(offsets)
        self.bytes += int(piece.sizes[mine].sum(dtype=np.int64))

    def close(self) -> dict[str, int]:
        for name, size in self.written.items():
            self.files[file_names(name)[1]].write(np.array([size], "<u8").data)
        for file in self.files.values():
            file.close()
        return {"documents": self.documents, "tokens": self.written["ids"], "bytes": self.bytes}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self.files.values():
            file.close()
