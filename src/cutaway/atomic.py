"""Files that are there whole or not at all: written beside their place, then moved there."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cutaway.errors import CutawayError


@contextmanager
def written_beside(path: Path) -> Iterator[Path]:
    """A path to write to, which takes the place of `path` at the end; if anything goes wrong, nothing is left of it."""
    beside = path.with_name(f".{path.name}.{os.urandom(4).hex()}.partial")
    try:
        yield beside
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """The file with this text, or the one that was there."""
    with written_beside(path) as beside:
        try:
            beside.write_text(text, encoding="utf-8")
        except FileNotFoundError as error:
            raise FileNotFoundError(error.errno, error.strerror, str(path)) from None  # not the name beside it


def flush(path: Path) -> None:
    """Have a file, or the names in a folder, on the disk itself, so that not even a power cut loses it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def replacing(folder: Path, last: str, stale: re.Pattern[str], size: int) -> Iterator[Path]:
    """Write into the folder this gives; at the end its files take their places in `folder`, all of them or none.

    Files already there stay, unless they have the name of a new one or one that matches `stale`. The file called `last`
    is the first to go and the last to come, so that a reader finds the old checkpoint, the new one or none, but no mix.
    `size` is about how many bytes are needed, for the message when there are not so many.
    """
    import shutil

    beside = folder if folder.is_dir() else folder.parent
    new = beside / f".{folder.name}.{os.urandom(4).hex()}.partial"
    try:
        try:
            new.mkdir(parents=True)
            yield new
            for path in new.iterdir():
                flush(path)
            if beside is folder:
                old = {path.name for path in folder.iterdir() if stale.fullmatch(path.name)}
                _swap(new, folder, last, old)
            else:
                new.rename(folder)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    except OSError as error:
        need = f" (about {size:,} bytes are needed)" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        raise CutawayError(
            f"Nothing could be written to {folder}: {error.strerror or error}{need}. What was there is unchanged."
        ) from error


def _swap(new: Path, folder: Path, last: str, stale: Iterable[str]) -> None:
    """Old files out, new files in; if anything goes wrong, back again."""
    names = sorted((path.name for path in new.iterdir()), key=lambda name: name == last)
    out = sorted({*names, *stale}, key=lambda name: name != last)
    aside = new / "old"
    aside.mkdir()
    moved: list[str] = []
    placed: list[str] = []
    try:
        for name in out:
            if os.path.lexists(folder / name):
                (folder / name).replace(aside / name)
                moved.append(name)
        for name in names:
            (new / name).replace(folder / name)
            placed.append(name)
    except BaseException:
        for name in placed:
            (folder / name).unlink()
        for name in moved:
            (aside / name).replace(folder / name)
        raise


@contextmanager
def folder_written_beside(folder: Path) -> Iterator[Path]:
    """A folder to write into, which takes the place of `folder` at the end, whole; if anything goes wrong, what was
    there stays as it was.
    """
    import shutil

    folder = folder.resolve()
    new = folder.with_name(f".{folder.name}.{os.urandom(4).hex()}.partial")
    old = new.with_suffix(".old")
    try:
        new.mkdir(parents=True)
        yield new
        if folder.exists():
            folder.rename(old)
        try:
            new.rename(folder)
        except BaseException:
            if old.exists():
                old.rename(folder)
            raise
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
