"""The compiled kernels: where they are, and what may be called in them. Where there are none, torch does the work."""

from __future__ import annotations

import ctypes
import functools
import importlib.machinery
import os
from pathlib import Path

from cutaway.errors import CutawayError, nearest
from cutaway.models.architecture import architecture
from cutaway.models.gpt2.shape import ACTIVATIONS, Config
from cutaway.processor import cores

KINDS = ("float32", "bfloat16", "int8", "int4")
"""How the matrices may be held: 32 or 16 bits a weight, or 8.25 or 4.5 with the scales of their groups (int4 holds the
token embedding in int8, and beside it the output matrix in int4)."""

VERSION = 5


class Shape(ctypes.Structure):
    """A model's shape as the kernels want it (`struct Shape` in cache.h)."""

    _fields_ = [
        *((name, ctypes.c_int32) for name in ("vocabulary", "context", "width", "layers", "heads", "mlp_width")),
        *((name, ctypes.c_int32) for name in ("activation", "tied", "scale_by_layer", "relative", "kind")),
        ("norm_epsilon", ctypes.c_float),
    ]


def check_native(config: Config) -> None:
    kind = architecture(config.kind)
    if not kind.native:
        raise CutawayError(f"The native engine has no kernels for {kind.title}: leave it to torch (engine 'torch').")


def shape_of(config: Config, weights: str) -> Shape:
    check_native(config)
    return Shape(
        config.vocabulary, config.context, config.width, config.layers, config.heads, config.mlp_width,
        ACTIVATIONS.index(config.activation), config.tied, config.scale_by_layer, config.relative, KINDS.index(weights),
        config.norm_epsilon,
    )  # fmt: skip


def check_kind(weights: str) -> str:
    if weights not in KINDS:
        raise CutawayError(f"There are no weights {weights!r}.{nearest(weights, KINDS)} Known: {', '.join(KINDS)}.")
    return weights


def find_library() -> Path | None:
    """The compiled file, if this installation has one."""
    for ending in importlib.machinery.EXTENSION_SUFFIXES:
        path = Path(__file__).with_name(f"_kernels{ending}")
        if path.is_file():
            return path
    return None


@functools.cache
def load() -> ctypes.CDLL | None:
    """The kernels, or None where they were not built or are those of another version."""
    path = find_library()
    if path is None:
        return None
    try:
        library = ctypes.CDLL(str(path))
        describe(library)
    except (OSError, AttributeError):
        return None
    return library if library.cutaway_version() == VERSION else None


def need() -> ctypes.CDLL:
    """The kernels; a clear word where there are none."""
    library = load()
    if library is None:
        raise CutawayError(
            "The native engine is not built here: a C++ compiler was missing when Cutaway was installed. "
            "Install one (g++ 11 or newer, or clang++) and install Cutaway again. Until then torch runs every "
            "checkpoint that is not packed: leave out weights and engine."
        )
    return library


def default_threads() -> int:
    """As many as there are processors that we may use, unless CUTAWAY_THREADS says otherwise."""
    asked = os.environ.get("CUTAWAY_THREADS", "")
    if asked:
        if not asked.isdecimal() or not 1 <= int(asked) <= 256:
            raise CutawayError(f"CUTAWAY_THREADS must be a number from 1 to 256, not {asked!r}.")
        return int(asked)
    return cores()


def describe(library: ctypes.CDLL) -> None:
    """Tell ctypes what each function takes and gives."""
    number, size, pointer, text = ctypes.c_int32, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_char_p
    shape = ctypes.POINTER(Shape)
    for name, result, takes in (
        ("version", number, []),
        ("error", text, []),
        ("kernels", text, [text]),
        ("matrix_bytes", size, [number] * 3),
        ("pack", number, [number, number, number, pointer, pointer, number, pointer]),
        ("unpack", None, [number, number, number, pointer, pointer]),
        ("product", number, [text, number, number, number, pointer, number, pointer, pointer]),
        ("read_memory", ctypes.c_double, [pointer, size, number]),
        ("model_bytes", size, [shape]),
        ("model_layout", number, [shape, pointer]),
        ("open", pointer, [shape, pointer, number, text]),
        ("fetch_ahead", None, [pointer, number]),
        ("fetches_ahead", number, [pointer]),
        ("close", None, [pointer]),
        ("text_new", pointer, [pointer]),
        ("text_fork", pointer, [pointer]),
        ("text_trim", number, [pointer, number]),
        ("text_length", number, [pointer]),
        ("text_bytes", size, [pointer]),
        ("text_free", None, [pointer]),
        ("read", number, [pointer, number, pointer, pointer, pointer, pointer, pointer]),
    ):
        function = getattr(library, f"cutaway_{name}")
        function.restype, function.argtypes = result, takes
