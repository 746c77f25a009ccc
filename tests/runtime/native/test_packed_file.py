"""Packed weights in a file."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import struct

import numpy as np
import pytest

import cutaway
from cutaway.errors import CutawayError
from cutaway.runtime.native import library
from cutaway.runtime.native import packed_file as stored
from cutaway.runtime.native.engine import Engine
from cutaway.runtime.native.pack import pack
from cutaway.tasks import Language, Translation, load_task

if library.load() is None:
    pytest.skip("the native engine is not built here: no C++ compiler", allow_module_level=True)


@pytest.fixture(scope="module")
def file(tiny_lm, tmp_path_factory):
    path = tmp_path_factory.mktemp("stored") / "tiny.cutaway"
    stored.write_packed(pack(tiny_lm.model, "int8"), tiny_lm.tokenizer, path, {"note": "none"})
    return path


def test_what_was_written_is_read_again(tiny_lm, file):
    packed = stored.read_packed(file, whole=True)
    assert packed.config == tiny_lm.config
    assert (packed.memory == pack(tiny_lm.model, "int8").memory).all()
    assert packed.memory.ctypes.data % 64 == 0


def test_a_file_is_a_model_like_any_other(tiny_lm, file):
    lm = cutaway.load(file)
    fresh = cutaway.LanguageModel(Engine(pack(tiny_lm.model, "int8")), tiny_lm.tokenizer)
    assert lm.tokenizer.encode("Once upon a time") == tiny_lm.tokenizer.encode("Once upon a time")
    assert lm.generate("Once", 20, seed=3).ids == fresh.generate("Once", 20, seed=3).ids
    assert lm.trace("Once", keep="logits")["logits"].shape[-1] == tiny_lm.config.vocabulary
    assert cutaway.load(file, engine="torch").generate("Once", 5, top_k=1).ids


@pytest.mark.parametrize("place", [0, 7, 9, 13, 20, 47, 48, 60, 500, 4000])
def test_a_changed_byte_in_the_head_is_noticed(file, tmp_path, place):
    data = bytearray(file.read_bytes())
    data[place] ^= 0x10
    (tmp_path / "bad.cutaway").write_bytes(data)
    with pytest.raises(CutawayError, match=r"damaged|not a file of packed|version"):
        stored.read_packed(tmp_path / "bad.cutaway")


@pytest.mark.parametrize("block", ["tokens", "files"])
def test_a_changed_byte_in_the_tokenizer_is_noticed(file, tmp_path, block):
    begin, end = getattr(stored.open_packed(file), block)
    for place in (begin, (begin + end) // 2, end - 1):
        data = bytearray(file.read_bytes())
        data[place] ^= 0x10
        (tmp_path / "bad.cutaway").write_bytes(data)
        for read in (stored.open_packed, stored.read_packed):
            with pytest.raises(CutawayError, match="damaged"):
                read(tmp_path / "bad.cutaway")


def test_a_file_of_the_first_version_is_read(tiny_lm, file, tmp_path):
    """As it was written before tokens had a table: sha256, and the tokenizer's files in the header."""
    tiny_lm.tokenizer.save(tmp_path / "tokenizer")
    files = {one.name: one.read_text(encoding="utf-8") for one in (tmp_path / "tokenizer").iterdir()}
    opened = stored.open_packed(file)
    says, first = opened.header, opened.first
    header = json.dumps({**says, "tokenizer": files}).encode()
    start = struct.pack("<8sII32s", b"CUTAWAY\n", 1, len(header), hashlib.sha256(header).digest()) + header
    old = tmp_path / "old.cutaway"
    old.write_bytes(start + bytes(-len(start) % 4096) + file.read_bytes()[first:])
    assert (stored.read_packed(old, whole=True).memory == stored.read_packed(file).memory).all()
    assert cutaway.load(old).generate("Once", 20, seed=3).ids == cutaway.load(file).generate("Once", 20, seed=3).ids
    for place in (60, len(start) - 1):
        data = bytearray(old.read_bytes())
        data[place] ^= 0x10
        (tmp_path / "bad.cutaway").write_bytes(data)
        with pytest.raises(CutawayError, match="damaged"):
            stored.read_packed(tmp_path / "bad.cutaway")


def test_int4_of_the_first_version_must_be_converted_again(tiny_lm, tmp_path):
    header = json.dumps({"config": dataclasses.asdict(tiny_lm.config), "weights": "int4"}).encode()
    start = struct.pack("<8sII32s", b"CUTAWAY\n", 1, len(header), hashlib.sha256(header).digest()) + header
    (tmp_path / "old.cutaway").write_bytes(start)
    with pytest.raises(CutawayError, match=r"older Cutaway.*convert again"):
        stored.read_packed(tmp_path / "old.cutaway")


def test_int4_of_the_second_version_must_be_converted_again_and_the_rest_is_read(tiny_lm, file, tmp_path):
    for weights in ("int4", "int8"):
        stored.write_packed(pack(tiny_lm.model, weights), tiny_lm.tokenizer, tmp_path / "now.cutaway")
        data = bytearray((tmp_path / "now.cutaway").read_bytes())
        data[8:12] = struct.pack("<I", 2)
        (tmp_path / "old.cutaway").write_bytes(data)
        if weights == "int8":
            assert stored.read_packed(tmp_path / "old.cutaway", whole=True).weights == "int8"
        else:
            with pytest.raises(CutawayError, match=r"older Cutaway.*convert again"):
                stored.read_packed(tmp_path / "old.cutaway")


def test_the_tokenizer_comes_back_whole(tiny_lm, file):
    found = stored.open_packed(file).read_tokenizer()
    assert found.vocabulary == tiny_lm.tokenizer.vocabulary and found.merges == tiny_lm.tokenizer.merges
    assert found.encode("日本 Once") == tiny_lm.tokenizer.encode("日本 Once")


def test_a_changed_weight_is_noticed_when_all_is_checked(file, tmp_path):
    data = bytearray(file.read_bytes())
    data[-1000] ^= 1
    (tmp_path / "bad.cutaway").write_bytes(data)
    with pytest.raises(CutawayError, match="weights do not have the checksum"):
        stored.read_packed(tmp_path / "bad.cutaway", whole=True)


@pytest.mark.parametrize("length", [0, 5, 47, 48, 1000, 5000, -1, -4096])
def test_a_file_cut_short_is_refused(file, tmp_path, length):
    data = file.read_bytes()
    (tmp_path / "bad.cutaway").write_bytes(data[:length])
    with pytest.raises(CutawayError, match=r"damaged|not a file of packed"):
        stored.read_packed(tmp_path / "bad.cutaway")


def test_a_file_with_something_behind_it_is_refused(file, tmp_path):
    (tmp_path / "bad.cutaway").write_bytes(file.read_bytes() + b"more")
    with pytest.raises(CutawayError, match="bytes long"):
        cutaway.load(tmp_path / "bad.cutaway")


def test_the_weights_are_mapped_and_not_copied(file):
    assert not stored.read_packed(file).memory.flags.owndata
    assert not stored.read_packed(file).memory.flags.writeable
    assert np.asarray(stored.read_packed(file).memory).nbytes == pack_bytes(file)


def pack_bytes(file):
    first = stored.open_packed(file).first
    return file.stat().st_size - first


def test_the_task_goes_with_the_weights(tiny_lm, tmp_path):
    task = Translation(separator="<|to-french|>")
    stored.write_packed(pack(tiny_lm.model, "int8"), tiny_lm.tokenizer, tmp_path / "t.cutaway", task=task.settings())
    assert load_task(tmp_path / "t.cutaway") == task


def test_a_file_without_a_task_holds_a_language_model(file):
    assert load_task(file) == Language()


def test_the_explorer_knows_a_packed_model(file, tiny_lm):
    from cutaway.serve.models import config_in

    assert config_in(file) == tiny_lm.config


def test_torch_runs_a_file_where_a_number_type_is_wanted(file):
    lm = cutaway.load(file, dtype="bfloat16")
    assert lm.runtime.model is lm.model
    with pytest.raises(CutawayError, match="holds int8 weights"):
        cutaway.load(file, weights="int4")
    with pytest.raises(CutawayError, match="no weights 'int5'"):
        cutaway.load(file, weights="int5")
