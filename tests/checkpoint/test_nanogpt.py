"""nanoGPT's ckpt.pt is read without running it, and gives nanoGPT's numbers."""

from __future__ import annotations

import math
import pickle
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import cutaway
from cutaway import checkpoint
from cutaway.errors import CutawayError

ARGS = {"n_layer": 2, "n_head": 2, "n_embd": 32, "block_size": 24, "bias": True, "vocab_size": 11, "dropout": 0.0}
CHARACTERS = "\n !abcdé世x"


class Norm(nn.Module):
    def __init__(self, width: int, bias: bool):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class Attention(nn.Module):
    def __init__(self, args):
        super().__init__()
        width, bias = args["n_embd"], args["bias"]
        self.heads = args["n_head"]
        self.c_attn = nn.Linear(width, 3 * width, bias=bias)
        self.c_proj = nn.Linear(width, width, bias=bias)

    def forward(self, x):
        rows, length, width = x.shape
        q, k, v = (
            part.view(rows, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.c_attn(x).split(width, dim=2)
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)
        scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), float("-inf"))
        return self.c_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(rows, length, width))


class Block(nn.Module):
    def __init__(self, args):
        super().__init__()
        width, bias = args["n_embd"], args["bias"]
        self.ln_1, self.attn, self.ln_2 = Norm(width, bias), Attention(args), Norm(width, bias)
        self.mlp = nn.ModuleDict(
            {"c_fc": nn.Linear(width, 4 * width, bias=bias), "c_proj": nn.Linear(4 * width, width, bias=bias)}
        )

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x))))


class NanoGPT(nn.Module):
    """nanoGPT's model, as its file has it."""

    def __init__(self, args):
        super().__init__()
        width = args["n_embd"]
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(args["vocab_size"], width),
                "wpe": nn.Embedding(args["block_size"], width),
                "h": nn.ModuleList(Block(args) for _ in range(args["n_layer"])),
                "ln_f": Norm(width, args["bias"]),
            }
        )
        self.lm_head = nn.Linear(width, args["vocab_size"], bias=False)
        self.transformer.wte.weight = self.lm_head.weight

    def forward(self, ids):
        x = self.transformer.wte(ids) + self.transformer.wpe(torch.arange(ids.shape[1]))
        for block in self.transformer.h:
            x = block(x)
        return self.lm_head(self.transformer.ln_f(x))


def saved(folder: Path, prefix: str = "", **changes) -> tuple[NanoGPT, Path]:
    """What nanoGPT's train.py writes: the optimizer's state, numbers and settings stand beside the weights."""
    args = ARGS | changes
    torch.manual_seed(0)
    model = NanoGPT(args)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    model(torch.arange(5)[None]).sum().backward()
    optimizer.step()
    torch.save(
        {
            "model": {prefix + name: value for name, value in model.state_dict().items()},
            "optimizer": optimizer.state_dict(),
            "model_args": args,
            "iter_num": 2000,
            "best_val_loss": torch.tensor(1.25),
            "config": {"out_dir": "out", "learning_rate": 6e-4, "compile": True, "init_from": "scratch"},
        },
        folder / "ckpt.pt",
    )
    return model.eval(), folder / "ckpt.pt"


def with_characters(folder: Path) -> None:
    ids = {character: i for i, character in enumerate(CHARACTERS)}
    meta = {"vocab_size": len(ids), "itos": {i: c for c, i in ids.items()}, "stoi": ids}
    (folder / "meta.pkl").write_bytes(pickle.dumps(meta))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("prefix", ["", "_orig_mod."], ids=["plain", "compiled"])
def test_the_logits_are_nanogpts(bias: bool, prefix: str, tmp_path: Path):
    theirs, path = saved(tmp_path, prefix, bias=bias)
    ids = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])
    with torch.inference_mode():
        ours = checkpoint.read_model(path)(ids)
        assert torch.allclose(ours, theirs(ids), atol=1e-5)
        assert torch.equal(checkpoint.read_model(tmp_path)(ids), ours)  # the folder stands for its file


def test_characters_are_its_tokens_where_meta_says_so(tmp_path: Path):
    saved(tmp_path, vocab_size=len(CHARACTERS))
    with_characters(tmp_path)
    lm = cutaway.load(tmp_path / "ckpt.pt")
    assert lm.tokenizer.encode("abc世é\n") == [CHARACTERS.index(c) for c in "abc世é\n"]
    assert lm.tokenizer.decode(lm.tokenizer.encode("a 世 d!")) == "a 世 d!"
    with pytest.raises(CutawayError, match="0x7a"):
        lm.tokenizer.encode("az")
    assert set(lm.generate("ab", max_tokens=6, seed=1).text) <= set(CHARACTERS)


@pytest.mark.parametrize("rows", [50_257, 50_304])
def test_without_meta_the_tokens_are_gpt2s(rows: int, tmp_path: Path):
    saved(tmp_path, vocab_size=rows)
    lm = cutaway.load(tmp_path)
    assert lm.tokenizer.encode("A robot") == [32, 9379]
    assert lm.config.end == 50_256


def test_unknown_tokens_are_asked_for(tmp_path: Path):
    saved(tmp_path)
    with pytest.raises(CutawayError, match=r"meta\.pkl"):
        cutaway.Tokenizer.load(tmp_path)
    lm = cutaway.load(tmp_path)  # ids in, ids out
    assert len(lm.generate([1, 2], max_tokens=3, temperature=0, logit_bias={lm.config.end: -1e9}).ids) == 3
    with pytest.raises(CutawayError, match="came without a tokenizer"):
        lm.generate("Once")


class Bomb:
    def __reduce__(self):
        return (Path.touch, (Path("pwned"),))


def test_nothing_in_it_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"model": {}, "model_args": ARGS, "extra": Bomb()}, tmp_path / "ckpt.pt")
    with pytest.raises(CutawayError, match="never executed"):
        checkpoint.read_model(tmp_path / "ckpt.pt")
    (tmp_path / "meta.pkl").write_bytes(pickle.dumps({"stoi": Bomb()}))
    saved(tmp_path, vocab_size=len(CHARACTERS))
    with pytest.raises(CutawayError, match="more than plain values"):
        cutaway.Tokenizer.load(tmp_path)
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"weights": torch.ones(2)}, "no model with model_args"),
        ({"model": {}, "model_args": {"n_layer": 1}}, "block_size"),
        ({"model": {"transformer.wte.weight": torch.ones(11, 32)}, "model_args": ARGS}, "lacks wpe.weight"),
    ],
)
def test_another_kind_of_file_is_named(content: dict, says: str, tmp_path: Path):
    torch.save(content, tmp_path / "ckpt.pt")
    with pytest.raises(CutawayError, match=says):
        checkpoint.read_model(tmp_path / "ckpt.pt")
