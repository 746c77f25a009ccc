"""Relative attention in the native engine: the model's scores, whoever reads beside it and in how many threads."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cutaway.runtime.native import library
from cutaway.runtime.native.engine import Engine
from cutaway.runtime.native.from_folder import pack_folder
from cutaway.runtime.native.library import KINDS, need
from cutaway.runtime.native.pack import pack, unpack

if library.load() is None:
    pytest.skip("the native engine is not built here: no C++ compiler", allow_module_level=True)

NAMES = [
    name for name in ("plain", "avx2", "avx512bw", "avx512", "avx512bf16") if need().cutaway_kernels(name.encode())
]
FURTHEST = {"float32": 3e-5, "bfloat16": 3e-5, "int8": 0.1, "int4": 0.1}


def ids_of(count: int, vocabulary: int = 203) -> list[int]:
    return np.random.default_rng(0).integers(0, vocabulary, count).tolist()


@torch.inference_mode()
def logits(model, ids):
    return model(torch.tensor([ids]))[0].numpy()


def apart(a, b):
    return np.abs(a - b).max() / np.std(b)


@pytest.fixture
def relative(make):
    def model(**shape):
        made = make(**{"positions": "relative", **shape})
        with torch.no_grad():
            for block in made.blocks:
                block.attention.distances.mul_(2)  # so that they matter
        return made

    return model


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_the_model_with_the_same_weights(relative, name, kind):
    packed = pack(relative(), kind)
    engine, model = Engine(packed, 2, name), unpack(packed)
    furthest = 0.05 if (name, kind) == ("avx512bf16", "bfloat16") else FURTHEST[kind]
    for length in (1, 17, 65, 80):
        ids = ids_of(length)
        assert apart(engine.read([engine.text()], [ids], length), logits(model, ids)) < furthest


@pytest.mark.parametrize(
    "shape",
    [{"width": 3, "heads": 1}, {"width": 35, "heads": 5}, {"context": 1}, {"context": 200}, {"scale_by_layer": True}],
    ids=str,
)
def test_odd_shapes(relative, shape):
    model = relative(**shape)
    engine, ids = Engine(pack(model, "float32")), ids_of(model.config.context)
    assert apart(engine.read([engine.text()], [ids], len(ids)), logits(model, ids)) < 3e-5


def test_float32_packs_and_unpacks_to_the_last_bit(relative):
    model = relative()
    back = unpack(pack(model, "float32"))
    assert back.config == model.config
    assert all(torch.equal(one, back.get_parameter(name)) for name, one in model.named_parameters())


@pytest.mark.parametrize("name", NAMES)
def test_neither_threads_nor_company_nor_cuts_change_a_bit(relative, name):
    packed, ids = pack(relative(), "int8"), ids_of(80)
    engine = Engine(packed, 1, name)
    expected = engine.read([engine.text()], [ids], 80)
    for threads in (1, 2, 3):
        engine = Engine(packed, threads, name)
        text, other = engine.text(), engine.text()
        engine.read([other], [ids[:30]])
        found = []
        for start, end in ((0, 13), (13, 14), (14, 15), (15, 66), (66, 80)):
            read = engine.read([other, text], [[5], ids[start:end]], [1, end - start])
            found.append(read[1:])
        assert np.array_equal(np.concatenate(found), expected)


def test_a_folder_is_packed_without_torch_and_a_packed_file_remembers(relative, tmp_path):
    from cutaway import checkpoint
    from cutaway.runtime.native.packed_file import open_packed, write_packed
    from cutaway.text.tokenizer import Tokenizer

    model = relative(vocabulary=50_257, width=8, heads=2)
    checkpoint.write_model(model, Tokenizer.load("gpt2"), tmp_path)
    packed = pack_folder(tmp_path, model.config)
    assert packed is not None
    assert np.array_equal(packed.memory, pack(model, "float32").memory)
    write_packed(packed, Tokenizer.load("gpt2"), tmp_path / "model.cutaway")
    assert open_packed(tmp_path / "model.cutaway").config.positions == "relative"
