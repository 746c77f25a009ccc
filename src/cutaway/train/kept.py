"""Data that comes from memory: written down beside the training, so that it can be gone through twice, and resumed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cutaway.atomic import written_beside
from cutaway.errors import CutawayError
from cutaway.tasks.task import Record
from cutaway.train.state import cannot_write

FILE = "records.jsonl"
"""Where they are kept, in `training/` of the output folder."""


def keep_records(records: Iterable[Record], output: Path) -> Path:
    """Write the records down, one JSON object a line; where they stand."""
    path = output / "training" / FILE
    try:
        with written_beside(path) as beside:
            write_records(records, beside)
    except OSError as error:
        raise cannot_write(path, error) from error
    return path


@contextmanager
def named_as_given(output: Path) -> Iterator[None]:
    """What is wrong with a line of the file is said of the record that was given."""
    try:
        yield
    except CutawayError as error:
        place = re.escape(str((output / "training" / FILE).absolute()))
        said = re.sub(
            rf"^{place}, line ([\d,]+)", lambda found: f"records[{int(found[1].replace(',', '')) - 1}]", str(error)
        )
        raise CutawayError(said, error.code, **error.values) from None


def require_same(records: Iterable[Record], output: Path) -> None:
    """Refuse to go on with other records than the training began with, which stay as they are."""
    path = output / "training" / FILE
    beside = path.with_name(f".{FILE}.{os.getpid()}.partial")
    try:
        write_records(records, beside)
        same = path.is_file() and path.read_bytes() == beside.read_bytes()
    except OSError as error:
        raise cannot_write(beside, error) from error
    finally:
        beside.unlink(missing_ok=True)
    if not same:
        raise CutawayError(
            "These are not the texts or records that this training started with. Resume it without any (it has kept "
            "its own), or start a new training in another folder."
        )


def write_records(records: Iterable[Record], path: Path) -> None:
    with path.open("w", encoding="ascii") as file:
        for number, record in enumerate(records):
            try:
                file.write(json.dumps(dict(record)) + "\n")
            except (TypeError, ValueError) as error:
                raise CutawayError(f"records[{number}] cannot be written down as JSON: {error}.") from None
