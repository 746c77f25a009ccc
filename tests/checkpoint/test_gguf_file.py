"""A GGUF file of a GPT-2 is read: the model, its shape and its tokenizer; damage is named."""

from __future__ import annotations

import struct
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch

import cutaway
from cutaway import checkpoint
from cutaway.checkpoint import gguf as export
from cutaway.checkpoint.opened import open_checkpoint
from cutaway.errors import CutawayError
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.text.tokenizer import Tokenizer
from cutaway.text.vocabulary import ALPHABET, END, Vocabulary

SMALL = Tokenizer.load("gpt2").merges[:200]
TOKENIZER = Tokenizer(
    Vocabulary({token: i for i, token in enumerate([*ALPHABET.values(), *map("".join, SMALL)])}, SMALL, {END: 456}, END)
)
SHAPE = Config(vocabulary=len(TOKENIZER), context=40, width=64, layers=2, heads=4)
TEXT = "There is the thing in the other one."


def model_of(config: Config) -> GPT:
    torch.manual_seed(1)
    model = GPT(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.2)
    return model


def written(folder: Path, config: Config = SHAPE, kind: str = "f32", tokenizer: Tokenizer = TOKENIZER) -> Path:
    path = folder / "model.gguf"
    export.write_gguf(model_of(config), tokenizer, path, kind)
    return path


@pytest.mark.parametrize(
    "changes",
    [{}, {"tied": False}, {"norm_epsilon": 0.1}, {"vocabulary": 512, "end_token": 456}, {"mlp_width": 96}],
    ids=["as GPT-2", "untied", "other epsilon", "rows no token uses", "another MLP"],
)
def test_what_was_written_comes_back(changes: dict, tmp_path: Path):
    config = SHAPE.but(**changes)
    lm = cutaway.load(written(tmp_path, config))
    assert lm.config == config
    ours = model_of(config)
    for name, parameter in ours.named_parameters():
        assert torch.equal(lm.model.get_parameter(name), parameter), name
    assert lm.tokenizer.encode(TEXT) == TOKENIZER.encode(TEXT)
    assert lm.tokenizer.end == TOKENIZER.end
    assert len(lm.tokenizer) == len(TOKENIZER)


@pytest.mark.parametrize("kind", ["f16", "q8_0", "q4_0"])
def test_rounded_weights_are_those_the_gguf_package_unpacks(kind: str, tmp_path: Path):
    path = written(tmp_path, kind=kind)
    model = checkpoint.read_model(path)
    theirs = {t.name: gguf.quants.dequantize(t.data, t.tensor_type) for t in gguf.GGUFReader(path).tensors}
    for name, ours in export.named(model):
        assert np.array_equal(ours.detach().numpy(), theirs[name].astype(np.float32)), name


@pytest.mark.parametrize(
    ("kind", "bytes_a_block"), [("Q2_K", 84), ("Q3_K", 110), ("Q4_K", 144), ("Q5_K", 176), ("Q6_K", 210)]
)
def test_k_quants_are_read(kind: str, bytes_a_block: int, tmp_path: Path):
    """llama.cpp alone writes them: here a matrix of random blocks takes the place of one of ours."""
    stored = gguf.GGMLQuantizationType[kind]
    config = SHAPE.but(width=256, layers=1)
    raw = np.random.default_rng(0).integers(0, 100, (256, bytes_a_block), dtype=np.uint8)
    expected = np.nan_to_num(gguf.quants.dequantize(raw, stored), nan=np.inf)
    assert np.isfinite(expected).all() and np.std(expected) > 0

    path = tmp_path / "k.gguf"
    model, writer = model_of(config), gguf.GGUFWriter(path, "gpt2")
    export.describe(writer, config, "f32", "test")
    export.add_vocabulary(writer, config, TOKENIZER)
    for name, tensor in export.named(model):
        quantised = name == "blk.0.attn_output.weight"
        writer.add_tensor(name, raw if quantised else tensor.detach().numpy(), raw_dtype=stored if quantised else None)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert np.array_equal(checkpoint.read_model(path).blocks[0].attention.projection.weight.detach().numpy(), expected)


def test_a_stored_copy_of_the_tied_output_is_the_same_matrix(tmp_path: Path):
    """Older converters write it twice."""
    config = SHAPE.but(tied=False)
    model = model_of(config)
    with torch.no_grad():
        model.output.weight.copy_(model.token_embedding.weight)
    export.write_gguf(model, TOKENIZER, tmp_path / "twice.gguf", "f16")
    assert checkpoint.read_config(tmp_path / "twice.gguf").tied
    assert checkpoint.read_model(tmp_path / "twice.gguf").output is None


def damaged(tmp_path: Path, change) -> Path:
    data = bytearray(written(tmp_path).read_bytes())
    path = tmp_path / "damaged.gguf"
    path.write_bytes(change(data) or data)
    return path


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda data: bytes(data[:20]), "too short"),
        (lambda data: bytes(data[:400]), "damaged or truncated"),
        (lambda data: bytes(data[:-1000]), "beyond its end"),
        (lambda data: b"JUNK" + bytes(data[4:]), "does not begin with GGUF"),
        (lambda data: data.__setitem__(slice(4, 8), struct.pack("<I", 1)), "version 1"),
        (lambda data: data.__setitem__(slice(8, 16), struct.pack("<Q", 2**60)), "claims to hold"),
        (lambda data: data.__setitem__(slice(16, 24), struct.pack("<Q", 900_000)), "damaged or truncated"),
        (lambda data: bytes(data.replace(b"gpt2", b"gptj", 1)), "only 'gpt2' is supported"),
        (lambda data: bytes(data.replace(b"gpt2.block_count", b"gpt2.block_cound")), "block_count"),
        (lambda data: bytes(data.replace(b"blk.1.ffn_up.weight", b"blk.1.ffn_in.weight")), "lacks h.1.mlp.c_fc.weight"),
    ],
)
def test_a_damaged_file_is_named(change, says: str, tmp_path: Path):
    with pytest.raises(CutawayError, match=says):
        checkpoint.read_model(damaged(tmp_path, change))


def test_no_flipped_byte_in_the_header_ends_in_anything_but_a_model_or_a_sentence(tmp_path: Path):
    data = bytearray(written(tmp_path).read_bytes())
    header = data.index(b"tokenizer.ggml.tokens")
    path, chance = tmp_path / "flipped.gguf", np.random.default_rng(3)
    for _ in range(300):
        copy = bytearray(data)
        copy[int(chance.integers(header))] = int(chance.integers(256))
        path.write_bytes(copy)
        try:
            opened = open_checkpoint(path)
            opened.read_model()
            opened.read_tokenizer()
        except CutawayError:
            pass
