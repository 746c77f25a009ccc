"""What was uploaded, read as data and nothing else: JSON objects, one a line; and which task they are for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from cutaway.errors import CutawayError
from cutaway.tasks import load_task, task_from

LONGEST = 8 << 20
"""Bytes that a line may have."""
KNOWN = ("chat", "completion", "language")
"""The tasks whose records are known by their fields, whatever the model."""


def check_records(file: IO[bytes]) -> int:
    """Refuse what is not JSON objects, one a line, with the place; how many there are."""
    count = sum(1 for _ in read_records(file))
    if not count:
        raise CutawayError("The file is empty: it must hold JSON objects, one a line.")
    return count


def read_records(file: IO[bytes]) -> Iterator[dict[str, Any]]:
    number = 0
    while line := file.readline(LONGEST + 1):
        number += 1
        if len(line) > LONGEST:
            raise CutawayError(f"Line {number:,} of the file is longer than {LONGEST:,} bytes.")
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            record = json.loads(text, parse_constant=no_constant) if text else None
        except UnicodeDecodeError:
            raise CutawayError(f"Line {number:,} of the file is not UTF-8 text.") from None
        except (ValueError, RecursionError) as error:
            raise CutawayError(f"Line {number:,} of the file is not JSON: {str(error)[:200]}.") from None
        if text:
            if not isinstance(record, dict):
                raise CutawayError(f"Line {number:,} of the file is not a JSON object like {{...}}.")
            yield record


def no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def task_for(record: dict[str, Any], base: Path) -> dict[str, Any]:
    """The task that records like this one are for: that of the model they are to teach, if it fits, or a known one."""
    own = load_task(base)
    if all(field in record for field in own.fields):
        return dict(own.settings())
    for name in KNOWN:
        if all(field in record for field in task_from({"name": name}).fields):
            return {"name": name}
    known = "; ".join(" and ".join(map(repr, task_from({"name": name}).fields)) for name in KNOWN)
    wanted = f", or as this model learned: {' and '.join(map(repr, own.fields))}" if own.name not in KNOWN else ""
    raise CutawayError(f"The records have none of the known fields. They must have {known}{wanted}.")
