"""Files that are there whole or not at all: written beside their place, then moved there.

Whole folders are replaced by `cutaway.checkpoint.files.replacing`.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_beside(path: Path) -> Iterator[Path]:
    """A path to write to, which takes the place of `path` at the end; if anything goes wrong, nothing is left of it."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        yield beside
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """The file with this text, or the one that was there."""
    with written_beside(path) as beside:
        beside.write_text(text, encoding="utf-8")


def flush(path: Path) -> None:
    """Have a file, or the names in a folder, on the disk itself, so that not even a power cut loses it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
