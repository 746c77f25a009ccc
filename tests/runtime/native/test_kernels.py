"""The products of each kind of processor, against numpy and against the plain ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutaway.runtime.native import library
from cutaway.runtime.native.library import KINDS, need

if library.load() is None:
    pytest.skip("the native engine is not built here: no C++ compiler", allow_module_level=True)

NAMES = [
    name
    for name in ("plain", "avx2", "avx512bw", "avx512", "avx512bf16", "neon")
    if need().cutaway_kernels(name.encode())
]


def tolerance(name: str, kind: str) -> float:
    """Activations are rounded to 8 bits, or to bfloat16 where the processor has products of it."""
    return 0.02 if kind in ("int8", "int4") else 0.004 if (name, kind) == ("avx512bf16", "bfloat16") else 1e-5


def packed(weights: np.ndarray, kind: str) -> np.ndarray:
    rows, inputs = weights.shape
    memory = np.zeros(need().cutaway_matrix_bytes(KINDS.index(kind), rows, inputs), dtype=np.uint8)
    assert need().cutaway_pack(KINDS.index(kind), rows, inputs, weights.ctypes.data, memory.ctypes.data, 1, None) == 0
    return memory


def unpacked(memory: np.ndarray, kind: str, shape: tuple[int, int]) -> np.ndarray:
    weights = np.empty(shape, dtype=np.float32)
    need().cutaway_unpack(KINDS.index(kind), *shape, memory.ctypes.data, weights.ctypes.data)
    return weights


def product(name: str, kind: str, memory: np.ndarray, shape: tuple[int, int], x: np.ndarray) -> np.ndarray:
    out = np.full((len(x), shape[0]), np.nan, dtype=np.float32)
    x = np.ascontiguousarray(x)
    failed = need().cutaway_product(
        name.encode(), KINDS.index(kind), *shape, memory.ctypes.data, len(x), x.ctypes.data, out.ctypes.data
    )
    assert failed == 0
    return out


def numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


SHAPES = [(1, 1), (16, 64), (17, 63), (33, 100), (50, 7), (48, 192), (15, 129)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_rounding_is_as_fine_as_the_kind_says(kind, shape):
    weights = numbers(1, *shape)
    back = unpacked(packed(weights, kind), kind, shape)
    group = {"float32": shape[1], "bfloat16": shape[1], "int8": 64, "int4": 32}[kind]
    for first in range(0, shape[1], group):
        part, got = weights[:, first : first + group], back[:, first : first + group]
        largest = np.abs(part).max(axis=1, keepdims=True)
        step = {"float32": 0 * part, "bfloat16": np.abs(part) / 256, "int8": largest / 127 * 0.51, "int4": largest / 4}
        assert (np.abs(part - got) <= step[kind] + 1e-7).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7, 13])
def test_a_product_is_what_numpy_gives(name, kind, shape, count):
    memory = packed(numbers(2, *shape), kind)
    x = numbers(3, count, shape[1])
    expected = x.astype(np.float64) @ unpacked(memory, kind, shape).astype(np.float64).T
    furthest = tolerance(name, kind) * np.sqrt(shape[1]) * 3
    assert np.abs(product(name, kind, memory, shape, x) - expected).max() <= furthest


@pytest.mark.parametrize("name", NAMES[1:])
@pytest.mark.parametrize("kind", ["int8", "int4"])
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 999), rows=st.integers(1, 70), inputs=st.integers(1, 300), count=st.integers(1, 9))
def test_whole_numbers_give_the_same_bits_on_every_processor(name, kind, seed, rows, inputs, count):
    memory = packed(numbers(seed, rows, inputs), kind)
    x = numbers(seed + 1, count, inputs)
    plain = product("plain", kind, memory, (rows, inputs), x)
    assert (product(name, kind, memory, (rows, inputs), x).view(np.uint32) == plain.view(np.uint32)).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["int8", "int4"])
@pytest.mark.parametrize("signs", [(1, 1), (1, -1), (-1, 1), (-1, -1)])
def test_the_largest_numbers_do_not_overflow(name, kind, signs):
    shape = (16, 256)
    memory = packed(np.full(shape, signs[0], dtype=np.float32), kind)
    for count in (1, 4):
        x = np.full((count, shape[1]), signs[1] * 3.0, dtype=np.float32)
        expected = x @ unpacked(memory, kind, shape).T
        np.testing.assert_allclose(product(name, kind, memory, shape, x), expected, rtol=1e-3)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_do_not_depend_on_how_many_there_are(name, kind):
    memory, x = packed(numbers(5, 40, 96), kind), numbers(6, 11, 96)
    together = product(name, kind, memory, (40, 96), x)
    alone = np.concatenate([product(name, kind, memory, (40, 96), x[row : row + 1]) for row in range(11)])
    assert (together.view(np.uint32) == alone.view(np.uint32)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_zeros_stay_zeros(kind):
    memory = packed(np.zeros((20, 70), dtype=np.float32), kind)
    assert (product("plain", kind, memory, (20, 70), np.zeros((3, 70), dtype=np.float32)) == 0).all()


LARGE = (150, 2_500)  # ten tiles, two more than a panel has; more inputs than a strip of any kind


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_no_bit_depends_on_how_a_large_product_is_cut(name, kind):
    memory, x = packed(numbers(7, *LARGE), kind), numbers(8, 131, LARGE[1])
    alone = np.concatenate([product(name, kind, memory, LARGE, x[row : row + 1]) for row in range(131)])
    expected = x.astype(np.float64) @ unpacked(memory, kind, LARGE).astype(np.float64).T
    assert np.abs(alone - expected).max() <= tolerance(name, kind) * np.sqrt(LARGE[1]) * 3
    for count in (131, 97, 25, 16):
        together = product(name, kind, memory, LARGE, x[:count])
        assert (together.view(np.uint32) == alone[:count].view(np.uint32)).all()


@pytest.mark.parametrize("name", NAMES[1:])
@pytest.mark.parametrize("kind", ["int8", "int4"])
def test_large_products_of_whole_numbers_give_the_same_bits_on_every_processor(name, kind):
    memory, x = packed(numbers(11, *LARGE), kind), numbers(12, 29, LARGE[1])
    plain = product("plain", kind, memory, LARGE, x)
    assert (product(name, kind, memory, LARGE, x).view(np.uint32) == plain.view(np.uint32)).all()
