"""A piece: one block of data as tokens, in a file that knows whether it is whole."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cutaway.atomic import written_beside
from cutaway.errors import CutawayError
from cutaway.tasks.task import Example, LeftOut, Record, Task
from cutaway.train.data.blocks import Block

if TYPE_CHECKING:
    from cutaway.text.tokenizer import Tokenizer

MAGIC = b"cutaway piece 3\n"
MOST_TOLD = 100
PARTS = {"hashes": "<u8", "sizes": "<u4", "starts": "<u1"}
"""What is kept of each example beside its arrays, and in what kind of number."""


@dataclass(frozen=True)
class Summary:
    """What a piece holds, in numbers."""

    examples: int = 0
    records: int = 0
    tokens: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    cut: int = 0
    """Examples from which tokens were cut away."""
    cut_tokens: int = 0
    refused: list[str] = field(default_factory=list)
    """What was said of records left out whose fault it was (see `LeftOut.told`), as far as anyone would read it."""

    def __add__(self, other: Summary) -> Summary:
        return Summary(
            self.examples + other.examples,
            self.records + other.records,
            self.tokens + other.tokens,
            dict(Counter(self.dropped) + Counter(other.dropped)),
            self.cut + other.cut,
            self.cut_tokens + other.cut_tokens,
            (self.refused + other.refused)[:MOST_TOLD],
        )


@dataclass(frozen=True)
class Ragged:
    """An array of every example, one after the other."""

    values: NDArray[Any]
    lengths: NDArray[np.uint32]

    def pick(self, mine: NDArray[Any]) -> Ragged:
        """Those of some examples."""
        return Ragged(self.values[np.repeat(mine, self.lengths)], self.lengths[mine])


@dataclass(frozen=True)
class Piece:
    """The examples of one block."""

    summary: Summary
    arrays: dict[str, Ragged]
    """The `ids`, and the task's other arrays, by name."""
    hashes: NDArray[np.uint64]
    """What the example is known by when some are held out: alike for equal ones."""
    sizes: NDArray[np.uint32]
    """UTF-8 bytes of the text."""
    starts: NDArray[np.uint8]
    """1 where a record or document begins, 0 where its next example or section follows."""

    @property
    def lengths(self) -> NDArray[np.uint32]:
        return self.arrays["ids"].lengths

    def write(self, path: Path) -> None:
        """Write the piece beside its place and move it there."""
        arrays = [one for ragged in self.arrays.values() for one in (ragged.values, ragged.lengths)]
        arrays += [getattr(self, name) for name in PARTS]
        digest = hashlib.sha256()
        for one in arrays:
            digest.update(one.data)
        kinds = {name: [one.values.dtype.str, len(one.values)] for name, one in self.arrays.items()}
        head = {"arrays": kinds, "digest": digest.hexdigest(), **vars(self.summary)}
        with written_beside(path) as beside, beside.open("wb") as file:
            file.write(MAGIC + json.dumps(head).encode() + b"\n")
            for one in arrays:
                file.write(one.data)

    @classmethod
    def read(cls, path: Path) -> Piece | None:
        """The piece in a file, or None if there is none or it is not whole."""
        try:
            with path.open("rb") as file:
                if file.readline() != MAGIC:
                    return None
                head = json.loads(file.readline())
                data = file.read()
            kinds, digest = dict(head.pop("arrays")), head.pop("digest")
            summary = Summary(**head)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if hashlib.sha256(data).hexdigest() != digest:
            return None
        place = 0

        def take(kind: str, count: int) -> NDArray[Any]:
            nonlocal place
            taken = np.frombuffer(data, kind, count, place)
            place += taken.nbytes
            return taken

        arrays = {name: Ragged(take(*kind), take("<u4", summary.examples)) for name, kind in kinds.items()}
        return cls(summary, arrays, *(take(kind, summary.examples) for kind in PARTS.values()))


Found = tuple[Example, int, int]
"""An example, what it is known by, and the bytes of its text."""


@dataclass(frozen=True)
class Method:
    """How a block becomes a piece."""

    task: Task
    tokenizer: Tokenizer
    section: int
    """A plain text longer than so many characters is kept in sections, so that one of them can be held out."""

    @property
    def dtype(self) -> str:
        return "<u2" if len(self.tokenizer) <= 1 << 16 else "<u4"

    @property
    def kinds(self) -> dict[str, str]:
        """The arrays of an example, and the kind of number each is stored as."""
        return {"ids": self.dtype} | {name: f"<{kind.lstrip('<')}" for name, kind in self.task.arrays.items()}

    def piece(self, block: Block) -> Piece:
        """The block in tokens. A wrong record is an error that names its place; a `LeftOut` one is counted."""
        values = {name: array(np.dtype(kind).char) for name, kind in self.kinds.items()}
        lengths: dict[str, list[int]] = {name: [] for name in values}
        parts: dict[str, list[int]] = {name: [] for name in PARTS}
        dropped: Counter[str] = Counter()
        refused: list[str] = []
        records = cut = cut_tokens = 0
        read = self._sections if self.task.packed and self.task.fields == ("text",) else self._examples
        for record, where in block.records():
            try:
                for number, (example, identity, size) in enumerate(read(record, where.continues, block)):
                    for name, given in named(example, self.task).items():
                        values[name].extend(given)
                        lengths[name].append(len(given))
                    start = number == 0 and not where.continues
                    for name, value in zip(PARTS, (identity, size, start), strict=True):
                        parts[name].append(value)
                    records, cut, cut_tokens = records + start, cut + bool(example.cut), cut_tokens + example.cut
            except LeftOut as reason:
                dropped[reason.reason] += 1
                refused += [str(reason)] if reason.told else []
            except CutawayError as error:
                raise CutawayError(f"{where}: {error}") from None
        summary = Summary(len(parts["starts"]), records, len(values["ids"]), dict(dropped), cut, cut_tokens, refused)
        arrays = {
            name: Ragged(np.frombuffer(values[name], kind), np.array(lengths[name], "<u4"))
            for name, kind in self.kinds.items()
        }
        return Piece(summary, arrays, *(np.array(parts[name], kind) for name, kind in PARTS.items()))

    def _sections(self, record: Record, continues: bool, block: Block) -> Iterator[Found]:
        """A document's sections; all but its first go on without the end token that stands before a document."""
        text = record.get("text")
        if isinstance(text, str) and not text.strip() and block.source.kind != "text":
            raise LeftOut("The document is empty.", reason="empty")
        if not isinstance(text, str):
            self.task.examples(record, self.tokenizer)
            return  # not reached: the task has said what is wrong
        for section in sections(text, self.section):
            example = self.task.examples({"text": section}, self.tokenizer)[0]
            if continues and example.ids[0] == self.tokenizer.end:
                example = replace(example, ids=example.ids[1:])
            data = section.encode("utf-8", "surrogatepass")
            yield example, identity(data), len(data)
            continues = True

    def _examples(self, record: Record, continues: bool, block: Block) -> Iterator[Found]:
        """A record's examples, all known by its first field: who has the same source or article stays on one side."""
        first, *others = (record.get(name) for name in self.task.fields)
        known_by = self.task.known_by(record)
        if block.source.kind == "lines" and not all(isinstance(one, str) and one.strip() for one in record.values()):
            raise LeftOut("A line is empty.", reason="empty")
        size = sum(len(one.encode("utf-8", "surrogatepass")) for one in texts((first, *others)))
        name = identity(known_by if isinstance(known_by, bytes) else json.dumps(known_by).encode())
        for example in self.task.examples(record, self.tokenizer):
            yield example, name, size
            size = 0  # counted once


def named(example: Example, task: Task) -> dict[str, Sequence[int]]:
    """All arrays of an example, refused unless they are those that its task says it has."""
    if example.arrays.keys() != task.arrays.keys():
        said, has = (", ".join(sorted(one)) or "none" for one in (task.arrays, example.arrays))
        raise CutawayError(f"The task {task.name} says that its examples have the arrays {said}, and one has {has}.")
    return {"ids": example.ids, **example.arrays}


def texts(value: object) -> Iterator[str]:
    """Every text in a field's value: itself, or those of a list or of messages."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from texts(value.get("content", value.get("text")))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from texts(one)


def identity(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def sections(text: str, size: int) -> Iterator[str]:
    """A text in sections of about `size` characters, cut before the last white space before a word (see records.py)."""
    start = 0
    while len(text) - start > size * 3 // 2:
        end = _cut(text, start + size // 2, start + size)
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


def _cut(text: str, low: int, high: int) -> int:
    for mark in ("\n", " "):
        place = text.rfind(mark, low, high)
        while place >= 0:
            if not text[place + 1].isspace():
                return place
            place = text.rfind(mark, low, place)
    return high


def name(block: Block, method: str) -> str:
    """The name of the piece that this block becomes by this method: equal contents, equal name."""
    head = [method, block.source.kind, block.fields, block.columns, block.begins, block.ends, [*map(len, block.data)]]
    head += block.source.place
    digest = hashlib.sha256(json.dumps(head).encode())
    for data in block.data:
        digest.update(data)
    return f"{digest.hexdigest()[:32]}.piece"
