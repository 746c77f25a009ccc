"""A checkpoint's weights packed straight from its file, without torch, which takes longer to import than they to run.

Only what is plain: one `model.safetensors` that holds the tensors of the table, all of them finite, and nothing else.
Of anything else `pack_folder` gives None; whoever reads it with torch can say what is the matter with it.
"""

from __future__ import annotations

import json
import math
import mmap
import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cutaway.models.architecture import TensorSpec, architecture, tensors
from cutaway.models.gpt2.shape import Config
from cutaway.runtime.native.pack import Packed, memory_of, pack_tensor, places, size_of

WEIGHTS = "model.safetensors"
TYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}
LONGEST = 100_000_000
"""Bytes that a header may have, as in the safetensors library."""


def pack_folder(folder: Path, config: Config) -> Packed | None:
    """The weights in a folder as float32 for the kernels; None where it is not plain."""
    path = folder / WEIGHTS
    if not path.is_file() or not (data := read_header(path)):
        return None
    header, first, memory = data
    kind, stored = architecture(config.kind), {name: one for name, one in header.items() if name != "__metadata__"}
    found = {name.removeprefix(kind.prefix): one for name, one in stored.items() if not kind.ignores(name)}
    if config.layers > len(found):  # before a table of so many layers is made
        return None
    table = tensors(config)
    if set(found) != {one.stored for one in table} or len(found) != len(stored):
        return None
    packed = memory_of(size_of(config, "float32"))
    scratch = np.empty(max(one.count for one in table), np.float32)  # new memory for each tensor would cost more time
    for spec, place in zip(table, places(config, "float32"), strict=True):
        numbers = read_tensor(memory, first, found[spec.stored], spec, scratch)
        if numbers is None:
            return None
        pack_tensor(place, numbers, packed)
    return Packed(config, "float32", packed)


def read_header(path: Path) -> tuple[dict[str, Any], int, mmap.mmap] | None:
    """What a safetensors file says of its tensors, where they begin, and the file itself."""
    with path.open("rb") as file:
        if path.stat().st_size < 10:
            return None
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    (length,) = struct.unpack_from("<Q", memory)
    if length > min(LONGEST, len(memory) - 8):
        return None
    try:
        header = json.loads(memory[8 : 8 + length])
    except ValueError:
        return None
    return (header, 8 + length, memory) if isinstance(header, dict) else None


def read_tensor(
    memory: mmap.mmap, first: int, stated: Any, spec: TensorSpec, scratch: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32] | None:
    """One tensor in our layout, in the file or in `scratch`; None if it is not the one expected, or not finite."""
    try:
        kind, (start, end) = TYPES[stated["dtype"]], stated["data_offsets"]
        plain = tuple(stated["shape"]) == spec.shape and end - start == spec.count * kind.itemsize
    except (KeyError, TypeError, ValueError):
        return None
    if not plain or not 0 <= start <= end <= len(memory) - first:
        return None
    values = np.frombuffer(memory, kind, spec.count, first + start).reshape(spec.shape)
    values = values.T if spec.transposed else values
    if kind == TYPES["BF16"]:
        values = (values.astype(np.uint32) << 16).view(np.float32)  # the upper half of a float32
    numbers = values
    if kind != TYPES["F32"] or spec.transposed:
        numbers = scratch[: spec.count].reshape(values.shape)
        numbers[...] = values  # converted and turned in one go
    return numbers if math.isfinite(numbers.min()) and math.isfinite(numbers.max()) else None
