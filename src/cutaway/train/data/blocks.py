"""A block: a few megabytes of data that can be read by themselves, and the records in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cutaway.errors import CutawayError, nearest
from cutaway.tasks import TASKS, Record
from cutaway.train.data.sources import Source, look

END = "<|endoftext|>"
"""On a line of its own in a .txt this ends a document."""
SEPARATOR = re.compile(rf"{re.escape(END)}[ \t]*\r?(?:\n|\Z)")


@dataclass(frozen=True)
class Where:
    """The place of a record, for people."""

    path: Path
    line: int
    continues: bool = False
    """Whether this goes on with the text of the record before: a document longer than a block comes in several."""

    def __str__(self) -> str:
        if not self.line:  # the whole file is one record
            return str(self.path)
        return f"{self.path}, {'row' if self.path.suffix == '.parquet' else 'line'} {self.line:,}"


@dataclass(frozen=True)
class Block:
    """A part of a source that can be read by itself."""

    source: Source
    data: tuple[bytes, ...]
    """The bytes: of each file, if there are several."""
    fields: tuple[str, ...]
    columns: tuple[str | int, ...]
    """Where each field is: the name or the number of its column."""
    line: int = 1
    """The number of its first line."""
    offset: int = 0
    """How many bytes of the (unpacked) file come before."""
    begins: bool = True
    ends: bool = True
    """Of plain text: whether its first document begins and its last one ends in this block."""
    consumed: int = 0
    """How many bytes of the file itself this block took."""

    def records(self) -> Iterator[tuple[Record, Where]]:
        """The records in the block, each with its place."""
        match self.source.kind:
            case "text":
                return self._documents()
            case "jsonl":
                return self._objects()
            case "table":
                return self._table()
            case "lines":
                return self._lines()
            case "midi":
                [place] = self.source.place
                record = {"midi": self.data[0], "name": str(self.source.paths[0]), "place": place}
                return iter([(record, Where(self.source.paths[0], 0))])
        return self._rows()

    def text(self, number: int = 0) -> str:
        """The bytes as text; a byte that is not UTF-8 is reported with its file, line and place."""
        data, path = self.data[number], self.source.paths[number]
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            line = self.line + data.count(b"\n", 0, error.start)
            place = f" at byte {self.offset + error.start:,}" if number == 0 else ""
            raise CutawayError(
                f"{path}, line {line:,}: {data[error.start]:#04x}{place} is not UTF-8 text. {look(path)}"
            ) from None

    def _documents(self) -> Iterator[tuple[Record, Where]]:
        text, line, start, continues = self.text(), self.line, 0, not self.begins
        ends = [
            match.span()
            for match in SEPARATOR.finditer(text)
            if (match.start() == 0 or text[match.start() - 1] == "\n") and (self.ends or text[match.end() - 1] == "\n")
        ]
        if self.ends:
            ends.append((len(text), len(text)))
        for end, after in ends:
            document = _without_break(text[start:end])
            if document if continues else document.strip():
                yield {"text": document}, Where(self.source.paths[0], line, continues)
            line += text.count("\n", start, after)
            start, continues = after, False
        if not self.ends:
            yield {"text": text[start:]}, Where(self.source.paths[0], line, continues)

    def _objects(self) -> Iterator[tuple[Record, Where]]:
        for where, line in self._each_line():
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                what = f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
                hint = ""
                if line.startswith("["):
                    hint = " There must be one record per line, {...}, not one list: `jq -c .[] x.json > x.jsonl`."
                raise CutawayError(f"{where}: this is not JSON: {what}.{hint}") from None
            if not isinstance(record, dict):
                raise CutawayError(f"{where}: a record is a JSON object {{...}}, not a {type(record).__name__}.")
            for column in self.columns:
                if column not in record:
                    has, close = ", ".join(map(repr, record)) or "nothing", nearest(str(column), record)
                    raise CutawayError(f"{where}: there is no {column!r}, the record has {has}.{close or fits(record)}")
            yield {field: record[str(name)] for field, name in zip(self.fields, self.columns, strict=True)}, where

    def _table(self) -> Iterator[tuple[Record, Where]]:
        for where, line in self._each_line():
            yield picked(line.split("\t"), self.fields, self.columns, where), where

    def _lines(self) -> Iterator[tuple[Record, Where]]:
        sides = [self.text(number).split("\n") for number in range(len(self.data))]
        for number, row in enumerate(zip(*sides, strict=True)):
            if number < len(sides[0]) - 1:  # after the last line break there is nothing
                record = {field: value.removesuffix("\r") for field, value in zip(self.fields, row, strict=True)}
                yield record, Where(self.source.paths[0], self.line + number)

    def _rows(self) -> Iterator[tuple[Record, Where]]:
        for row in self.data[0].splitlines():
            line, values = json.loads(row)
            yield dict(zip(self.fields, values, strict=True)), Where(self.source.paths[0], line)

    def _each_line(self) -> Iterator[tuple[Where, str]]:
        for number, line in enumerate(self.text().split("\n"), self.line):
            if line.strip():
                yield Where(self.source.paths[0], number), line.removesuffix("\r")


def picked(row: Sequence[str], fields: Sequence[str], columns: Sequence[str | int], where: Where) -> dict[str, Any]:
    """The fields of a table's row."""
    for field, column in zip(fields, columns, strict=True):
        if int(column) >= len(row):
            raise CutawayError(
                f"{where}: {field!r} should be in column {column} (from 0), and there are {len(row)} columns."
            )
    return {field: row[int(column)] for field, column in zip(fields, columns, strict=True)}


def fits(record: Record) -> str:
    """For a record that is not the task's: the tasks it looks made for."""
    names = [name for name, kind in TASKS.items() if set(kind.fields) <= record.keys()]
    return f" It looks like one for the task {' or '.join(names)}: name that." if names else ""


def _without_break(text: str) -> str:
    """A text without the one line break at its end: that belongs to the line that ends it."""
    return text[:-2] if text.endswith("\r\n") else text.removesuffix("\n")
