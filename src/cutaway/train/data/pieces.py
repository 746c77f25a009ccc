"""A piece: one block of data as tokens, in a file that knows whether it is whole."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cutaway.atomic import written_beside
from cutaway.errors import CutawayError
from cutaway.tasks.task import LeftOut, Record, Task
from cutaway.train.blocks import Block

if TYPE_CHECKING:
    from cutaway.text.tokenizer import Tokenizer

MAGIC = b"cutaway piece 2\n"
PARTS = {"lengths": "<u4", "hashes": "<u8", "answers": "<u4", "labels": "<i4", "sizes": "<u4", "starts": "<u1"}
"""What is kept of each example beside its tokens, and in what kind of number."""


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

    def __add__(self, other: Summary) -> Summary:
        return Summary(
            self.examples + other.examples,
            self.records + other.records,
            self.tokens + other.tokens,
            dict(Counter(self.dropped) + Counter(other.dropped)),
            self.cut + other.cut,
            self.cut_tokens + other.cut_tokens,
        )


@dataclass(frozen=True)
class Piece:
    """The examples of one block."""

    summary: Summary
    tokens: NDArray[Any]
    lengths: NDArray[np.uint32]
    hashes: NDArray[np.uint64]
    """What the example is known by when some are held out: alike for equal ones."""
    answers: NDArray[np.uint32]
    labels: NDArray[np.int32]
    """-1 where there is none."""
    sizes: NDArray[np.uint32]
    """UTF-8 bytes of the text."""
    starts: NDArray[np.uint8]
    """1 where a record or document begins, 0 where its next example or section follows."""
    counted: NDArray[np.uint8]
    """1 for each token that counts in the loss, in tasks whose examples have several answers; else empty."""

    def write(self, path: Path) -> None:
        """Write the piece beside its place and move it there."""
        arrays = [self.tokens, *(getattr(self, name) for name in PARTS), self.counted]
        digest = hashlib.sha256()
        for one in arrays:
            digest.update(one.data)
        head = {"dtype": self.tokens.dtype.str, "digest": digest.hexdigest(), "counted": len(self.counted)}
        head |= vars(self.summary)
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
            dtype, digest, counted = head.pop("dtype"), head.pop("digest"), int(head.pop("counted"))
            summary = Summary(**head)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if hashlib.sha256(data).hexdigest() != digest:
            return None
        arrays, place = [], 0
        parts = [(kind, summary.examples) for kind in PARTS.values()]
        for kind, count in [(dtype, summary.tokens), *parts, ("<u1", counted)]:
            arrays.append(np.frombuffer(data, kind, count, place))
            place += arrays[-1].nbytes
        return cls(summary, *arrays)


Found = tuple[list[int], int, int, int, int, int, list[bool] | None]
"""An example: ids, answer, label, tokens cut, what it is known by, bytes of its text, and which ids count."""


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
    def many_answers(self) -> bool:
        """Whether every token must be told whether it counts in the loss."""
        return self.task.name == "chat"

    def piece(self, block: Block) -> Piece:
        """The block in tokens. A wrong record is an error that names its place; a `LeftOut` one is counted."""
        tokens = array("H" if self.dtype == "<u2" else "I")
        parts: dict[str, list[int]] = {name: [] for name in PARTS}
        counted = bytearray()
        dropped: Counter[str] = Counter()
        records = cut = cut_tokens = 0
        plain = self.task.name == "language"
        for record, where in block.records():
            try:
                found = self._sections(record, where.continues, block) if plain else self._examples(record, block)
                for number, (ids, answer, label, gone, identity, size, counts) in enumerate(found):
                    tokens.extend(ids)
                    counted.extend(counts or ())
                    start = number == 0 and not where.continues
                    for name, value in zip(PARTS, (len(ids), identity, answer, label, size, start), strict=True):
                        parts[name].append(value)
                    records, cut, cut_tokens = records + start, cut + bool(gone), cut_tokens + gone
            except LeftOut as reason:
                dropped[reason.reason] += 1
            except CutawayError as error:
                raise CutawayError(f"{where}: {error}") from None
        summary = Summary(len(parts["lengths"]), records, len(tokens), dict(dropped), cut, cut_tokens)
        arrays = [np.array(parts[name], kind) for name, kind in PARTS.items()]
        arrays.append(np.frombuffer(counted, "<u1"))
        return Piece(summary, np.frombuffer(tokens, self.dtype), *arrays)

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
            ids = example.ids[example.answer :] if continues else example.ids
            data = section.encode("utf-8", "surrogatepass")
            yield ids, example.answer, -1, example.cut, identity(data), len(data), None
            continues = True

    def _examples(self, record: Record, block: Block) -> Iterator[Found]:
        """A record's examples, all known by its first field: who has the same source or article stays on one side."""
        first, *others = (record.get(name) for name in self.task.fields)
        if block.source.kind == "lines" and not all(isinstance(one, str) and one.strip() for one in record.values()):
            raise LeftOut("A line is empty.", reason="empty")
        size = sum(len(one.encode("utf-8", "surrogatepass")) for one in texts((first, *others)))
        name = identity(json.dumps(first).encode())
        for example in self.task.examples(record, self.tokenizer):
            label = -1 if example.label is None else example.label
            yield example.ids, example.answer, label, example.cut, name, size, example.counted
            size = 0  # counted once


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
    digest = hashlib.sha256(json.dumps(head).encode())
    for data in block.data:
        digest.update(data)
    return f"{digest.hexdigest()[:32]}.piece"
