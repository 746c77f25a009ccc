"""Which examples make a batch: in a shuffled order that can be entered anywhere, the same however many processes share
the work. How they become tensors is the task's own business (`Task.collate`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cutaway.errors import CutawayError
from cutaway.tasks.task import Arrays
from cutaway.train.data.order import key, shuffled
from cutaway.train.data.shards import Split

POOL = 64
"""So many batches of examples at most are sorted by length together."""

Numbers = NDArray[np.int64]


class Batches:
    """Batches without end, epoch after epoch, each in another order; a batch is a list of examples.

    A packed text is one long row of documents, cut into windows of `length` tokens, in each epoch from another place
    on. Otherwise examples of like length stand together, and `batch` counts records (which may have several examples
    each). Process `rank` of `world` gets its share of every batch. `vary` changes every example (see
    `Task.varied`) by a number that follows from the seed and its place in the stream alone.
    """

    def __init__(
        self,
        split: Split,
        batch: int,
        length: int,
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
        vary: Callable[[Arrays, int], Arrays] | None = None,
    ):
        _check(split, batch, length, rank, world, least=length + split.ahead)
        if batch % world:
            raise CutawayError(f"A batch of {batch} cannot be divided equally between {world} processes.")
        self.split, self.batch, self.length, self.seed = split, batch, length, seed
        self.share = slice(rank * (batch // world), (rank + 1) * (batch // world))
        self.position, self.vary = 0, vary
        self.count = len(split.tokens) // length if split.packed else split.records
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

    def __next__(self) -> list[Arrays]:
        if self.split.packed:
            made = self._windows(self.position)
        else:
            made = _examples(self.split, self._records(self.position)[self.share])
        if self.vary is not None:
            first = self.position * self.batch + self.share.start  # counted in windows or records, as the stream is
            rows = 1 if self.split.packed else self.split.together
            made = [self.vary(one, key(self.seed, first + at // rows, 3)) for at, one in enumerate(made)]
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

    def _windows(self, position: int) -> list[Arrays]:
        """The windows of one batch. The text is a ring: after the last document comes the first."""
        size = len(self.split.tokens)
        numbers = _stream(position * self.batch, self.batch, self.count, self.seed)[self.share]
        epochs = np.arange(position * self.batch, (position + 1) * self.batch)[self.share] // self.count
        begin = {int(epoch): key(self.seed, int(epoch), 1) % size for epoch in np.unique(epochs)}
        starts = numbers * self.length + np.array([begin[int(epoch)] for epoch in epochs])
        places = (starts[:, None] + np.arange(self.length + self.split.ahead)) % size
        return [{"ids": window} for window in self.split.tokens[places]]

    def _records(self, position: int) -> Numbers:
        """The records of one batch, of like length: a pool is sorted and cut into batches, and these are shuffled."""
        number, place = divmod(position, self.pool_size)
        if self.pool[0] != number:
            size = self.pool_size * self.batch
            records = _stream(number * size, size, self.count, self.seed)
            offsets, rows = self.split.offsets, self.split.together
            lengths = offsets[(records + 1) * rows] - offsets[records * rows]
            self.pool = number, records[np.argsort(lengths, kind="stable")]
        chosen = int(shuffled(np.array([place]), self.pool_size, key(self.seed, number, 2))[0])
        return self.pool[1][chosen * self.batch : (chosen + 1) * self.batch]


def once(split: Split, batch: int, length: int, rank: int = 0, world: int = 1) -> Iterator[list[Arrays]]:
    """All of the data once, in order, every target counted once: for measuring.

    The last batch may be smaller, and have nothing at all for a process that is left without any.
    """
    _check(split, batch, length, rank, world, least=1 + split.ahead)
    count = -(-(len(split.tokens) - split.ahead) // length) if split.packed else split.records
    for start in range(0, count, batch):
        numbers = np.arange(start, min(start + batch, count))
        share = numbers[len(numbers) * rank // world : len(numbers) * (rank + 1) // world]
        if split.packed:
            width = length + split.ahead
            yield [{"ids": split.tokens[at * length : at * length + width]} for at in share.tolist()]
        else:
            yield _examples(split, share)


def _check(split: Split, batch: int, length: int, rank: int, world: int, least: int) -> None:
    if batch < 1 or length < 1:
        raise CutawayError(f"A batch needs at least 1 row of 1 token, not {batch} of {length}.")
    if not 0 <= rank < world:
        raise CutawayError(f"There is no process {rank} of {world}.")
    if split.packed:
        if len(split.tokens) < least:
            raise CutawayError(
                f"The text has only {len(split.tokens):,} tokens, and one row of a batch takes {least:,}: "
                "give more text, or make the rows (the context) shorter."
            )
        return
    if not len(split):
        raise CutawayError("There are no examples: give more data.")
    if (longest := _longest(split)) - split.ahead > length:
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


def _stream(start: int, size: int, count: int, seed: int) -> Numbers:
    """A part of the endless stream of all things in one order, all in another order, and so on."""
    places = np.arange(start, start + size)
    epochs, within = places // count, places % count
    numbers = np.empty(size, np.int64)
    for epoch in np.unique(epochs):
        mine = epochs == epoch
        numbers[mine] = shuffled(within[mine], count, key(seed, int(epoch), 0))
    return numbers


def _examples(split: Split, records: Numbers) -> list[Arrays]:
    """The examples of these records, side by side."""
    rows = records[:, None] * split.together + np.arange(split.together)
    return [split.example(row) for row in rows.reshape(-1).tolist()]
