"""int4 that makes up for its rounding: what it gains, and that it is the textbook's computation."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import cutaway
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.runtime.native import calibrate, library
from cutaway.runtime.native.library import KINDS, need
from cutaway.runtime.native.pack import memory_of, pack, unpack, weights_read

if library.load() is None:
    pytest.skip("the native engine is not built here: no C++ compiler", allow_module_level=True)

INT4 = KINDS.index("int4")


def rounded(weights, factor, threads=1):
    """A matrix through the kernels' packing and back."""
    rows, inputs = weights.shape
    memory = memory_of(need().cutaway_matrix_bytes(INT4, rows, inputs))
    pointer = None if factor is None else factor.ctypes.data
    assert need().cutaway_pack(INT4, rows, inputs, weights.ctypes.data, memory.ctypes.data, threads, pointer) == 0
    out = np.empty_like(weights)
    need().cutaway_unpack(INT4, rows, inputs, memory.ctypes.data, out.ctypes.data)
    return out


def by_hand(weights, factor):
    """Column by column, in float64, with the scales the packing finds for what is left of each group."""
    left, out = weights.astype(np.float64), np.zeros(weights.shape)
    for first in range(0, weights.shape[1], 32):
        last = min(first + 32, weights.shape[1])
        for row in range(len(left)):
            grid = scale_of(left[row, first:last].astype(np.float32))
            for i in range(first, last):
                step = np.clip(np.round(left[row, i] / grid), -8, 7) if grid else 0
                out[row, i] = step * grid
                left[row, i + 1 :] -= (left[row, i] - out[row, i]) / factor[i, i] * factor[i, i + 1 :]
    return out


def scale_of(group):
    """What the packing multiplies its steps with, when it rounds this group alone: the first thing in a tile."""
    padded = np.zeros((1, 32), dtype=np.float32)
    padded[0, : len(group)] = group
    memory = memory_of(need().cutaway_matrix_bytes(INT4, 1, 32))
    need().cutaway_pack(INT4, 1, 32, padded.ctypes.data, memory.ctypes.data, 1, None)
    return float((memory[:2].view(np.uint16).astype(np.uint32) << 16).view(np.float32)[0])


@pytest.fixture(scope="module")
def inputs():
    """Inputs that come together: [2000, 70], of rank 20 and a little noise."""
    random = np.random.default_rng(0)
    return (
        random.normal(size=(2000, 20)) @ random.normal(size=(20, 70)) + 0.1 * random.normal(size=(2000, 70))
    ).astype(np.float32)


@pytest.mark.parametrize("rows", [1, 16, 21])
def test_every_column_passes_its_error_on(inputs, rows):
    weights = np.random.default_rng(rows).normal(size=(rows, 70)).astype(np.float32)
    factor = calibrate.factor(torch.from_numpy(inputs.T @ inputs))
    found, wanted = rounded(weights, factor), by_hand(weights, factor)
    same = np.isclose(found, wanted, atol=1e-6).mean()
    assert same > 0.97  # a weight half way between two steps may fall either way, and takes the rest of its row along
    assert np.array_equal(found, rounded(weights, factor, threads=3))


def test_what_comes_out_is_nearer_than_with_plain_rounding(inputs):
    weights = np.random.default_rng(5).normal(size=(40, 70)).astype(np.float32)
    factor = calibrate.factor(torch.from_numpy(inputs.T @ inputs))
    plain, careful = (np.square(inputs @ (weights - rounded(weights, f)).T).mean() for f in (None, factor))
    assert careful < 0.5 * plain


def test_inputs_that_never_came_up_do_no_harm():
    weights = np.random.default_rng(6).normal(size=(3, 40)).astype(np.float32)
    factor = calibrate.factor(torch.zeros(40, 40))
    assert np.array_equal(rounded(weights, factor), rounded(weights, None))


@pytest.mark.parametrize("broken", [torch.full((40, 40), torch.nan), torch.diag(torch.full((40,), -1.0))])
def test_moments_that_are_none_leave_plain_rounding(broken):
    assert np.array_equal(calibrate.factor(broken), np.eye(40))


def test_the_factors_are_of_the_inputs_each_matrix_gets():
    torch.manual_seed(1)
    model = GPT(Config(vocabulary=50, context=16, width=8, layers=2, heads=2)).eval()
    texts = [[3, 1, 4, 1, 5], [9, 2, 6]]
    found = dict(calibrate.factors(model, texts))
    blocks = [f"blocks.{layer}.{name}.weight" for layer in range(2) for name in calibrate.MATRICES]
    assert list(found) == [*blocks, "output.weight"]
    seen = {name: [] for name in found}
    model.final_norm.register_forward_hook(lambda _, given, out: seen["output.weight"].append(out.flatten(0, -2)))
    for name in blocks:
        module = model.get_submodule(name.removesuffix(".weight"))
        module.register_forward_pre_hook(lambda _, given, name=name: seen[name].append(given[0].flatten(0, -2)))
    with torch.inference_mode():
        for ids in texts:
            model(torch.tensor([ids]))
    for name, parts in seen.items():
        x = torch.cat(parts).double()
        moments = x.T @ x
        moments += torch.eye(len(moments)) * moments.diagonal().mean() * calibrate.DAMPING
        upper = torch.from_numpy(found[name]).double()
        assert torch.allclose(upper.T @ upper @ moments, torch.eye(len(moments)).double(), atol=2e-3)


def test_loading_as_int4_takes_care():
    lm = cutaway.load(weights="int4")
    careful, model = lm.runtime.packed, cutaway.load().model
    assert careful.nbytes == pack(model, "int4").nbytes
    assert not np.array_equal(careful.memory, pack(model, "int4").memory)
    again = calibrate.pack_calibrated(model, lm.tokenizer)
    assert np.array_equal(careful.memory, again.memory)
    assert not torch.equal(unpack(careful).blocks[0].mlp.widen.weight, model.blocks[0].mlp.widen.weight)


def test_a_large_model_is_loaded_without_delay(monkeypatch):
    lm = cutaway.load()
    monkeypatch.setattr(calibrate, "QUICK", 7_000_000)
    monkeypatch.setattr(calibrate, "writing", None)  # is not called
    found = lm._pack_int4()
    assert np.array_equal(found.memory, pack(lm.model, "int4").memory)


def test_a_model_that_writes_next_to_nothing_is_rounded_plainly(monkeypatch):
    lm = cutaway.load()
    monkeypatch.setattr(calibrate, "writing", lambda model, tokenizer: [[model.config.end, 5]])
    found = calibrate.pack_calibrated(lm.model, lm.tokenizer)
    assert np.array_equal(found.memory, pack(lm.model, "int4").memory)


def test_int4_keeps_the_token_embedding_in_int8(tiny_lm):
    four, eight = (unpack(pack(tiny_lm.model, kind)) for kind in ("int4", "int8"))
    assert torch.equal(four.token_embedding.weight, eight.token_embedding.weight)
    assert not torch.equal(four.blocks[0].mlp.widen.weight, eight.blocks[0].mlp.widen.weight)


def test_int4_has_an_output_matrix_of_its_own_in_four_bits(tiny_lm):
    assert tiny_lm.model.config.tied
    four = unpack(pack(tiny_lm.model, "int4"))
    assert not four.config.tied
    exact, got = tiny_lm.model.token_embedding.weight, four.output.weight
    off = ((got - exact).norm() / exact.norm()).item()
    assert 0.01 < off < 0.15  # coarser than int8's, which is below 0.01
    read = {place.name: place.packed for place in weights_read(tiny_lm.config, "int4")}
    assert read["output.weight"] == "int4" and "token_embedding.weight" not in read
