"""Batches in a shuffled order that can be entered anywhere and is the same however many processes share the work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cutaway.errors import CutawayError
from cutaway.train.data.order import key, shuffled
from cutaway.train.data.shards import Split

IGNORED = -100
"""A target that does not count."""
POOL = 64
"""So many batches of examples at most are sorted by length together."""

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """What a model reads at once, and what it should have said."""

    inputs: Tensor
    """[row, token]; rows shorter than the longest are filled up on the right, with zeros."""
    targets: Tensor
    """[row, token]: the id that comes next, or -100 where it does not count."""
    labels: Tensor | None
    """[row]: the class, in tasks that have classes; all rows of one record have the same."""
    last: Tensor | None
    """[row]: the place of the last real token, in tasks that have classes."""
    tokens: int
    """How many real tokens there are in `inputs`."""
    counted: int
    """How many targets count, in these rows."""
    counted_in_all: int
    """How many targets count in the whole batch, the rows of other processes included."""


class Batches:
    """Batches without end, epoch after epoch, each in another order.

    Plain text (`split.answers` is None) is one long row of documents, cut into windows of `length` tokens, in each
    epoch from another place on. Otherwise a row is one example, rows of like length stand together, and `batch` counts
    records (which may have several rows). Process `rank` of `world` gets its share of the rows of every batch.
    """

    def __init__(self, split: Split, batch: int, length: int, seed: int = 0, rank: int = 0, world: int = 1):
        _check(split, batch, length, rank, world, least=length + 1)
        if batch % world:
            raise CutawayError(f"A batch of {batch} cannot be divided equally between {world} processes.")
        self.split, self.batch, self.length, self.seed = split, batch, length, seed
        self.share = slice(rank * (batch // world), (rank + 1) * (batch // world))
        self.position = 0
        self.count = _windows(split, length) if split.answers is None else len(split) // split.rows
        # At most a quarter of an epoch: two copies of an example in one pool, of equal length, would meet in one batch.
        self.pool_size = max(1, min(POOL, self.count // batch // 4))
        self.pool: tuple[int, Numbers] = (-1, np.empty(0, np.int64))

    @property
    def per_epoch(self) -> float:
        """How many batches go through the data once."""
        return self.count / self.batch

    @property
    def epoch(self) -> float:
        """How often the data has been gone through."""
        return self.position / self.per_epoch

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> Batch:
        if self.split.answers is None:
            made = self._text(self.position)
        else:
            made = _examples(self.split, self._records(self.position), self.share)
        self.position += 1
        return made

    def state(self) -> dict[str, Any]:
        """Where the batches are; goes into the checkpoint."""
        return {
            "position": self.position, "data": self.split.fingerprint, "batch": self.batch, "length": self.length,
            "seed": self.seed,
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken; refused if the data, or how it is cut and shuffled, is not the same."""
        here = self.state()
        if state["data"] != here["data"]:
            raise CutawayError(
                "The data is not what this training started with: a file, the tokenizer, the task or what is held out "
                "has changed. Restore it to resume, or start a new training in another folder."
            )
        for name in ("batch", "length", "seed"):
            if state[name] != here[name]:
                raise CutawayError(
                    f"The {name} of the batches was {state[name]} when this training started, and is {here[name]} now: "
                    "resumed like that, it would see different data. Set it back to resume."
                )
        self.position = int(state["position"])

    def _text(self, position: int) -> Batch:
        """The windows of one batch. The text is a ring: after the last document comes the first."""
        size = len(self.split.tokens)
        numbers = _stream(position * self.batch, self.batch, self.count, self.seed)[self.share]
        epochs = np.arange(position * self.batch, (position + 1) * self.batch)[self.share] // self.count
        begin = {int(epoch): key(self.seed, int(epoch), 1) % size for epoch in np.unique(epochs)}
        starts = numbers * self.length + np.array([begin[int(epoch)] for epoch in epochs])
        ids = self.split.tokens[(starts[:, None] + np.arange(self.length + 1)) % size].astype(np.int64)
        counted = ids.shape[0] * self.length
        inputs, targets = torch.from_numpy(ids[:, :-1].copy()), torch.from_numpy(ids[:, 1:].copy())
        return Batch(inputs, targets, None, None, counted, counted, self.batch * self.length)

    def _records(self, position: int) -> Numbers:
        """The records of one batch, of like length: a pool is sorted and cut into batches, and these are shuffled."""
        number, place = divmod(position, self.pool_size)
        if self.pool[0] != number:
            size = self.pool_size * self.batch
            records = _stream(number * size, size, self.count, self.seed)
            offsets, rows = self.split.offsets, self.split.rows
            lengths = offsets[(records + 1) * rows] - offsets[records * rows]
            self.pool = number, records[np.argsort(lengths, kind="stable")]
        chosen = int(shuffled(np.array([place]), self.pool_size, key(self.seed, number, 2))[0])
        return self.pool[1][chosen * self.batch : (chosen + 1) * self.batch]


def once(split: Split, batch: int, length: int, rank: int = 0, world: int = 1) -> Iterator[Batch]:
    """All of the data once, in order, every target counted once: for measuring.

    The last batch may be smaller, and have no rows at all on a process that is left without any.
    """
    _check(split, batch, length, rank, world, least=2)
    plain = split.answers is None
    count = -(-(len(split.tokens) - 1) // length) if plain else len(split) // split.rows
    for start in range(0, count, batch):
        numbers = np.arange(start, min(start + batch, count))
        share = slice(len(numbers) * rank // world, len(numbers) * (rank + 1) // world)
        yield _windows_in_order(split, length, numbers, share) if plain else _examples(split, numbers, share)


def _check(split: Split, batch: int, length: int, rank: int, world: int, least: int) -> None:
    if batch < 1 or length < 1:
        raise CutawayError(f"A batch needs at least 1 row of 1 token, not {batch} of {length}.")
    if not 0 <= rank < world:
        raise CutawayError(f"There is no process {rank} of {world}.")
    if split.answers is None:
        if len(split.tokens) < least:
            raise CutawayError(
                f"The text has only {len(split.tokens):,} tokens, and one row of a batch takes {least:,}: "
                "give more text, or make the rows (the context) shorter."
            )
        return
    if not len(split):
        raise CutawayError("There are no examples: give more data.")
    if (longest := _longest(split)) - (split.labels is None) > length:
        raise CutawayError(
            f"The longest example has {longest:,} tokens, and a row of a batch has room for {length:,}: "
            f"prepare the data with the task limited to that, task.within({length})."
        )


def _longest(split: Split) -> int:
    """The most tokens an example has, without reading all offsets into memory at once."""
    step = 1 << 20
    return max(
        int(np.diff(split.offsets[start : start + step + 1].astype(np.int64)).max())
        for start in range(0, len(split), step)
    )


def _windows(split: Split, length: int) -> int:
    return len(split.tokens) // length


def _stream(start: int, size: int, count: int, seed: int) -> Numbers:
    """A part of the endless stream of all things in one order, all in another order, and so on."""
    places = np.arange(start, start + size)
    epochs, within = places // count, places % count
    numbers = np.empty(size, np.int64)
    for epoch in np.unique(epochs):
        mine = epochs == epoch
        numbers[mine] = shuffled(within[mine], count, key(seed, int(epoch), 0))
    return numbers


def _windows_in_order(split: Split, length: int, numbers: Numbers, share: slice) -> Batch:
    size = len(split.tokens)
    places = numbers[:, None] * length + np.arange(length + 1)
    ids = split.tokens[np.minimum(places, size - 1)[share]].astype(np.int64)
    real = places[share] < size
    targets = np.where(real[:, 1:], ids[:, 1:], IGNORED)
    inputs = np.where(real[:, :-1], ids[:, :-1], 0)
    counted, counted_in_all = int(real[:, 1:].sum()), int((places[:, 1:] < size).sum())
    return Batch(
        torch.from_numpy(inputs),
        torch.from_numpy(targets),
        None,
        None,
        int(real[:, :-1].sum()),
        counted,
        counted_in_all,
    )


def _examples(split: Split, records: Numbers, share: slice) -> Batch:
    """The examples of these records, one a row; those outside of the share only decide how wide the rows are."""
    assert split.answers is not None
    rows = (records[:, None] * split.rows + np.arange(split.rows)).reshape(-1)
    starts, ends = split.offsets[rows].astype(np.int64), split.offsets[rows + 1].astype(np.int64)
    answers = np.maximum(split.answers[rows].astype(np.int64), 1)  # of the first id nothing is asked
    read = ends - starts - (split.labels is None)  # a written answer's last id is only a target
    mine = slice((share.start or 0) * split.rows, share.stop * split.rows)
    width = int(read.max(initial=1))
    inputs = np.zeros((len(rows[mine]), width), np.int64)
    targets = np.full_like(inputs, IGNORED)
    for row, (start, end, answer, size) in enumerate(
        zip(starts[mine], ends[mine], answers[mine], read[mine], strict=True)
    ):
        ids = split.tokens[start:end].astype(np.int64)
        inputs[row, :size] = ids[:size]
        wanted = ids[answer:]
        if split.counted is not None:
            wanted = np.where(split.counted[start + answer : end], wanted, IGNORED)
        targets[row, answer - 1 : len(ids) - 1] = wanted
    counted = ends - starts - answers
    if split.counted is not None:
        spans = zip(starts + answers, ends, strict=True)
        counted = np.array([int(split.counted[start:end].sum()) for start, end in spans], np.int64)
    return Batch(
        torch.from_numpy(inputs),
        torch.from_numpy(targets),
        None if split.labels is None else torch.from_numpy(split.labels[rows[mine]].astype(np.int64)),
        None if split.labels is None else torch.from_numpy(read[mine] - 1),
        int(read[mine].sum()),
        int(counted[mine].sum()),
        int(counted.sum()),
    )
