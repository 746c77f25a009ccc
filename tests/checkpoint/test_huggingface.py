"""Hugging Face folders: the same logits there and here, and every bad one refused."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel, GPT2Model

from cutaway import checkpoint
from cutaway.errors import CutawayError
from cutaway.models.gpt2 import config_json
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config

TINY = Config(vocabulary=99, context=20, width=24, layers=3, heads=4, dropout=0.1, end_token=7)
IDS = torch.tensor([[5, 98, 0, 41, 41, 12, 77, 3]])
OTHERS = {
    "tied": {},
    "untied": {"tied": False},
    "scaled by layer": {"scale_by_layer": True},
    "own MLP width": {"mlp_width": 40, "norm_epsilon": 1e-3},
    "gelu": {"activation": "gelu"},
    "relu": {"activation": "relu"},
    "silu": {"activation": "silu"},
}


def ours(**changes: object) -> GPT:
    torch.manual_seed(1)
    model = GPT(TINY.but(**changes)).eval()
    with torch.no_grad():  # away from the zeros and ones that would hide a mix-up
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def theirs(cls: type = GPT2LMHeadModel, **changes: object) -> GPT2LMHeadModel:
    torch.manual_seed(2)
    shape = {"vocab_size": 99, "n_positions": 20, "n_embd": 24, "n_layer": 3, "n_head": 4}
    model = cls(GPT2Config(**shape, bos_token_id=7, eos_token_id=7, **changes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


@torch.no_grad()
def difference(mine: GPT, reference: GPT2LMHeadModel) -> float:
    return float((mine(IDS) - reference(IDS).logits).abs().max())


def same(a: GPT, b: GPT) -> bool:
    one, two = a.state_dict(), b.state_dict()
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    checkpoint.write_model(ours(), None, tmp_path / "model")
    return tmp_path / "model"


def refused(folder: Path, *words: str) -> str:
    with pytest.raises(CutawayError) as caught:
        checkpoint.read_model(folder)
    message = str(caught.value)
    for word in words:
        assert word in message, message
    return message


def configure(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def change(folder: Path, **tensors: torch.Tensor | None) -> None:
    """Replace, add or (None) remove tensors in the folder's weights; a dot in a name is given as __."""
    path = folder / "model.safetensors"
    stored = load_file(path)
    for name, tensor in tensors.items():
        stored.pop(name.replace("__", "."), None)
        if tensor is not None:
            stored[name.replace("__", ".")] = tensor
    save_file(stored, path, {"format": "pt"})


# What we write


@pytest.mark.parametrize("changes", OTHERS.values(), ids=OTHERS.keys())
def test_our_folder_gives_the_same_logits_in_transformers(tmp_path: Path, changes: dict[str, object]) -> None:
    model = ours(**changes)
    checkpoint.write_model(model, None, tmp_path)
    reference, report = GPT2LMHeadModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report.values()), report
    assert reference.dtype == torch.float32
    assert difference(model, reference.eval()) < 1e-5


@pytest.mark.parametrize("changes", OTHERS.values(), ids=OTHERS.keys())
def test_what_we_write_reads_back_bit_for_bit(tmp_path: Path, changes: dict[str, object]) -> None:
    model = ours(**changes)
    checkpoint.write_model(model, None, tmp_path)
    again = checkpoint.read_model(tmp_path)
    assert same(model, again)
    assert again.config == model.config == checkpoint.read_config(tmp_path)
    assert not again.training
    assert all(parameter.requires_grad and parameter.is_contiguous() for parameter in again.parameters())


def test_weights_beyond_the_limit_go_into_shards_that_transformers_reads(tmp_path: Path) -> None:
    model = ours(tied=False)
    checkpoint.write_model(model, None, tmp_path, shard_bytes=20_000)
    shards = sorted(path.name for path in tmp_path.glob("*.safetensors"))
    assert len(shards) > 2
    assert shards[0] == f"model-00001-of-{len(shards):05d}.safetensors"
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == sum(parameter.nbytes for parameter in model.parameters())
    assert same(model, checkpoint.read_model(tmp_path))
    reference, report = GPT2LMHeadModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report.values()), report
    assert difference(model, reference.eval()) < 1e-5


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_written_in_half_are_half_as_long_and_read_back_rounded(tmp_path: Path, dtype: torch.dtype) -> None:
    model = ours()
    checkpoint.write_model(model, None, tmp_path / "half", dtype=dtype)
    checkpoint.write_model(model, None, tmp_path / "full")
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("half", "full")]
    assert sizes[0] < 0.6 * sizes[1]
    with safe_open(tmp_path / "half" / "model.safetensors", "pt") as file:
        assert file.metadata() == {"format": "pt"}
        assert file.get_tensor("transformer.wte.weight").dtype == dtype
    assert GPT2LMHeadModel.from_pretrained(tmp_path / "half").dtype == dtype
    assert same(checkpoint.read_model(tmp_path / "half"), model.to(dtype).float())
    assert checkpoint.read_model(tmp_path / "half", dtype=dtype).token_embedding.weight.dtype == dtype


def test_transformers_stops_at_our_end_token(folder: Path) -> None:
    assert GPT2LMHeadModel.from_pretrained(folder).generation_config.eos_token_id == 7


# What transformers writes


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tie_word_embeddings": False},
        {"scale_attn_by_inverse_layer_idx": True, "n_inner": 50, "layer_norm_epsilon": 1e-3},
        *({"activation_function": name} for name in config_json.ACTIVATIONS),
    ],
    ids=str,
)
def test_what_transformers_saves_gives_the_same_logits_here(tmp_path: Path, changes: dict[str, object]) -> None:
    reference = theirs(**changes)
    reference.save_pretrained(tmp_path)
    assert difference(checkpoint.read_model(tmp_path), reference) < 1e-5


def test_shards_that_transformers_saves_are_read(tmp_path: Path) -> None:
    reference = theirs()
    reference.save_pretrained(tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    assert difference(checkpoint.read_model(tmp_path), reference) < 1e-5


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_that_transformers_saves_is_read_exactly(tmp_path: Path, dtype: torch.dtype) -> None:
    reference = theirs().to(dtype)
    reference.save_pretrained(tmp_path)
    model = checkpoint.read_model(tmp_path)
    assert model.token_embedding.weight.dtype == torch.float32
    assert difference(model, reference.float()) < 1e-5


def test_a_base_model_has_no_prefix_and_is_read(tmp_path: Path) -> None:
    base = theirs(GPT2Model)
    base.save_pretrained(tmp_path)
    assert "wte.weight" in load_file(tmp_path / "model.safetensors")
    with torch.no_grad():
        logits = base(IDS).last_hidden_state @ base.wte.weight.T
        assert float((checkpoint.read_model(tmp_path)(IDS) - logits).abs().max()) < 1e-5


@pytest.mark.parametrize("form", ["zip", "row"])
@pytest.mark.parametrize("cls", [GPT2LMHeadModel, GPT2Model])
def test_a_pickled_state_dict_is_read(tmp_path: Path, form: str, cls: type) -> None:
    reference = theirs(cls)
    reference.config.save_pretrained(tmp_path)
    torch.save(reference.state_dict(), tmp_path / "pytorch_model.bin", _use_new_zipfile_serialization=form == "zip")
    base = reference if cls is GPT2Model else reference.transformer
    with torch.no_grad():
        logits = base(IDS).last_hidden_state @ base.wte.weight.T
        assert float((checkpoint.read_model(tmp_path)(IDS) - logits).abs().max()) < 1e-5


def test_pickles_in_shards_are_read(tmp_path: Path) -> None:
    reference = theirs()
    reference.config.save_pretrained(tmp_path)
    state = list(reference.state_dict().items())
    halves = {
        "pytorch_model-00001-of-00002.bin": dict(state[:20]),
        "pytorch_model-00002-of-00002.bin": dict(state[20:]),
    }
    for name, half in halves.items():
        torch.save(half, tmp_path / name)
    index = {"weight_map": {tensor: name for name, half in halves.items() for tensor in half}}
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    assert difference(checkpoint.read_model(tmp_path), reference) < 1e-5


def test_safetensors_win_over_a_pickle_beside_them(folder: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(b"never looked at")
    assert same(checkpoint.read_model(folder), ours())


def test_the_masks_old_versions_saved_are_ignored(folder: Path) -> None:
    mask = torch.ones(1, 1, 20, 20, dtype=torch.uint8).tril()
    change(folder, transformer__h__0__attn__bias=mask, transformer__h__2__attn__masked_bias=torch.tensor(-1e4))
    assert same(checkpoint.read_model(folder), ours())


def test_an_output_matrix_stored_twice_is_accepted_when_tied(folder: Path) -> None:
    change(folder, lm_head__weight=ours().token_embedding.weight.detach().clone())
    assert same(checkpoint.read_model(folder), ours())


def test_a_config_without_model_type_or_with_only_n_ctx_is_read(folder: Path) -> None:
    given = json.loads((folder / "config.json").read_text())
    for field in ("model_type", "n_positions"):
        del given[field]
    (folder / "config.json").write_text(json.dumps(given))
    assert checkpoint.read_config(folder) == TINY


@pytest.mark.parametrize(("given", "end"), [(3, 3), ([4, 5], 4), (None, 98), (50256, 98)])
def test_the_end_token_is_the_configs_or_the_last(folder: Path, given: object, end: int) -> None:
    configure(folder, eos_token_id=given)
    assert checkpoint.read_config(folder).end == end


def test_the_model_can_be_read_onto_a_device_in_a_type(folder: Path) -> None:
    model = checkpoint.read_model(folder, device=torch.device("cpu"), dtype=torch.float64)
    assert model(IDS).dtype == torch.float64


# Folders that are refused


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere", "There is no folder", "nowhere")


def test_a_file_in_place_of_a_folder_is_refused(folder: Path) -> None:
    refused(folder / "model.safetensors", "is a file")


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, "config.json", "empty")


def test_a_folder_without_a_config_is_refused(folder: Path) -> None:
    (folder / "config.json").unlink()
    refused(folder, "config.json", "model.safetensors")


def test_a_folder_without_weights_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    refused(folder, "no weights", "model.safetensors", "pytorch_model.bin")


@pytest.mark.parametrize(
    "text", ["{", "", "[1]", "\xff\xfe", "[" * 100_000], ids=["cut", "empty", "list", "bytes", "deep"]
)
def test_a_config_that_is_not_a_json_object_is_refused(folder: Path, text: str) -> None:
    (folder / "config.json").write_bytes(text.encode("latin-1"))
    refused(folder, "config.json", "JSON")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model_type": "t5"}, ["'t5'", "gpt2"]),
        ({"model_type": "llama"}, ["'llama'"]),
        ({"model_type": None}, ["None"]),
        ({"scale_attn_weights": False}, ["scale_attn_weights"]),
        ({"add_cross_attention": True}, ["add_cross_attention"]),
        ({"activation_function": "gelu_neu"}, ["gelu_neu", "Did you mean 'gelu_new'?"]),
        ({"activation_function": ["gelu"]}, ["activation"]),
        ({"layer_norm_epsilon": "small"}, ["layer_norm_epsilon"]),
        ({"layer_norm_epsilon": float("nan")}, ["layer_norm_epsilon"]),
        ({"n_embd": "24"}, ["n_embd", "'24'"]),
        ({"n_embd": 24.0}, ["n_embd"]),
        ({"n_layer": 0}, ["n_layer"]),
        ({"n_layer": True}, ["n_layer"]),
        ({"n_head": 5}, ["24", "5 heads"]),
        ({"resid_pdrop": "much"}, ["resid_pdrop"]),
        ({"resid_pdrop": 1}, ["Dropout"]),
    ],
    ids=str,
)
def test_a_config_of_another_model_is_refused(folder: Path, changes: dict[str, object], words: list[str]) -> None:
    configure(folder, **changes)
    refused(folder, "config.json", *words)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_embd": 28}, ["transformer.wte.weight", "[99, 24]", "[99, 28]"]),
        ({"vocab_size": 100}, ["transformer.wte.weight", "[99, 24]", "[100, 24]"]),
        ({"n_positions": 21}, ["transformer.wpe.weight", "[20, 24]", "[21, 24]"]),
        ({"n_inner": 10**12}, ["transformer.h.0.mlp.c_fc.weight", "[24, 96]", "[24, 1000000000000]"]),
        ({"n_layer": 4}, ["lacks h.3.ln_1.weight [24]"]),
        ({"n_layer": 10**15}, ["lacks h.3.ln_1.weight [24]"]),
        ({"n_layer": 2}, ["transformer.h.2.attn.c_attn.bias", "and 9 more"]),
        ({"tie_word_embeddings": False}, ["lacks lm_head.weight [99, 24]", "tie_word_embeddings"]),
    ],
    ids=str,
)
def test_a_config_that_lies_about_the_shapes_is_refused(
    folder: Path, changes: dict[str, object], words: list[str]
) -> None:
    configure(folder, **changes)
    refused(folder, "model.safetensors", *words)


def test_weights_that_are_not_numbers_are_refused_by_name(folder: Path) -> None:
    change(folder, transformer__ln_f__bias=torch.full((24,), float("nan")))
    refused(folder, "model.safetensors", "transformer.ln_f.bias", "NaN")


def test_truncated_safetensors_are_refused_at_every_length(folder: Path) -> None:
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    for length in (0, 1, 7, 8, 9, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        refused(folder, "model.safetensors", "truncated")


@pytest.mark.parametrize("length", [2**63, 2**40, 99_999_999])
def test_a_header_that_claims_to_be_huge_is_refused(folder: Path, length: int) -> None:
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", length) + b"{}")
    refused(folder, "model.safetensors")


def test_a_tensor_that_reaches_outside_the_file_is_refused(folder: Path) -> None:
    header = {"wte.weight": {"dtype": "F32", "shape": [99, 24], "data_offsets": [0, 9504]}}
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(100))
    refused(folder, "model.safetensors")


def test_text_in_place_of_weights_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").write_text("<html><body>404: this model does not exist</body></html>\n" * 3)
    refused(folder, "model.safetensors", "not a safetensors file")


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin", "config.json"])
def test_a_git_lfs_pointer_in_place_of_a_file_says_what_to_do(folder: Path, name: str) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 548105171\n"
    if name.endswith(".bin"):
        (folder / "model.safetensors").unlink()
    (folder / name).write_text(pointer)
    refused(folder, name, "git lfs pull")


def test_a_folder_in_place_of_the_weights_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").mkdir()
    refused(folder, "model.safetensors", "directory")


def shard(folder: Path) -> dict[str, object]:
    checkpoint.write_model(ours(), None, folder, shard_bytes=20_000)
    return json.loads((folder / "model.safetensors.index.json").read_text())


def test_an_index_that_names_a_missing_file_is_refused(folder: Path) -> None:
    index = shard(folder)
    name = index["weight_map"]["transformer.ln_f.bias"]
    (folder / name).unlink()
    refused(folder, "There is no file", name)


@pytest.mark.parametrize(
    "name", ["../x.safetensors", "/etc/passwd", "a/b.safetensors", "..", "", "c:\\x", 3, None, ["x"]]
)
def test_an_index_that_points_outside_the_folder_is_refused(folder: Path, name: object) -> None:
    save_file(load_file(folder / "model.safetensors"), folder.parent / "x.safetensors")
    index = shard(folder)
    index["weight_map"]["transformer.ln_f.bias"] = name
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(folder, "model.safetensors.index.json", "not the name of a file beside it")


def test_an_index_that_names_itself_is_refused(folder: Path) -> None:
    index = shard(folder)
    index["weight_map"]["transformer.ln_f.bias"] = "model.safetensors.index.json"
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(folder, "model.safetensors.index.json")


def test_an_index_that_names_the_wrong_shard_is_refused(folder: Path) -> None:
    index = shard(folder)
    index["weight_map"]["transformer.ln_f.bias"] = index["weight_map"]["transformer.wte.weight"]
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(folder, "transformer.ln_f.bias", "it is not")


@pytest.mark.parametrize("index", [{}, {"weight_map": {}}, {"weight_map": ["x"]}], ids=str)
def test_an_index_without_a_map_is_refused(folder: Path, index: object) -> None:
    shard(folder)
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(folder, "weight_map")
