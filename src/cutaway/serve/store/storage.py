"""The bytes of files and models: in a folder, or wherever fsspec reaches (s3://, gs://, memory://), by its address.

In a folder a file is on the disk, whole and under its name, before `write` returns; object stores do so by themselves.
"""

from __future__ import annotations

import errno
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from cutaway.atomic import flush, written_beside
from cutaway.errors import CutawayError
from cutaway.serve.store.database import Unavailable

PIECE = 1 << 20
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*(/[A-Za-z0-9][A-Za-z0-9._:-]*)*")


class NoRoom(CutawayError):
    """The disk is full; nothing is left of what was to be written."""


class Storage:
    """Named files below one address. Names are the server's own, never a client's."""

    def __init__(self, address: str, cache: Path):
        try:
            self.fs, self.root = url_to_fs(address, use_listings_cache=False)  # other servers write there, too
        except (ImportError, ValueError) as error:
            raise CutawayError(f"The storage {address} cannot be used: {error}.") from None
        self.local, self.cache = isinstance(self.fs, LocalFileSystem), cache
        self.fetching = threading.Lock()

    @contextmanager
    def reached(self) -> Iterator[None]:
        """What a storage elsewhere says when it cannot be reached or refuses, for the one who asked."""
        try:
            yield
        except (CutawayError, FileNotFoundError):
            raise
        except Exception as error:  # every kind of storage has its own
            if self.local:
                raise
            raise Unavailable(f"The storage does not answer, and nothing was kept: {error!s:.200}.") from error

    def path(self, name: str) -> str:
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a name of the storage's")
        return f"{self.root}/{name}"

    def write(self, name: str, source: IO[bytes]) -> int:
        """Keep what the source holds under this name; how many bytes that were."""
        try:
            if self.local:
                return self._write_file(Path(self.path(name)), source)
            with self.reached():
                with self.fs.open(self.path(name), "wb") as file:
                    shutil.copyfileobj(source, file, PIECE)
                return int(self.fs.size(self.path(name)))
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise NoRoom("The disk is full, and the file was not kept. Make room and send it again.") from error
            raise

    def _write_file(self, path: Path, source: IO[bytes]) -> int:
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_beside(path) as beside:
            with beside.open("wb") as file:
                shutil.copyfileobj(source, file, PIECE)
            flush(beside)
            size = beside.stat().st_size
        flush(path.parent)
        return size

    def read(self, name: str) -> Iterator[bytes]:
        """The bytes under this name, piece by piece."""
        with self.reached():
            file: Any = self.fs.open(self.path(name), "rb")

        def pieces() -> Iterator[bytes]:
            with file:
                while piece := file.read(PIECE):
                    yield piece

        return pieces()

    def remove(self, name: str) -> None:
        with self.reached():
            if self.fs.exists(self.path(name)):
                self.fs.rm(self.path(name), recursive=True)

    def fetch(self, name: str) -> Path:
        """A file or folder as a path on this machine: the thing itself, or a copy in the cache."""
        if self.local:
            return Path(self.path(name))
        there = self.cache / name
        with self.fetching:  # whoever asks for the same meanwhile waits for it
            if not there.exists():
                self._copy(name, there)
        return there

    def _copy(self, name: str, there: Path) -> None:
        there.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{there.name}.", suffix=".partial", dir=there.parent) as folder:
            beside = Path(folder) / there.name
            with self.reached():
                if self.fs.isdir(self.path(name)):
                    self.fs.get(f"{self.path(name)}/", f"{beside}/", recursive=True)
                else:
                    self.fs.get_file(self.path(name), str(beside))
            try:
                beside.rename(there)
            except OSError:
                if not there.exists():  # else another process with the same cache was quicker
                    raise

    def keep_folder(self, folder: Path, name: str) -> None:
        """Keep a whole folder under this name, which then belongs to the storage: in a folder it is moved there."""
        if self.local:
            there = Path(self.path(name))
            if there.exists():  # moved before we were killed
                shutil.rmtree(folder, ignore_errors=True)
                return
            there.parent.mkdir(parents=True, exist_ok=True)
            folder.rename(there)
            flush(there.parent)
        else:
            with self.reached():
                self.fs.put(f"{folder}/", f"{self.path(name)}/", recursive=True)
            shutil.rmtree(folder)

    def exists(self, name: str) -> bool:
        with self.reached():
            return bool(self.fs.exists(self.path(name)))
