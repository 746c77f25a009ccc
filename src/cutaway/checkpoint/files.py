"""What every kind of checkpoint needs of the file system: JSON, weight files, and a folder replaced all at once."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cutaway.atomic import flush
from cutaway.errors import CutawayError

if TYPE_CHECKING:
    from torch import Tensor

JSON_BYTES = 100_000_000
POINTER = b"version https://git-lfs.github.com/spec/"


class Lazy(Mapping[str, "Tensor"]):
    """Tensors by name, each read when it is asked for: none stays in memory beside the model being built."""

    def __init__(self, readers: Mapping[str, Callable[[], Tensor]]):
        self.readers = dict(readers)

    def __getitem__(self, name: str) -> Tensor:
        return self.readers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self.readers)

    def __len__(self) -> int:
        return len(self.readers)


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    size = check(path).stat().st_size
    if size > JSON_BYTES:
        raise CutawayError(f"{path} is {size:,} bytes long, far too large for such a file.")
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CutawayError(f"{path} is not valid JSON: {error}.") from None
    if not isinstance(value, dict):
        raise CutawayError(f"{path} should hold a JSON object {{...}}, and holds a {type(value).__name__}.")
    return value


def check(path: Path) -> Path:
    """The path, if a file is there that can be read and is not Git LFS's note that it has yet to be fetched."""
    try:
        with path.open("rb") as file:
            if file.read(len(POINTER)) == POINTER:
                raise CutawayError(
                    f"{path} is not the file itself but a Git LFS pointer to it. "
                    f"Download the file: `git lfs pull` in {path.parent}."
                )
    except FileNotFoundError:
        raise CutawayError(f"There is no file {path}. Was everything downloaded or copied?") from None
    except OSError as error:
        raise CutawayError(f"{path} cannot be read: {error.strerror}.") from None
    return path


def plain(name: object, source: Path) -> str:
    """A file's name as some other file gives it, refused unless it stays in the same folder."""
    if not isinstance(name, str) or not name or name in (".", "..") or set(name) & set("/\\:\0"):
        raise CutawayError(f"{source} names {name!r} as a file of weights, which is not the name of a file beside it.")
    return name


def shown(name: str) -> str:
    """A name out of a file, fit for a message: short, and with nothing in it that a terminal would obey."""
    short = name if len(name) <= 100 else name[:100] + "..."
    return short if short.isprintable() else ascii(short)


@contextmanager
def replacing(folder: Path, last: str, stale: re.Pattern[str], size: int) -> Iterator[Path]:
    """Write into the folder this gives; at the end its files take their places in `folder`, all of them or none.

    Files already there stay, unless they have the name of a new one or one that matches `stale`. The file called `last`
    is the first to go and the last to come, so that a reader finds the old checkpoint, the new one or none, but no mix.
    `size` is about how many bytes are needed, for the message when there are not so many.
    """
    beside = folder if folder.is_dir() else folder.parent
    new = beside / f".{folder.name}.{uuid.uuid4().hex[:8]}.partial"
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
