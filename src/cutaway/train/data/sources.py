"""Which files hold the data, what kind each is, and its bytes, unpacked as they are read."""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
import lzma
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, cast

from cutaway.errors import CutawayError, nearest

KINDS = {
    ".txt": "text", ".text": "text", ".jsonl": "jsonl", ".ndjson": "jsonl", ".tsv": "table", ".csv": "csv",
    ".parquet": "parquet",
}  # fmt: skip
MUSIC = {".mid": "midi", ".midi": "midi"}
"""For records that have the one field `midi`: a file is a record."""
PACKED = (".gz", ".bz2", ".xz", ".zst")
CACHE_TAG = "CACHEDIR.TAG"
"""A folder with this file in it (https://bford.info/cachedir) is somebody's cache, not data."""

SIGNATURES = {
    b"\x1f\x8b": "It looks like gzip: give its name the ending .gz.",
    b"BZh": "It looks like bzip2: give its name the ending .bz2.",
    b"\xfd7zXZ": "It looks like xz: give its name the ending .xz.",
    b"\x28\xb5\x2f\xfd": "It looks like Zstandard: give its name the ending .zst.",
    b"PK\x03\x04": "It looks like a zip archive: unpack it first.",
    b"PAR1": "It looks like Parquet: give its name the ending .parquet.",
    b"\xff\xfe": "It looks like UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`.",
    b"\xfe\xff": "It looks like UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`.",
}


@dataclass(frozen=True)
class Source:
    """A file and its kind; or, of the kind `lines`, one file for each field, whose lines belong together."""

    paths: tuple[Path, ...]
    kind: str

    @property
    def place(self) -> tuple[str, ...]:
        """Of music, the folder it is in, by the last words of its path: performances of one piece may share one."""
        return ("/".join(self.paths[0].absolute().parent.parts[-3:]),) if self.kind == "midi" else ()


@dataclass(frozen=True)
class Sources:
    """What there is to read, in order, and the files of the given folders that are not of a kind that can be read."""

    read: tuple[Source, ...]
    skipped: tuple[Path, ...]

    @property
    def files(self) -> list[Path]:
        return [path for source in self.read for path in source.paths]


def find(paths: Sequence[Path | str], fields: Sequence[str], columns: Mapping[str, str | int] | None = None) -> Sources:
    """The files meant by paths, each a file or a folder of them, for records with these fields.

    A file is taken for what its name says (see `KINDS`), packed or not. Where records have several fields, a .txt is a
    table with tabs, and files alike but for their ending (`train.en.gz`, `train.fr.gz`) are text whose lines belong
    together; `columns` says which ending is which field, or else the order they are given in does.
    """
    if isinstance(paths, str | Path):
        paths = [paths]
    if not paths:
        raise CutawayError("There is no data: name a file or a folder.")
    read: list[Source] = []
    skipped: list[Path] = []
    parallel: dict[tuple[Path, str], list[tuple[str, Path]]] = {}
    endings = {str(name) for name in (columns or {}).values()}
    for path in map(Path, paths):
        given = _exists(path)
        for file in [path] if given else _walk(path):
            kind, stem, ending = _kind(file, fields)
            if kind:
                read.append(Source((file,), kind))
            elif len(fields) > 1 and (ending in endings or (given and not columns)):
                group = (file.parent, stem)
                if group not in parallel:
                    read.append(Source((file.parent / stem,), "lines"))  # keeps the place; `_joined` fills it
                parallel.setdefault(group, []).append((ending, file))
            elif given and is_music(fields):
                read.append(Source((file,), "midi"))
            elif given and file.suffix == ".json":
                read.append(Source((file,), "jsonl"))
            elif given and len(fields) == 1:
                read.append(Source((file,), "text"))
            elif given:
                raise CutawayError(
                    f"{file} is not a kind of file that holds {' and '.join(fields)}: give .jsonl, .tsv, .csv or "
                    f".parquet, or one file of lines for each, like train.en and train.fr."
                )
            else:
                skipped.append(file)
    read = [_joined(one, parallel, fields, columns) if one.kind == "lines" else one for one in read]
    if not read:
        holds = (
            f" It holds {', '.join(sorted(path.name for path in skipped)[:5])}." if skipped else " It holds no files."
        )
        kinds = ", ".join(kinds_of(fields))
        raise CutawayError(f"There is no data in {', '.join(map(str, paths))}: no {kinds}, compressed or not.{holds}")
    return Sources(tuple(read), tuple(skipped))


def _exists(path: Path) -> bool:
    """Whether the path is a file (True) or a folder (False); anything else is refused."""
    if path.is_file():
        return True
    if path.is_dir():
        return False
    if path.exists():
        raise CutawayError(
            f"{path} is neither a file nor a folder. Data is read more than once: save it to a file first."
        )
    beside = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
    raise CutawayError(f"There is no file or folder {path}.{nearest(path.name, beside)}")


def _walk(folder: Path) -> Iterator[Path]:
    """Every file under a folder, in an order that does not depend on the machine; nothing hidden, no caches."""
    try:
        inside = sorted(folder.iterdir(), key=lambda path: path.name)
    except OSError as error:
        raise CutawayError(f"The folder {folder} cannot be read: {error.strerror}.") from None
    for path in inside:
        if path.name.startswith("."):
            continue
        if path.is_file():
            yield path
        elif path.is_dir() and not path.is_symlink() and not (path / CACHE_TAG).exists():
            yield from _walk(path)


def is_music(fields: Sequence[str]) -> bool:
    return tuple(fields) == ("midi",)


def kinds_of(fields: Sequence[str]) -> dict[str, str]:
    """What files of each ending are, for records with these fields."""
    return MUSIC if is_music(fields) else KINDS


def _kind(path: Path, fields: Sequence[str]) -> tuple[str | None, str, str]:
    """A file's kind if its name tells, its name without the endings, and its ending without those of packing."""
    plain = path.name.removesuffix(path.suffix) if path.suffix.lower() in PACKED else path.name
    stem, dot, ending = plain.rpartition(".")
    kind = kinds_of(fields).get(f".{ending.lower()}") if dot and stem else None
    if kind == "text" and len(fields) > 1:
        kind = "table"
    return kind, stem, ending


def _joined(
    source: Source,
    parallel: Mapping[tuple[Path, str], list[tuple[str, Path]]],
    fields: Sequence[str],
    columns: Mapping[str, str | int] | None,
) -> Source:
    """The source made of the files with one stem: a file for each field, in the fields' order."""
    folder, stem = source.paths[0].parent, source.paths[0].name
    files = parallel[folder, stem]
    if columns:
        by_ending = dict(files)
        wanted = [str(columns.get(field, field)) for field in fields]
        missing = [ending for ending in wanted if ending not in by_ending]
        paths = [by_ending[ending] for ending in wanted if ending in by_ending]
    else:
        paths = [path for _, path in files]
        missing = list(fields[len(paths) :])
    if missing or len(paths) != len(fields):
        found = " and ".join(str(path) for _, path in files)
        raise CutawayError(
            f"{found}: records of {' and '.join(fields)} need {len(fields)} files like {stem}.en and {stem}.fr, whose "
            f"lines belong together{f' ({missing[0]} is missing)' if missing else ''}; or one .jsonl, .tsv or .csv."
        )
    return Source(tuple(paths), "lines")


class Stream:
    """The unpacked bytes of a file. Reading gives as many bytes as asked for, or else the file is at its end."""

    def __init__(self, path: Path):
        self.path = path
        try:
            self.raw = path.open("rb")
        except OSError as error:
            raise CutawayError(f"{path} cannot be read: {error.strerror}.") from None
        try:
            self.unpacked = _unpack(path, self.raw)
        except BaseException:
            self.raw.close()
            raise

    @property
    def consumed(self) -> int:
        """How many bytes of the file itself have been read."""
        return self.raw.tell()

    def read(self, size: int) -> bytes:
        try:
            return self.unpacked.read(size)
        except (OSError, EOFError, zlib.error, lzma.LZMAError, _Damaged) as error:
            what = "is damaged or not whole" if self.path.suffix.lower() in PACKED else "cannot be read"
            raise CutawayError(f"{self.path} {what}: {str(error).rstrip('.')}.") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.unpacked.close()
        self.raw.close()


def _unpack(path: Path, raw: BinaryIO) -> BinaryIO:
    match path.suffix.lower():
        case ".gz":
            return cast(BinaryIO, gzip.GzipFile(fileobj=raw, mode="rb"))
        case ".bz2":
            return cast(BinaryIO, bz2.BZ2File(raw))
        case ".xz":
            return cast(BinaryIO, lzma.LZMAFile(raw))
        case ".zst":
            return io.BufferedReader(_Zstandard(path, raw), 1 << 17)
    return raw


class _Damaged(Exception):
    """A packed file that cannot be unpacked."""


class _Zstandard(io.RawIOBase):
    """Unpacks Zstandard, frame after frame. The library's own reader takes a file cut short for a whole one."""

    def __init__(self, path: Path, raw: BinaryIO):
        self.library = extra("zstandard", path)
        self.raw, self.waiting, self.frame, self.out = raw, b"", self._new(), memoryview(b"")
        self.between = True  # before or after a frame, where a file may end

    def _new(self) -> Any:
        return self.library.ZstdDecompressor(max_window_size=1 << 31).decompressobj()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.out:
            data = self.waiting or self.raw.read(1 << 12)  # little at a time: it may swell a thousandfold
            if not data:
                if not self.between:
                    raise _Damaged("the file ends in the middle")
                return 0
            try:
                self.out = memoryview(self.frame.decompress(data))
            except self.library.ZstdError as error:
                raise _Damaged(str(error)) from None
            self.waiting, self.between = self.frame.unused_data, self.frame.eof
            if self.frame.eof:
                self.frame = self._new()
        size = min(len(buffer), len(self.out))
        buffer[:size], self.out = self.out[:size], self.out[size:]
        return size


def extra(module: str, path: Path) -> Any:
    """A module that comes with an extra of this package; without it, the file that needs it is named."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise CutawayError(
            f"Reading {path} needs the package {module.partition('.')[0]}: pip install 'cutaway[train]'."
        ) from None


def look(path: Path) -> str:
    """What a file seems to be that is not the UTF-8 text it was taken for, and what to do about it."""
    with Stream(path) as stream:
        start = stream.read(8)
    for signature, remedy in SIGNATURES.items():
        if start.startswith(signature):
            return remedy
    return "Convert the file to UTF-8, for example with `iconv -f LATIN1 -t UTF-8`."
