"""What every kind of checkpoint needs of the file system: JSON, and files of weights."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
