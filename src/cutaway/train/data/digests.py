"""The contents of files in a few characters: equal if and only if the contents are."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from cutaway.atomic import write_text
from cutaway.errors import CutawayError
from cutaway.processor import cores

SEGMENT = 32 << 20
JUST_NOW = 2_000_000_000
"""Nanoseconds. A file changed so shortly before it was read may change again without its times showing it."""


def digests(paths: Sequence[Path], memo: Path) -> list[str]:
    """A digest of each file's contents. A file whose size and times are as the memo knows them is not read again."""
    known = _known(memo)
    found: list[str] = []
    news = False
    for path in paths:
        name, stamp = str(path.resolve()), _stamp(path)
        entry = known.get(name)
        if entry is None or entry[:-2] != stamp or max(stamp[1:3]) + JUST_NOW > entry[-2]:
            at = time.time_ns()
            known[name] = entry = [*stamp, at, _digest(path, stamp[0])]
            news = True
        found.append(str(entry[-1]))
    if news:
        with contextlib.suppress(OSError):  # a cache that cannot be written may still be read
            write_text(memo, json.dumps(known))
    return found


def _known(memo: Path) -> dict[str, list[Any]]:
    try:
        known = json.loads(memo.read_text(encoding="utf-8"))
        return {name: entry for name, entry in known.items() if isinstance(entry, list) and len(entry) == 6}
    except (OSError, ValueError, AttributeError):  # not there, or damaged: everything is read once more
        return {}


def _stamp(path: Path) -> list[int]:
    """Size, time of writing, time of any change, and number of a file: what cannot stay the same when it is changed."""
    try:
        stat = path.stat()
    except OSError as error:
        raise CutawayError(f"{path} cannot be read: {error.strerror}.") from None
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]


def _digest(path: Path, size: int) -> str:
    """SHA-256 over those of the file's segments, so that a large file keeps several cores busy.

    (Processors have instructions for SHA-256: it is twice as fast here as BLAKE2.)
    """

    def segment(start: int) -> bytes:
        seen = hashlib.sha256()
        with path.open("rb") as file:
            file.seek(start)
            left = SEGMENT
            while left and (data := file.read(min(left, 1 << 20))):
                seen.update(data)
                left -= len(data)
        return seen.digest()

    try:
        with ThreadPoolExecutor(min(4, cores())) as threads:
            parts = list(threads.map(segment, range(0, size, SEGMENT)))
    except OSError as error:
        raise CutawayError(f"{path} cannot be read: {error.strerror}.") from None
    return hashlib.sha256(b"".join([size.to_bytes(8, "little"), *parts])).hexdigest()
