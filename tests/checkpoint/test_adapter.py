"""LoRA adapters in PEFT's form: PEFT reads ours, we read PEFT's, and both give the same logits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import cutaway
from cutaway.checkpoint import adapter
from cutaway.checkpoint.locate import is_adapter
from cutaway.errors import CutawayError
from cutaway.language_model import LanguageModel
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.tasks import Translation, load_task
from cutaway.text.tokenizer import Tokenizer
from cutaway.train import run

IDS = torch.tensor([[5, 7, 9, 11, 250, 3, 2, 1]])


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    """A small model with a tokenizer of its own."""
    torch.manual_seed(0)
    tokenizer = Tokenizer.train(["the fox runs over the hill and the little dog sleeps in the sun"] * 3, size=290)
    shape = Config(vocabulary=len(tokenizer), context=32, width=16, layers=2, heads=2, end_token=tokenizer.end)
    folder = tmp_path_factory.mktemp("base") / "model"
    LanguageModel(GPT(shape), tokenizer).save(folder)
    return folder


@pytest.fixture(scope="module")
def tuned(base, tmp_path_factory) -> Path:
    """The same model trained with LoRA on a task with a separator, so that its vocabulary grew."""
    folder = tmp_path_factory.mktemp("tuned")
    pairs = [{"source": f"the fox {n}", "target": f"the dog {n}"} for n in range(30)]
    run(
        folder / "model", records=pairs, task="translation", from_=base, lora={"rank": 4, "alpha": 6.0}, steps=6,
        batch=4, learning_rate=0.05, sample_every=0, held_out=2, cache=folder / "cache", precision="float32",
    )  # fmt: skip
    return folder / "model"


@torch.no_grad()
def logits(folder: Path) -> torch.Tensor:
    return cutaway.load(folder, engine="torch").model(IDS)


def test_an_adapter_stands_for_its_base_with_what_was_learned(tuned, base):
    torch.testing.assert_close(logits(tuned / "adapter"), logits(tuned), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(logits(tuned)[..., :290], logits(base)[..., :290], atol=1e-2)
    assert isinstance(load_task(tuned / "adapter"), Translation)
    assert cutaway.load(tuned / "adapter").tokenizer.specials == cutaway.load(tuned).tokenizer.specials
    size = sum(path.stat().st_size for path in (tuned / "adapter").iterdir() if path.name.startswith("adapter_model"))
    assert size < (tuned / "model.safetensors").stat().st_size


def test_merged_and_saved_it_is_a_plain_folder(tuned, tmp_path):
    cutaway.load(tuned / "adapter").save(tmp_path / "merged")
    assert torch.equal(logits(tmp_path / "merged"), logits(tuned / "adapter"))
    assert not is_adapter(tmp_path / "merged")


def test_its_base_may_stand_beside_it_and_its_tokenizer_may_be_its_bases(base, tmp_path, monkeypatch):
    from shutil import copytree

    monkeypatch.chdir(tmp_path)  # where no folder "../base" is
    copytree(base, tmp_path / "folder" / "base")
    mine = tmp_path / "folder" / "adapter"
    gpt = cutaway.load(base).model
    torch.manual_seed(1)
    pair = torch.randn(2, 16), torch.randn(48, 2)
    made = adapter.Adapter({"blocks.0.attention.queries_keys_values": pair}, 2, 4.0, "../base")
    adapter.write_adapter(made, gpt.config, cutaway.load(base).tokenizer, mine)
    for name in ("tokenizer.json", "vocab.json", "merges.txt", "tokenizer_config.json"):
        (mine / name).unlink()
    lm = cutaway.load(mine)
    layer = "blocks.0.attention.queries_keys_values.weight"
    torch.testing.assert_close(lm.model.get_parameter(layer), gpt.get_parameter(layer) + 2 * pair[1] @ pair[0])
    assert lm.tokenizer.encode("the fox") == cutaway.load(base).tokenizer.encode("the fox")


def test_peft_reads_ours_and_gives_the_same_logits(tuned):
    peft = pytest.importorskip("peft", reason="peft is not installed (pip install peft)")
    from transformers import GPT2LMHeadModel

    config = json.loads((tuned / "adapter" / adapter.ADAPTER).read_text())
    there = GPT2LMHeadModel.from_pretrained(config["base_model_name_or_path"])
    there.resize_token_embeddings(cutaway.load(tuned).config.vocabulary, mean_resizing=False)
    there = peft.PeftModel.from_pretrained(there, tuned / "adapter").eval()
    with torch.no_grad():
        torch.testing.assert_close(there(IDS).logits, logits(tuned), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "how",
    [
        {"target_modules": ["c_attn"]},
        {"target_modules": ["c_attn", "c_fc", "c_proj"], "use_rslora": True},
        {"target_modules": ["c_fc", "c_proj"], "rank_pattern": {"c_fc": 2}, "alpha_pattern": {"h.1.mlp.c_proj": 3}},
        {"target_modules": ["c_attn"], "bias": "all"},
        {"target_modules": ["c_attn"], "modules_to_save": ["ln_f"]},
    ],
    ids=["attention only", "rank-stabilised", "patterns", "biases", "a layer saved whole"],
)
def test_we_read_pefts_and_give_the_same_logits(base, tmp_path, how):
    peft = pytest.importorskip("peft", reason="peft is not installed (pip install peft)")
    from transformers import GPT2LMHeadModel

    torch.manual_seed(2)
    settings = peft.LoraConfig(r=4, lora_alpha=6, fan_in_fan_out=True, task_type="CAUSAL_LM", **how)
    there = peft.get_peft_model(GPT2LMHeadModel.from_pretrained(base), settings).eval()
    with torch.no_grad():
        for parameter in there.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * 0.2)
        there.save_pretrained(tmp_path / "theirs")
        expected = there(IDS).logits
    torch.testing.assert_close(logits(tmp_path / "theirs"), expected, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(expected, logits(base), atol=1e-2)


def change(folder: Path, tmp_path: Path, **values: object) -> Path:
    from shutil import copytree

    copytree(folder, tmp_path / "changed")
    path = tmp_path / "changed" / adapter.ADAPTER
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    return tmp_path / "changed"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"peft_type": "IA3"}, "only 'LORA' is supported"),
        ({"use_dora": True}, "use_dora is set"),
        ({"base_model_name_or_path": None}, "does not say whose adapter it is"),
        ({"base_model_name_or_path": "/nowhere"}, "an adapter for /nowhere, which is not on this machine"),
        ({"lora_alpha": "much"}, "lora_alpha must be a number"),
    ],
)
def test_an_adapter_that_cannot_be_merged_is_refused_in_a_sentence(tuned, tmp_path, values, said):
    with pytest.raises(CutawayError, match=said):
        cutaway.load(change(tuned / "adapter", tmp_path, **values))


@pytest.mark.parametrize(
    ("name", "tensor", "said"),
    [
        ("transformer.h.0.attn.c_attn.lora_A.weight", torch.zeros(4, 17), "does not fit"),
        ("transformer.h.9.attn.c_attn.lora_A.weight", torch.zeros(4, 16), "does not fit"),
        ("transformer.wpe.weight", torch.zeros(3, 3), "does not fit the base model"),
        ("transformer.h.0.attn.c_attn.lora_B.weight", torch.full((48, 4), torch.nan), "NaN"),
        ("score.weight", torch.zeros(2, 16), "an adapter for a classifier"),
    ],
)
def test_tensors_that_do_not_fit_are_refused_by_name(tuned, tmp_path, name, tensor, said):
    folder = change(tuned / "adapter", tmp_path)
    tensors = load_file(folder / "adapter_model.safetensors")
    save_file(tensors | {adapter.PREFIX + name: tensor}, folder / "adapter_model.safetensors")
    with pytest.raises(CutawayError, match=said):
        cutaway.load(folder)


def test_every_verb_takes_an_adapters_folder(tuned, capsys):
    from cutaway.cli import run as command

    assert command(["translate", "the fox 3", "--model", str(tuned / "adapter"), "--beams", "1"]) == 0
    assert command(["parameters", "--model", str(tuned / "adapter")]) == 0
