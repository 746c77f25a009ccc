"""OpenAI's TensorFlow files: what real TensorFlow wrote is read bit for bit, and what is damaged is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cutaway import checkpoint
from cutaway.checkpoint import openai, tensorflow_file
from cutaway.checkpoint.crc32c import POLYNOMIAL, SHORT, crc32c, unmask
from cutaway.errors import CutawayError
from cutaway.models.gpt2.shape import Config
from cutaway.text.tokenizer import Tokenizer

FIXTURE = Path(__file__).parent / "fixtures" / "openai"
DATA = "model.ckpt.data-00000-of-00001"
INDEX = "model.ckpt.index"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FIXTURE, tmp_path / "117M"))


def refused(folder: Path, *words: str) -> None:
    with pytest.raises(CutawayError) as caught:
        checkpoint.read_model(folder)
    for word in words:
        assert word in str(caught.value), str(caught.value)


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 0x10
    path.write_bytes(content)


def test_every_tensor_is_what_tensorflow_was_given_bit_for_bit() -> None:
    found = tensorflow_file.read_tensorflow(FIXTURE / "model.ckpt")
    with np.load(FIXTURE / "expected.npz") as expected:
        assert sorted(found) == sorted(expected)
        for name in expected:
            assert found[name].dtype == torch.float32
            assert found[name].numpy().tobytes() == expected[name].tobytes()
            assert found[name].shape == expected[name].shape


def test_the_model_holds_those_tensors_in_their_places() -> None:
    model = checkpoint.read_model(FIXTURE)
    assert (
        model.config
        == Config(vocabulary=300, context=16, width=16, layers=2, heads=2)
        == checkpoint.read_config(FIXTURE)
    )
    assert not model.training
    with np.load(FIXTURE / "expected.npz") as file:
        expected = {name: torch.from_numpy(file[name]) for name in file}
    assert torch.equal(model.token_embedding.weight, expected["model/wte"])
    assert torch.equal(model.position_embedding.weight, expected["model/wpe"])
    assert torch.equal(model.final_norm.weight, expected["model/ln_f/g"])
    for i, block in enumerate(model.blocks):
        of = {name.removeprefix(f"model/h{i}/"): value for name, value in expected.items() if f"/h{i}/" in name}
        for layer, name in (
            (block.attention.queries_keys_values, "attn/c_attn"),
            (block.attention.projection, "attn/c_proj"),
            (block.mlp.widen, "mlp/c_fc"),
            (block.mlp.projection, "mlp/c_proj"),
        ):
            assert torch.equal(layer.weight, of[f"{name}/w"][0].T)
            assert torch.equal(layer.bias, of[f"{name}/b"])
        for norm, name in ((block.attention_norm, "ln_1"), (block.mlp_norm, "ln_2")):
            assert torch.equal(norm.weight, of[f"{name}/g"])
            assert torch.equal(norm.bias, of[f"{name}/b"])


def test_it_survives_the_way_into_a_hugging_face_folder(tmp_path: Path) -> None:
    model = checkpoint.read_model(FIXTURE)
    checkpoint.write_model(model, None, tmp_path)
    again = checkpoint.read_model(tmp_path).state_dict()
    assert all(torch.equal(again[name], value) for name, value in model.state_dict().items())


def test_the_tokenizer_beside_it_is_read() -> None:
    tokenizer = Tokenizer.load(FIXTURE)
    assert len(tokenizer) == 300
    assert tokenizer.end == checkpoint.read_config(FIXTURE).end == 299
    assert tokenizer.decode(tokenizer.encode("the robot, the orders")) == "the robot, the orders"


def test_names_become_hugging_faces() -> None:
    assert openai.rename("model/wte") == "wte.weight"
    assert openai.rename("model/h11/attn/c_attn/w") == "h.11.attn.c_attn.weight"
    assert openai.rename("model/h0/ln_1/g") == "h.0.ln_1.weight"
    assert openai.rename("model/ln_f/b") == "ln_f.bias"
    assert openai.rename("beta1_power") == "beta1_power"
    assert openai.rename("model/h0/ln_1/g/Adam") == "model/h0/ln_1/g/Adam"


def test_the_checkpoint_file_says_which_of_several_is_meant(folder: Path) -> None:
    for name in (DATA, INDEX):
        shutil.copy(folder / name, folder / name.replace("model.ckpt", "model-500"))
    assert openai.find_index(folder) == folder / "model.ckpt"
    (folder / "checkpoint").write_text('model_checkpoint_path: "/home/someone/models/model-500"\n')
    assert openai.find_index(folder) == folder / "model-500"
    checkpoint.read_model(folder)
    (folder / "checkpoint").unlink()
    refused(folder, "several checkpoints", "model-500.index")


def test_the_only_checkpoint_needs_no_checkpoint_file(folder: Path) -> None:
    (folder / "checkpoint").unlink()
    assert openai.find_index(folder) == folder / "model.ckpt"


# Damage


@pytest.mark.parametrize("length", [0, 1, 1000, 46591])
def test_a_data_file_that_is_cut_off_is_refused(folder: Path, length: int) -> None:
    (folder / DATA).write_bytes((folder / DATA).read_bytes()[:length])
    refused(folder, DATA, "Download it again")


@pytest.mark.parametrize("at", [0, 20_000, 46591])
def test_a_changed_bit_in_the_data_is_noticed(folder: Path, at: int) -> None:
    flip(folder / DATA, at)
    refused(folder, DATA, "checksum of model/", "Download it again")


def test_a_changed_bit_in_the_index_is_noticed(folder: Path) -> None:
    whole = (folder / INDEX).read_bytes()
    footer = len(whole) - tensorflow_file.FOOTER
    (start, size), used = tensorflow_file._handle(whole, footer)  # of a block that TensorFlow leaves empty
    (_, _), end = tensorflow_file._handle(whole, used)
    idle = {*range(start, start + size + 5), *range(footer, used), *range(end, len(whole) - 8)}
    for at in sorted(set(range(len(whole))) - idle)[::3]:
        (folder / INDEX).write_bytes(whole)
        flip(folder / INDEX, at)
        with pytest.raises(CutawayError, match=INDEX):
            tensorflow_file.read_index(folder / INDEX)


def test_an_index_cut_off_anywhere_is_refused(folder: Path) -> None:
    whole = (folder / INDEX).read_bytes()
    for length in range(0, len(whole), 13):
        (folder / INDEX).write_bytes(whole[:length])
        refused(folder, INDEX)


def test_a_missing_data_file_is_named(folder: Path) -> None:
    (folder / DATA).unlink()
    refused(folder, DATA)


def test_a_missing_index_is_named(folder: Path) -> None:
    (folder / INDEX).unlink()
    refused(folder, "model.ckpt.index")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_embd": 32}, ["wte.weight", "[300, 16]", "[300, 32]"]),
        ({"n_vocab": 50257}, ["wte.weight", "[50257, 16]"]),
        ({"n_ctx": 1024}, ["wpe.weight", "[16, 16]", "[1024, 16]"]),
        ({"n_layer": 12}, ["lacks h.2.ln_1.weight"]),
        ({"n_layer": 1}, ["h.1."]),
        ({"n_head": 3}, ["hparams.json", "3 heads"]),
        ({"n_embd": None}, ["hparams.json", "n_embd"]),
        ({"n_embd": "16"}, ["hparams.json", "n_embd", "'16'"]),
        ({"n_layer": 0}, ["hparams.json", "layers"]),
    ],
    ids=str,
)
def test_hparams_of_another_model_are_refused(folder: Path, changes: dict[str, object], words: list[str]) -> None:
    path = folder / "hparams.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    refused(folder, *words)


def test_hparams_that_are_not_json_are_refused(folder: Path) -> None:
    (folder / "hparams.json").write_text("n_embd = 16")
    refused(folder, "hparams.json", "JSON")


# Indexes made by hand: what TensorFlow would not write


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def mask(checksum: int) -> int:
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def block(rows: list[tuple[int, bytes, bytes]], kind: int = 0) -> bytes:
    """Rows of (bytes shared with the key before, the rest of the key, value), with the block's trailer."""
    content = b"".join(
        varint(shared) + varint(len(key)) + varint(len(value)) + key + value for shared, key, value in rows
    )
    content += bytes(4) + (1).to_bytes(4, "little") + bytes([kind])
    return content + mask(crc32c(content)).to_bytes(4, "little")


def table(*blocks: bytes, handles: list[tuple[int, int]] | None = None) -> bytes:
    starts = [sum(map(len, blocks[:i])) for i in range(len(blocks))]
    handles = handles or [(start, len(part) - 5) for start, part in zip(starts, blocks, strict=True)]
    index = block([(0, bytes([97 + i % 26]), varint(at) + varint(size)) for i, (at, size) in enumerate(handles)])
    body = b"".join(blocks)
    footer = varint(0) + varint(0) + varint(len(body)) + varint(len(index) - 5)
    return body + index + footer.ljust(40, b"\0") + tensorflow_file.MAGIC.to_bytes(8, "little")


HEADER = (0, b"", b"\x08\x01\x1a\x02\x08\x01")


def entry(
    dims: tuple[int, ...] = (2,), size: int = 8, offset: int = 0, dtype: int = 1, shard: int = 0, more: bytes = b""
) -> bytes:
    shape = b"".join(b"\x12" + varint(len(dim)) + dim for dim in (b"\x08" + varint(dim) for dim in dims))
    return (
        b"\x08" + varint(dtype) + b"\x12" + varint(len(shape)) + shape + b"\x18" + varint(shard)
        + b"\x20" + varint(offset) + b"\x28" + varint(size)
        + b"\x35" + mask(crc32c(bytes(8))).to_bytes(4, "little") + more
    )  # fmt: skip


HONEST = block([HEADER, (0, b"a", entry())])


def made(folder: Path, index: bytes) -> Path:
    (folder / INDEX).write_bytes(index)
    (folder / DATA).write_bytes(bytes(8))
    return folder / "model.ckpt"


def test_an_index_made_by_hand_is_read(tmp_path: Path) -> None:
    found = tensorflow_file.read_tensorflow(made(tmp_path, table(HONEST)))
    assert torch.equal(found["a"], torch.zeros(2))


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (table(block([HEADER, (0, b"a", entry(dtype=7))])), "type number 7"),
        (table(block([HEADER, (0, b"a", entry(shard=1))])), "contradicts itself"),
        (table(block([HEADER, (0, b"a", entry(dims=(3,)))])), "contradicts itself"),
        (table(block([HEADER, (0, b"a", entry(dims=(0, 2**63), size=0))])), "contradicts itself"),
        (table(block([HEADER, (0, b"a", entry(dims=(2,) + (1,) * 100))])), "contradicts itself"),
        (table(block([HEADER, (0, b"a", entry(dims=(2**62,), size=2**64))])), "truncated"),
        (table(block([HEADER, (0, b"a", entry(offset=4))])), "truncated"),
        (table(block([HEADER, (0, b"a", entry(offset=2**63))])), "truncated"),
        (table(block([HEADER, (0, b"a", entry()), (0, b"b", entry())])), "the same place"),
        (table(block([HEADER, (0, b"a", entry(more=b"\x3a\x00"))])), "slices"),
        (table(block([(0, b"", b"\x08\x01\x10\x01"), (0, b"a", entry())])), "big-endian"),
        (table(block([HEADER, (0, b"a", entry())], kind=1)), "Snappy"),
        (table(block([(0, b"a", entry())])), "damaged"),
        (table(block([HEADER, (5, b"a", entry())])), "damaged"),
        (table(block([HEADER, (0, b"a" * 2000, entry())])), "damaged"),
        (table(block([HEADER, (0, b"\xff", entry())])), "damaged"),
        (table(block([HEADER, (0, b"a", b"\x07")])), "damaged"),
        (table(block([HEADER, (0, b"a", b"\x0a\x7f")])), "damaged"),
        (table(HONEST, handles=[(0, len(HONEST) - 5)] * 2), "damaged"),
        (table(block([HEADER]), handles=[(0, 2**60)]), "damaged"),
        (table(block([HEADER]), handles=[(2**60, 5)]), "damaged"),
        (b"not an index" * 10, "damaged"),
    ],
)
def test_an_index_that_lies_is_refused(tmp_path: Path, index: bytes, words: str) -> None:
    with pytest.raises(CutawayError, match=words):
        tensorflow_file.read_tensorflow(made(tmp_path, index))["a"]


def test_a_key_that_doubles_as_it_goes_does_not_fill_the_memory(tmp_path: Path) -> None:
    rows = [HEADER, (0, b"k" * 900, entry()), *((900, b"%04d" % i, entry()) for i in range(2000))]
    with pytest.raises(CutawayError, match="the same place"):
        tensorflow_file.read_tensorflow(made(tmp_path, table(block(rows))))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_entry_is_read_or_refused_and_nothing_else(tmp_path: Path, data: st.DataObject) -> None:
    """The checksums are right here, so that damage reaches the reading of the values."""
    value = bytearray(entry())
    for at, byte in data.draw(st.lists(st.tuples(st.integers(0, len(value) - 1), st.integers(0, 255)), min_size=1)):
        value[at] = byte
    try:
        found = tensorflow_file.read_tensorflow(made(tmp_path, table(block([HEADER, (0, b"a", bytes(value))]))))
        assert found["a"].nbytes <= 8
    except CutawayError:
        pass


# The checksum


def test_the_checksum_is_crc_32c() -> None:
    assert crc32c(b"123456789") == 0xE3069283  # the check value in the catalogues
    assert crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert unmask(mask(0xE3069283)) == 0xE3069283


@pytest.mark.parametrize("size", [0, 1, 5, 512, SHORT - 1, *range(SHORT, SHORT + 5), 65_536, 65_537, 65_540, 131_077])
def test_the_checksum_of_any_length_is_the_one_made_bit_by_bit(size: int) -> None:
    content = np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes()
    remainder = 0xFFFFFFFF
    for byte in content:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (POLYNOMIAL if remainder & 1 else 0)
    assert crc32c(content) == crc32c(memoryview(content)) == remainder ^ 0xFFFFFFFF
