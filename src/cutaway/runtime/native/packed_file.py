"""Packed weights in one file: mapped into memory as they are, shared by every process that reads them.

8 bytes     CUTAWAY and a line end
4 bytes     the version of the format
4 bytes     each: the lengths of header, tokens and files, and the CRC-32 of these three
header      JSON: the shape, the weights' kind and sha256, the special tokens, the task, the settings, what packing cost
tokens      a TokenTable (see cutaway.text.bpe_python), if the vocabulary is of GPT-2's kind
files       the tokenizer's files: JSON, packed by zlib
padding     zeros, to a multiple of 4,096
weights     as cutaway.runtime.native.pack lays them out

Version 2 had another int4, with the output matrix in int8; all else of it is still read. So is version 1, which has
only a header, the tokenizer's files in it, and before it its length and sha256.
"""

from __future__ import annotations

import dataclasses
import json
import mmap
import re
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np

from cutaway.atomic import replacing
from cutaway.errors import CutawayError
from cutaway.models.gpt2.shape import Config
from cutaway.runtime.native.library import KINDS
from cutaway.runtime.native.pack import Memory, Packed, size_of
from cutaway.text.bpe_python import TokenTable
from cutaway.text.tokenizer import Tokenizer
from cutaway.text.vocabulary import read_vocabulary

Read = TypeVar("Read")

MAGIC = b"CUTAWAY\n"
VERSION = 3
START, LENGTHS, LENGTH_1 = struct.Struct("<8sI"), struct.Struct("<IIII"), struct.Struct("<I32s")
PAGE = 4096
HEADER_BYTES = 200_000_000
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt", "vocab.txt")


def write_packed(
    packed: Packed,
    tokenizer: Tokenizer,
    path: Path,
    cost: dict[str, Any] | None = None,
    task: dict[str, Any] | None = None,
    recommended: dict[str, Any] | None = None,
) -> None:
    """Write the file beside its place, and move it there when it is whole.

    `task` is what a task.json would hold, `recommended` the settings that a generation_config.json would.
    """
    import hashlib
    import tempfile

    path = Path(path)
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(folder)
        files = {file.name: file.read_text(encoding="utf-8") for file in sorted(Path(folder).iterdir())}
    kept = json.dumps({name: text for name, text in files.items() if name in TOKENIZER_FILES})
    table = tokenizer.table()
    header = json.dumps(
        {
            "config": dataclasses.asdict(packed.config),
            "weights": packed.weights,
            "bytes": packed.nbytes,
            "sha256": hashlib.sha256(packed.memory.data).hexdigest(),
            "cost": cost or {},
            "task": task or {"name": "language"},
            "specials": tokenizer.specials,
            "recommended": recommended or {},
        }
    )
    parts = [header.encode(), b"" if table is None else bytes(table.memory), zlib.compress(kept.encode())]
    lengths = LENGTHS.pack(*map(len, parts), zlib.crc32(b"".join(parts)))
    start = START.pack(MAGIC, VERSION) + lengths + b"".join(parts)
    total = len(start) + PAGE + packed.nbytes
    old = re.compile(re.escape(path.name))
    with replacing(path.parent, last=path.name, stale=old, size=total) as new, (new / path.name).open("wb") as file:
        file.write(start + bytes(-len(start) % PAGE))
        file.write(packed.memory.data)


@dataclass(frozen=True)
class PackedFile:
    """A file, opened: what stands before the weights has been read and checked."""

    path: Path
    version: int
    header: dict[str, Any]
    tokens: tuple[int, int]
    files: tuple[int, int]
    """Where these begin and end; in version 1 nowhere."""

    @property
    def first(self) -> int:
        """Where the weights begin."""
        return self.files[1] + -self.files[1] % PAGE

    @property
    def task(self) -> Any:
        """What would stand in the task.json of a folder."""
        return self.header.get("task")

    @property
    def recommended(self) -> dict[str, Any]:
        """The settings to write with; none in a file that was packed before there were any."""
        return dict(self.header.get("recommended", {}))

    @property
    def config(self) -> Config:
        known = {field.name for field in dataclasses.fields(Config)}
        given = self.header.get("config")
        if not isinstance(given, dict) or {"positions", *given} != known:  # older files do not say their positions
            raise damaged(self.path, "it does not say the shape of its model")
        return Config(**given)

    @property
    def weights(self) -> str:
        """The kind that they are packed to."""
        kind = self.header.get("weights")
        if kind not in KINDS:
            raise damaged(self.path, f"it holds weights of an unknown kind, {kind!r}")
        if self.version < VERSION and kind == "int4":
            raise CutawayError(f"{self.path} was packed by an older Cutaway, whose int4 was another: convert again.")
        return str(kind)

    def read_weights(self, whole: bool = False) -> Packed:
        """The weights, mapped into memory; with `whole`, also held against their checksum, which reads all of them."""
        config, size = self.config, size_of(self.config, self.weights)
        there = self.path.stat().st_size
        if self.header.get("bytes") != size or there != self.first + size:
            raise damaged(self.path, f"it should be {self.first + size:,} bytes long, and is {there:,}")
        memory = np.frombuffer(mapped(self.path), dtype=np.uint8, count=size, offset=self.first)
        if whole:
            self.check(memory)
        return Packed(config, self.weights, memory)

    def check(self, memory: Memory) -> None:
        import hashlib

        if hashlib.sha256(memory.data).hexdigest() != self.header.get("sha256"):
            raise damaged(self.path, "its weights do not have the checksum they should")

    def read_tokenizer(self) -> Tokenizer:
        """The tokenizer; of GPT-2's kind it is read where it lies, as far as it is needed."""
        if self.version == 1:
            return self.read_files(self.header.get("tokenizer"), Tokenizer.from_folder)
        memory = memoryview(mapped(self.path))

        def whole(read: Callable[[Path], Read]) -> Read:
            return self.read_files(json.loads(zlib.decompress(memory[slice(*self.files)])), read)

        tokens = memory[slice(*self.tokens)]
        if not tokens:
            return whole(Tokenizer.from_folder)
        return Tokenizer.from_table(TokenTable(tokens), self.header["specials"], lambda: whole(read_vocabulary))

    def read_files(self, files: Any, read: Callable[[Path], Read]) -> Read:
        """What `read` makes of the folder that the tokenizer's files were in."""
        if not isinstance(files, dict):
            raise damaged(self.path, "it has no tokenizer")
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                if name in TOKENIZER_FILES and isinstance(text, str):
                    (Path(folder) / name).write_text(text, encoding="utf-8")
            return read(Path(folder))


def read_packed(path: str | Path, whole: bool = False) -> Packed:
    """The weights in a file; with `whole`, also held against their checksum."""
    return open_packed(path).read_weights(whole)


def open_packed(path: str | Path) -> PackedFile:
    """A file of packed weights; its weights are not read yet."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            start = file.read(START.size)
            if len(start) < START.size or not start.startswith(MAGIC):
                raise CutawayError(
                    f"{path} is not a file of packed weights: `cutaway convert --to cutaway-int8` makes one."
                )
            version = START.unpack(start)[1]
            if version not in (1, 2, VERSION):
                raise CutawayError(
                    f"{path} has version {version} of its format; this Cutaway reads {VERSION}. Convert again."
                )
            return open_version_1(file, path) if version == 1 else open_version_2(file, path, version)
    except OSError as error:
        raise CutawayError(f"{path} cannot be read: {error.strerror}.") from None


def open_version_1(file: BinaryIO, path: Path) -> PackedFile:
    import hashlib

    length, digest = LENGTH_1.unpack(exactly(file, LENGTH_1.size, path))
    header = exactly(file, length, path)
    if hashlib.sha256(header).digest() != digest:
        raise damaged(path, "its header does not have the checksum it should")
    end = file.tell()
    return PackedFile(path, 1, json.loads(header), (end, end), (end, end))


def open_version_2(file: BinaryIO, path: Path, version: int) -> PackedFile:
    *lengths, checksum = LENGTHS.unpack(exactly(file, LENGTHS.size, path))
    begin = file.tell()
    header = exactly(file, lengths[0], path)
    found, left = zlib.crc32(header), lengths[1] + lengths[2]
    while left and (part := file.read(min(left, PAGE))):
        found, left = zlib.crc32(part, found), left - len(part)
    if left or found != checksum:
        raise damaged(path, "its header does not have the checksum it should")
    ends = list(accumulate(lengths, initial=begin))
    return PackedFile(path, version, json.loads(header), (ends[1], ends[2]), (ends[2], ends[3]))


def exactly(file: BinaryIO, length: int, path: Path) -> bytes:
    """So many bytes, and no fewer."""
    data = file.read(length) if length <= HEADER_BYTES else b""
    if len(data) != length:
        raise damaged(path, "it ends before its header does")
    return data


def mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def damaged(path: Path, problem: str) -> CutawayError:
    return CutawayError(f"{path} is damaged: {problem}. Convert the model again, or copy the file again.")
