"""Files -> records, as a stream: text, JSON lines, tables and Parquet, packed or not, of any size.

Files are cut into blocks of a few megabytes that can be read independently of each other: a block is what one process
tokenises at a time, and its bytes alone decide what becomes of it.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path
from typing import Any

from cutaway.errors import CutawayError, nearest
from cutaway.tasks.task import Record
from cutaway.train.data.blocks import END, Block, Where, picked
from cutaway.train.data.sources import Source, Stream, extra, find

BLOCK = 4 << 20
"""About how many bytes of text one block has."""
LONGEST = 64 << 20
"""The longest line, or field of a .csv, that is taken for a record and not for a mistake."""

SEPARATOR = re.compile(rf"{re.escape(END)}[ \t]*\r?\n".encode())
# Line breaks and spaces that come last before a word: cutting in front of one leaves GPT-2's tokens as they are,
# because its first cut of a text falls there too.
_SPACE = rb"[\t-\r\x1c-\x20]|\xc2[\x85\xa0]|\xe1\x9a\x80|\xe2\x80[\x80-\x8a\xa8\xa9\xaf]|\xe2\x81\x9f|\xe3\x80\x80"
_LAST_BREAK, _LAST_SPACE = (re.compile(rb"%s(?!%s|\Z)" % (first, _SPACE)) for first in (rb"\n", rb"[\t-\r\x20]"))


def records(
    paths: Sequence[Path | str], columns: Mapping[str, str | int] | None = None, fields: Sequence[str] = ("text",)
) -> Iterator[tuple[Record, Where]]:
    """Every record in these files and folders, in order, with its place.

    `fields` are what a record must have; `columns` says where they are, if not under their own name: a key, the heading
    of a column or its number from 0, or the ending of a file of lines. A .txt holds documents, divided by lines
    that say `<|endoftext|>`; one longer than a few megabytes comes in several records, marked `continues`.
    """
    for source in find(paths, fields, columns).read:
        for block in blocks(source, fields, columns):
            yield from block.records()


def blocks(
    source: Source, fields: Sequence[str], columns: Mapping[str, str | int] | None = None, size: int = BLOCK
) -> Iterator[Block]:
    """A source in blocks of about `size` bytes, cut between records, or inside a long text between words."""
    names = _names(fields, columns)
    makers = {
        "text": _text,
        "jsonl": _json_lines,
        "table": _table,
        "lines": _parallel,
        "csv": _csv,
        "parquet": _parquet,
        "midi": _whole,
    }
    return makers[source.kind](source, tuple(fields), names, size)


def _names(fields: Sequence[str], columns: Mapping[str, str | int] | None) -> tuple[str | int, ...] | None:
    """Where each field is to be found, if anything was said about it."""
    for field, name in (columns or {}).items():
        if field not in fields:
            raise CutawayError(f"The task has no field {field!r}: it has {', '.join(fields)}.{nearest(field, fields)}")
        if isinstance(name, bool) or not isinstance(name, str | int) or (isinstance(name, int) and name < 0):
            raise CutawayError(f"The column of {field!r} must be a name or a number from 0, not {name!r}.")
    if not columns:
        return None
    names = tuple(columns.get(field, field) for field in fields)
    if len({type(name) for name in names}) > 1:
        raise CutawayError(f"Columns are named or numbered, all of them: say where each of {', '.join(fields)} is.")
    return names


def _text(source: Source, fields: tuple[str, ...], names: Any, size: int) -> Iterator[Block]:
    line, before, begins = 1, 0, True
    with Stream(source.paths[0]) as stream:
        first = stream.read(3)
        rest = first.removeprefix(b"\xef\xbb\xbf")
        offset = len(first) - len(rest)
        while True:
            data = rest + stream.read(size - len(rest))
            at_end = len(data) < size
            cut, ends = (len(data), True) if at_end else _cut(data)
            if cut:
                yield Block(
                    source, (data[:cut],), fields, ("text",), line, offset, begins, ends, stream.consumed - before
                )  # fmt: skip
            if at_end:
                return
            line, offset, before = line + data.count(b"\n", 0, cut), offset + cut, stream.consumed
            rest, begins = data[cut:], ends


def _cut(data: bytes) -> tuple[int, bool]:
    """Where to end a block: after its last whole document (True), or else between two words of a long one (False)."""
    place = data.rfind(END.encode())
    while place >= 0:
        match = SEPARATOR.match(data, place)
        if match and (place == 0 or data[place - 1] == 0x0A):
            return match.end(), True
        place = data.rfind(END.encode(), 0, place)
    for mark, pattern in ((b"\n", _LAST_BREAK), (b" ", _LAST_SPACE)):
        place = data.rfind(mark, len(data) // 2)
        while place > 0:
            if pattern.match(data, place):
                return place, False
            place = data.rfind(mark, len(data) // 2, place)
    place = len(data) - 1
    while place > len(data) - 4 and data[place] & 0xC0 == 0x80:  # not inside a character
        place -= 1
    return place, False


def _whole(source: Source, fields: tuple[str, ...], names: Any, size: int) -> Iterator[Block]:
    """A file that is one record; of one that no record could be as long as, the beginning."""
    with Stream(source.paths[0]) as stream:
        data = stream.read(LONGEST)
        yield Block(source, (data,), fields, fields, consumed=stream.consumed)


def _whole_lines(stream: Stream, size: int) -> Iterator[bytes]:
    """The file in parts of whole lines."""
    waiting: list[bytes] = []
    line = 1
    while data := stream.read(size):
        end = data.rfind(b"\n") + 1
        waiting.append(data[:end] if end else data)
        if end:
            yield (whole := b"".join(waiting))
            line += whole.count(b"\n")
            waiting = [data[end:]]
        elif sum(map(len, waiting)) > LONGEST:
            raise CutawayError(
                f"{stream.path}, line {line:,} is more than {LONGEST:,} bytes long. There must be one record per line: "
                "has this file lost its line breaks, or the wrong ending in its name?"
            )
    if last := b"".join(waiting):
        yield last


def _line_blocks(
    source: Source, fields: tuple[str, ...], names: tuple[str | int, ...], size: int, stream: Stream, skip: int
) -> Iterator[Block]:
    """Blocks of lines, the first `skip` of them left out."""
    line, offset, before = 1, 0, 0
    for data in _whole_lines(stream, size):
        start = len(b"\xef\xbb\xbf") if line == 1 and data.startswith(b"\xef\xbb\xbf") else 0
        if line == 1 and skip:
            start = data.find(b"\n") + 1 or len(data)
        if data[start:]:
            yield Block(
                source, (data[start:],), fields, names, line + data.count(b"\n", 0, start), offset + start,
                consumed=stream.consumed - before,
            )  # fmt: skip
        line, offset, before = line + data.count(b"\n"), offset + len(data), stream.consumed


def _json_lines(
    source: Source, fields: tuple[str, ...], names: tuple[str | int, ...] | None, size: int
) -> Iterator[Block]:
    if names and isinstance(names[0], int):
        raise CutawayError(f"{source.paths[0]} holds JSON: its columns have names, not numbers.")
    with Stream(source.paths[0]) as stream:
        yield from _line_blocks(source, fields, names or fields, size, stream, skip=0)


def _table(source: Source, fields: tuple[str, ...], names: tuple[str | int, ...] | None, size: int) -> Iterator[Block]:
    with Stream(source.paths[0]) as stream:
        first = next(_whole_lines(stream, 1 << 16), b"").partition(b"\n")[0].removeprefix(b"\xef\xbb\xbf")
        if not first.strip():
            raise CutawayError(
                f"{stream.path} begins with an empty line or has none at all: a table of records is expected."
            )
        row = Block(source, (first,), fields, ()).text().removesuffix("\r").split("\t")
    columns, heading = _heading(row, fields, names, Where(source.paths[0], 1))
    with Stream(source.paths[0]) as stream:
        yield from _line_blocks(source, fields, columns, size, stream, skip=int(heading))


def _heading(
    row: list[str], fields: tuple[str, ...], names: tuple[str | int, ...] | None, where: Where
) -> tuple[tuple[int, ...], bool]:
    """The numbers of the columns, and whether the table's first row is its heading and not a record."""
    if names and isinstance(names[0], int):
        return tuple(int(name) for name in names), False
    wanted = [str(name) for name in names or fields]
    if all(name in row for name in wanted):
        return tuple(row.index(name) for name in wanted), True
    if names:
        missing = next(name for name in wanted if name not in row)
        raise CutawayError(
            f"{where}: the heading has no column {missing!r}, it has {_some(row)}.{nearest(missing, row)}"
        )
    if len(row) == len(fields):
        return tuple(range(len(fields))), False
    numbers = ", ".join(f"{field} = {number}" for number, field in enumerate(fields))
    raise CutawayError(
        f"{where}: a table of {len(row)} columns, and the task needs {len(fields)} ({', '.join(fields)}): "
        f"say which they are, as in columns = {{ {numbers} }}, or by their names in a heading."
    )


def _some(row: Sequence[str]) -> str:
    return ", ".join(repr(name[:40]) for name in row[:8]) + (", ..." if len(row) > 8 else "")


def _parallel(source: Source, fields: tuple[str, ...], names: Any, size: int) -> Iterator[Block]:
    with ExitStack() as stack:
        streams = [stack.enter_context(Stream(path)) for path in source.paths]
        line, before, held = 1, 0, 0
        rows: list[tuple[bytes, ...]] = []

        def block() -> Block:
            data = tuple(b"".join(side) for side in zip(*rows, strict=True))
            return Block(source, data, fields, fields, line, consumed=sum(one.consumed for one in streams) - before)

        for number, row in enumerate(zip_longest(*(_each_line(one, size) for one in streams)), 1):
            if None in row:
                short = source.paths[row.index(None)]
                others = " and ".join(str(one) for one in source.paths if one != short)
                raise CutawayError(
                    f"{short} has {number - 1:,} lines and {others} more: line for line they must belong together."
                )
            rows.append(row)
            held += sum(map(len, row))
            if held >= size:
                yield block()
                line, before, rows, held = number + 1, sum(one.consumed for one in streams), [], 0
        if rows:
            yield block()


def _each_line(stream: Stream, size: int) -> Iterator[bytes]:
    """The lines of a file, every one with its line break."""
    first = True
    for data in _whole_lines(stream, size):
        if first:
            data, first = data.removeprefix(b"\xef\xbb\xbf"), False
        for line in data.split(b"\n")[: -1 if data.endswith(b"\n") else None]:
            yield line + b"\n"


def _csv(source: Source, fields: tuple[str, ...], names: tuple[str | int, ...] | None, size: int) -> Iterator[Block]:
    path = source.paths[0]
    csv.field_size_limit(LONGEST)  # the module's own limit is 128 KB, less than many an article

    def lines(stream: Stream) -> Iterator[str]:
        for block in _line_blocks(source, fields, (), 1 << 18, stream, skip=0):
            text = block.text()
            yield from (line + "\n" for line in text.removesuffix("\n").split("\n"))

    def rows() -> Iterator[tuple[int, list[Any], int]]:
        columns: tuple[int, ...] | None = None
        with Stream(path) as stream:
            reader = csv.reader(lines(stream), strict=True)
            start = 1
            try:
                for row in reader:
                    where, start = Where(path, start), reader.line_num + 1
                    if columns is None:
                        columns, heading = _heading(row, fields, names, where)
                        row = [] if heading else row
                    if row:
                        yield where.line, list(picked(row, fields, columns, where).values()), stream.consumed
            except csv.Error as error:
                raise CutawayError(
                    f"{Where(path, start)}: this is not CSV: {error}. Is a quotation mark missing?"
                ) from None

    return _row_blocks(source, fields, rows(), size)


def _parquet(
    source: Source, fields: tuple[str, ...], names: tuple[str | int, ...] | None, size: int
) -> Iterator[Block]:
    path = source.paths[0]
    parquet = extra("pyarrow.parquet", path)
    arrow = extra("pyarrow", path)
    try:
        with parquet.ParquetFile(path) as file:
            has = file.schema_arrow.names
            wanted = [has[name] if isinstance(name, int) and name < len(has) else name for name in names or fields]
            for name in wanted:
                if name not in has:
                    raise CutawayError(f"{path} has no column {name!r}, it has {_some(has)}.{nearest(str(name), has)}")

            def rows() -> Iterator[tuple[int, list[Any], int]]:
                number, bytes_in_all = 0, path.stat().st_size
                for batch in file.iter_batches(batch_size=256, columns=wanted, use_threads=False):
                    for row in batch.to_pylist():
                        number += 1
                        yield number, [row[name] for name in wanted], bytes_in_all * number // file.metadata.num_rows

            yield from _row_blocks(source, fields, rows(), size)
    except (arrow.ArrowException, OSError) as error:
        raise CutawayError(f"{path} cannot be read as Parquet: {str(error).strip()[:200]}") from None


def _row_blocks(
    source: Source, fields: tuple[str, ...], rows: Iterator[tuple[int, list[Any], int]], size: int
) -> Iterator[Block]:
    """Rows that only one reader can take from their file, written down as JSON lines: number and values."""
    waiting: list[bytes] = []
    held, before, consumed = 0, 0, 0
    for number, values, consumed in rows:
        try:
            waiting.append(json.dumps([number, values], ensure_ascii=True).encode() + b"\n")
        except TypeError:
            odd = next(value for value in values if not isinstance(value, str | int | float | list | None))
            raise CutawayError(f"{Where(source.paths[0], number)}: {odd!r:.40} is neither text nor a number.") from None
        held += len(waiting[-1])
        if held >= size:
            yield Block(source, (b"".join(waiting),), fields, fields, consumed=consumed - before)
            waiting, held, before = [], 0, consumed
    if waiting:
        yield Block(source, (b"".join(waiting),), fields, fields, consumed=consumed - before)
