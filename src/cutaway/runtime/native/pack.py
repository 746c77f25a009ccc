"""A model's weights in the form the kernels read: one piece of memory, every matrix in tiles."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cutaway.models.architecture import tensors
from cutaway.models.gpt2.shape import Config
from cutaway.runtime.native.library import KINDS, default_threads, need, shape_of

if TYPE_CHECKING:
    from cutaway.models.gpt2.model import GPT

Memory = npt.NDArray[np.uint8]
EMBEDDING, OUTPUT, DISTANCES = "token_embedding.weight", "output.weight", ".distances"
ALONE = 1 << 22
"""So many numbers one thread puts in their tiles, where they need no rounding, before others have begun."""


@dataclass(frozen=True)
class Placed:
    """One tensor: its name in our model, its shape, and where it begins. Matrices are packed, the rest is float32."""

    name: str
    shape: tuple[int, ...]
    start: int
    packed: str | None
    """As which kind. int4 keeps the token embedding in int8: rounding it costs the most, and little of it is read."""
    turned: bool = False
    """Whether its last two axes lie the other way round: neighbouring distances side by side, as keys do."""


@dataclass(frozen=True)
class Packed:
    """All the weights of a model, packed; `memory` may be a file mapped into memory."""

    config: Config
    weights: str
    memory: Memory

    @property
    def nbytes(self) -> int:
        return self.memory.nbytes

    def __reduce__(self) -> tuple[Any, ...]:
        return packed_from, (self.config, self.weights, self.memory.tobytes())

    def __deepcopy__(self, memo: object) -> Packed:
        return self  # nobody writes into it


def packed_from(config: Config, weights: str, data: bytes) -> Packed:
    """Packed weights from a pickle, in memory that begins where the kernels like it."""
    memory = memory_of(len(data))
    memory[:] = np.frombuffer(data, dtype=np.uint8)
    return Packed(config, weights, memory)


def places(config: Config, weights: str) -> Iterator[Placed]:
    """Every tensor in the order it lies in memory, which is that of `cutaway_model_layout` in interface.cpp."""
    shape = shape_of(config, weights)
    starts = np.zeros(5 + 13 * config.layers, dtype=np.uint64)
    count = need().cutaway_model_layout(ctypes.byref(shape), starts.ctypes.data)
    for one, start in zip(tensors(config_of(config, weights)), starts[:count].tolist(), strict=True):
        matrix = len(one.shape) == 2 and one.part != "position embedding"
        kind = "int8" if weights == "int4" and one.name == EMBEDDING else weights
        yield Placed(one.name, one.ours, start, kind if matrix else None, one.name.endswith(DISTANCES))


def config_of(config: Config, weights: str) -> Config:
    """The shape of a model with these weights. int4 has an output matrix of its own, whatever the model had."""
    return config.but(tied=False) if weights == "int4" else config


def weights_read(config: Config, weights: str) -> list[Placed]:
    """The matrices that are read whole for every token; of an embedding that is not also the output, one row is."""
    matrices = [place for place in places(config, weights) if place.packed]
    apart = any(place.name == OUTPUT for place in matrices)
    return [place for place in matrices if not (apart and place.name == EMBEDDING)]


def memory_of(size: int) -> Memory:
    """Zeros that begin at a multiple of 64, as the kernels like them."""
    room = np.zeros(size + 64, dtype=np.uint8)
    start = -room.ctypes.data % 64
    return room[start : start + size]


def size_of(config: Config, weights: str) -> int:
    return int(need().cutaway_model_bytes(ctypes.byref(shape_of(config, weights))))


def pack(
    model: GPT,
    weights: str,
    progress: Callable[[int, int], None] | None = None,
    factors: Iterator[tuple[str, npt.NDArray[np.float32]]] | None = None,
) -> Packed:
    """A model's weights, rounded to their kind; `progress(done, total)` counts numbers.

    For int4, `factors` (see calibrate.py) say how the matrices make up for their rounding.
    """
    import torch

    config = model.config
    memory = memory_of(size_of(config, weights))
    total, done = sum(parameter.numel() for parameter in model.parameters()), 0
    for place in places(config, weights):
        name = EMBEDDING if place.name == OUTPUT and config.tied else place.name
        numbers = model.get_parameter(name).detach().to("cpu", torch.float32).contiguous().numpy()
        factor = None
        if place.packed and factors is not None and place.name != EMBEDDING:
            name, factor = next(factors)
            assert name == place.name
        pack_tensor(place, numbers, memory, factor)
        done += numbers.size
        if progress is not None:
            progress(done, total)
    return Packed(config, weights, memory)


def pack_tensor(
    place: Placed, numbers: npt.NDArray[np.float32], memory: Memory, factor: npt.NDArray[np.float32] | None = None
) -> None:
    """Put one tensor where it belongs."""
    if place.packed is None:
        numbers = np.ascontiguousarray(numbers.swapaxes(-1, -2)) if place.turned else numbers
        memory[place.start : place.start + numbers.nbytes] = numbers.reshape(-1).view(np.uint8)
        return
    threads = default_threads() if place.packed.startswith("int") or numbers.size > ALONE else 1
    need().cutaway_pack(
        KINDS.index(place.packed), *place.shape, numbers.ctypes.data, memory.ctypes.data + place.start,
        threads, None if factor is None else factor.ctypes.data,
    )  # fmt: skip


def unpack(packed: Packed) -> GPT:
    """The model that packed weights stand for, in float32: what torch runs when a trace or gradients are wanted."""
    import torch

    from cutaway.models.gpt2.model import GPT

    library = need()
    with torch.device("meta"):
        model = GPT(config_of(packed.config, packed.weights))
    for place in places(packed.config, packed.weights):
        numbers = np.empty(place.shape, dtype=np.float32)
        if place.packed:
            library.cutaway_unpack(
                KINDS.index(place.packed), *place.shape, packed.memory.ctypes.data + place.start, numbers.ctypes.data
            )
        else:
            numbers = packed.memory[place.start : place.start + numbers.nbytes].view(np.float32)
            *heads, rows, width = (1, *place.shape)
            numbers = numbers.reshape(*heads, width, rows).swapaxes(-1, -2) if place.turned else numbers
            numbers = numbers.reshape(place.shape).copy()
        module, _, leaf = place.name.rpartition(".")
        setattr(model.get_submodule(module), leaf, torch.nn.Parameter(torch.from_numpy(numbers)))
    return model.eval()
