"""Packed weights in one file: mapped into memory as they are, shared by every process that reads them.

8 bytes     CUTAWAY and a line end
4 bytes     the version of the format
4 bytes     the length of the header
32 bytes    sha256 of the header
header      JSON: the shape, the weights' kind and sha256, the tokenizer's files, the task, what packing cost
padding     zeros, to a multiple of 4,096
weights     as cutaway.engine.pack lays them out
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import mmap
import re
import struct
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from cutaway.checkpoint.files import replacing
from cutaway.config import Config
from cutaway.engine.library import KINDS
from cutaway.engine.pack import Packed, size_of
from cutaway.errors import CutawayError
from cutaway.tokenizer import Tokenizer
from cutaway.vocabulary import read as read_vocabulary

MAGIC = b"CUTAWAY\n"
VERSION = 1
START = struct.Struct("<8sII32s")
PAGE = 4096
HEADER_BYTES = 200_000_000
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt")


def write(
    packed: Packed,
    tokenizer: Tokenizer,
    path: Path,
    cost: dict[str, Any] | None = None,
    task: dict[str, Any] | None = None,
) -> None:
    """Write the file beside its place, and move it there when it is whole. `task` is what a task.json would hold."""
    path = Path(path)
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(folder)
        files = {file.name: file.read_text(encoding="utf-8") for file in sorted(Path(folder).iterdir())}
    header = json.dumps(
        {
            "config": dataclasses.asdict(packed.config),
            "weights": packed.weights,
            "bytes": packed.nbytes,
            "sha256": hashlib.sha256(packed.memory.data).hexdigest(),
            "cost": cost or {},
            "task": task or {"name": "language"},
            "tokenizer": {name: text for name, text in files.items() if name in TOKENIZER_FILES},
        }
    ).encode()
    start = START.pack(MAGIC, VERSION, len(header), hashlib.sha256(header).digest()) + header
    total = len(start) + PAGE + packed.nbytes
    old = re.compile(re.escape(path.name))
    with replacing(path.parent, last=path.name, stale=old, size=total) as new, (new / path.name).open("wb") as file:
        file.write(start + bytes(-len(start) % PAGE))
        file.write(packed.memory.data)


def read_header(path: Path) -> tuple[dict[str, Any], int]:
    """What the file says of itself, checked against its own checksum, and where the weights begin."""
    try:
        with path.open("rb") as file:
            start = file.read(START.size)
            if len(start) < START.size or not start.startswith(MAGIC):
                raise CutawayError(
                    f"{path} is not a file of packed weights: `cutaway convert --to cutaway-int8` makes one."
                )
            _, version, length, digest = START.unpack(start)
            if version != VERSION:
                raise CutawayError(
                    f"{path} has version {version} of its format; this Cutaway reads {VERSION}. Convert again."
                )
            header = file.read(length) if length <= HEADER_BYTES else b""
    except OSError as error:
        raise CutawayError(f"{path} cannot be read: {error.strerror}.") from None
    if len(header) != length or hashlib.sha256(header).digest() != digest:
        raise damaged(path, "its header does not have the checksum it should")
    end = START.size + length
    return json.loads(header), end + -end % PAGE


def read(path: Path, whole: bool = False) -> Packed:
    """The weights, mapped into memory; with `whole`, also held against their checksum, which reads all of them."""
    path = Path(path)
    header, first = read_header(path)
    config = config_of(header, path)
    weights = header.get("weights")
    if weights not in KINDS:
        raise damaged(path, f"it holds weights of an unknown kind, {weights!r}")
    size = size_of(config, weights)
    there = path.stat().st_size
    if header.get("bytes") != size or there != first + size:
        raise damaged(path, f"it should be {first + size:,} bytes long, and is {there:,}")
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    memory = np.frombuffer(mapped, dtype=np.uint8, count=size, offset=first)
    if whole and hashlib.sha256(memory.data).hexdigest() != header.get("sha256"):
        raise damaged(path, "its weights do not have the checksum they should")
    return Packed(config, weights, memory)


def read_config(path: Path) -> Config:
    return config_of(read_header(path)[0], path)


def read_tokenizer(path: Path) -> Tokenizer:
    files = read_header(path)[0].get("tokenizer")
    if not isinstance(files, dict):
        raise damaged(path, "it has no tokenizer")
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            if name in TOKENIZER_FILES and isinstance(text, str):
                (Path(folder) / name).write_text(text, encoding="utf-8")
        return Tokenizer(read_vocabulary(Path(folder)))


def read_task(path: Path) -> Any:
    """What would stand in the task.json of a folder."""
    return read_header(path)[0].get("task")


def config_of(header: dict[str, Any], path: Path) -> Config:
    known = {field.name for field in dataclasses.fields(Config)}
    given = header.get("config")
    if not isinstance(given, dict) or set(given) != known:
        raise damaged(path, "it does not say the shape of its model")
    return Config(**given)


def damaged(path: Path, why: str) -> CutawayError:
    return CutawayError(f"{path} is damaged: {why}. Convert the model again, or copy the file again.")
