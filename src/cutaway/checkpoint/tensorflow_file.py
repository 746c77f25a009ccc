"""TensorFlow's checkpoints without TensorFlow: `x.index` says which bytes of `x.data-00000-of-00001` are which tensor.

The index is a sorted table in LevelDB's format: blocks of keys and values, each with a checksum, found through an index
block, found through a footer. The values are protocol buffers.
"""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from cutaway.checkpoint.crc32c import crc32c, unmask
from cutaway.checkpoint.files import Lazy, check, shown
from cutaway.errors import CutawayError

MAGIC = 0xDB4775248B80FB57
FOOTER = 48
INDEX_BYTES = 10_000_000  # that of GPT-2 XL has 20,000
NAME_BYTES = 1_000
DIMENSIONS = 8
DTYPES = {1: torch.float32, 2: torch.float64, 3: torch.int32, 9: torch.int64, 14: torch.bfloat16, 19: torch.float16}
"""TensorFlow's numbers for the types a checkpoint of a language model may hold."""


@dataclass(frozen=True)
class Entry:
    """Where one tensor lies."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    checksum: int


def read_tensorflow(prefix: Path) -> Lazy:
    """The tensors of the checkpoint whose index is `<prefix>.index`, by TensorFlow's names."""
    index = prefix.with_name(prefix.name + ".index")
    shards, entries = read_index(index)
    files = {
        shard: check(prefix.with_name(f"{prefix.name}.data-{shard:05d}-of-{shards:05d}"))
        for shard in sorted({entry.shard for entry in entries.values()})
    }
    maps = {shard: _map(path) for shard, path in files.items()}
    for name, entry in entries.items():
        if entry.offset + entry.size > len(maps[entry.shard]):
            raise CutawayError(
                f"{files[entry.shard]} is truncated: it has {len(maps[entry.shard]):,} bytes, and {shown(name)} "
                f"ends at byte {entry.offset + entry.size:,}. Download it again."
            )
    if sum(entry.size for entry in entries.values()) > sum(map(len, maps.values())):
        raise CutawayError(f"{index} is damaged: several tensors lie in the same place.")

    def reader(name: str, entry: Entry) -> Tensor:
        raw = memoryview(maps[entry.shard])[entry.offset : entry.offset + entry.size]
        if crc32c(raw) != entry.checksum:
            raise CutawayError(
                f"{files[entry.shard]} is damaged: the checksum of {shown(name)} is wrong. Download it again."
            )
        flat = torch.frombuffer(raw, dtype=torch.uint8)
        aligned = flat.clone() if entry.offset % entry.dtype.itemsize else flat
        return aligned.view(entry.dtype).view(entry.shape)

    return Lazy({name: partial(reader, name, entry) for name, entry in entries.items()})


def read_index(path: Path) -> tuple[int, dict[str, Entry]]:
    """The number of data files, and where each tensor lies in them."""
    size = check(path).stat().st_size
    if size > INDEX_BYTES:
        raise CutawayError(f"{path} is {size:,} bytes long, far too large for the index of a checkpoint.")
    try:
        rows = dict(_rows(path.read_bytes(), path))
        header = _fields(rows.pop(b""))
        shards = _number(header, 1)
        if _number(header, 2):
            raise CutawayError(
                f"{path} belongs to a checkpoint written on a big-endian machine, which is not supported."
            )
        entries = {key.decode(): _entry(value, key.decode(), path) for key, value in rows.items()}
    except (ValueError, KeyError, IndexError, struct.error):
        raise CutawayError(f"{path} is not the index of a TensorFlow checkpoint, or is damaged.") from None
    for name, entry in entries.items():
        right = math.prod(entry.shape) * entry.dtype.itemsize
        if entry.shard >= shards or not 0 < entry.size == right or len(entry.shape) > DIMENSIONS:
            raise CutawayError(f"{path} contradicts itself about {shown(name)}: the file is damaged.")
    return shards, entries


def _rows(data: bytes, path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Every key and value of the table."""
    if len(data) < FOOTER or int.from_bytes(data[-8:], "little") != MAGIC:
        raise ValueError
    footer = data[-FOOTER:]
    _, at = _handle(footer, 0)  # of a block that says more about the table; TensorFlow leaves it empty
    index, _ = _handle(footer, at)
    end = 0
    for _, handle in _block(data, *index, path):
        (offset, size), _ = _handle(handle, 0)
        if offset < end:  # a block named over and over would be a small file with an endless table
            raise ValueError
        end = offset + size
        yield from _block(data, offset, size, path)


def _block(data: bytes, offset: int, size: int, path: Path) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values of one block: a key says only how it differs from the one before."""
    end = offset + size
    if end + 5 > len(data):
        raise ValueError
    if crc32c(data[offset : end + 1]) != unmask(int.from_bytes(data[end + 1 : end + 5], "little")):
        raise CutawayError(f"{path} is damaged: the checksum of its block at {offset:,} is wrong. Download it again.")
    if data[end]:
        raise CutawayError(
            f"{path} is compressed (with Snappy), which TensorFlow does not do and Cutaway does not read. "
            "Load it in TensorFlow and save it again."
        )
    restarts = int.from_bytes(data[end - 4 : end], "little")
    end -= 4 * (restarts + 1)
    if end < offset:
        raise ValueError
    key, at = b"", offset
    while at < end:
        shared, at = _varint(data, at)
        fresh, at = _varint(data, at)
        length, at = _varint(data, at)
        if shared > len(key) or shared + fresh > NAME_BYTES or at + fresh + length > end:
            raise ValueError
        key = key[:shared] + data[at : at + fresh]
        at += fresh + length
        yield key, data[at - length : at]


def _entry(message: bytes, name: str, path: Path) -> Entry:
    """A tensor's place, out of TensorFlow's BundleEntryProto."""
    fields = _fields(message)
    dtype = _number(fields, 1)
    if dtype not in DTYPES:
        raise CutawayError(f"{path}: {shown(name)} has TensorFlow's type number {dtype}, which no GPT-2 has.")
    if 7 in fields:
        raise CutawayError(
            f"{path}: {shown(name)} was saved in slices, which are not supported. Save it whole in TensorFlow."
        )
    dims = [_fields(dim) for shape in _messages(fields, 2) for dim in _messages(_fields(shape), 2)]
    shard, offset, size, checksum = (_number(fields, field) for field in (3, 4, 5, 6))
    return Entry(DTYPES[dtype], tuple(_number(dim, 1) for dim in dims), shard, offset, size, unmask(checksum))


def _fields(message: bytes) -> dict[int, list[int | bytes]]:
    """The fields of a protocol buffer, by number: whole numbers, and the bytes of strings and nested messages."""
    fields: dict[int, list[int | bytes]] = {}
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind, value = tag & 7, 0
        if kind == 0:
            value, at = _varint(message, at)
            fields.setdefault(tag >> 3, []).append(value)
            continue
        if kind == 2:
            length, at = _varint(message, at)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ValueError
        if at + length > len(message):
            raise ValueError
        raw = message[at : at + length]
        fields.setdefault(tag >> 3, []).append(raw if kind == 2 else int.from_bytes(raw, "little"))
        at += length
    return fields


def _number(fields: dict[int, list[int | bytes]], field: int) -> int:
    value = fields.get(field, [0])[-1]
    if not isinstance(value, int):
        raise ValueError
    return value


def _messages(fields: dict[int, list[int | bytes]], field: int) -> list[bytes]:
    values = fields.get(field, [])
    return [value for value in values if isinstance(value, bytes)]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits to the byte, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError


def _handle(data: bytes, at: int) -> tuple[tuple[int, int], int]:
    """Where a block lies (offset and size), and where the handle ends."""
    offset, at = _varint(data, at)
    size, at = _varint(data, at)
    return (offset, size), at


def _map(path: Path) -> mmap.mmap:
    """The file as memory. Private to us: what others see never changes, and torch may believe it can be written."""
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except ValueError:
        raise CutawayError(f"{path} is empty. Download it again.") from None
