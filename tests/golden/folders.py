"""Folders of small models with fixed random weights, for record.py to ask."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from questions import LONG, OTHER
from safetensors.numpy import save_file

import cutaway
from cutaway.models.architecture import architecture, tensors


def random_model(
    name: str, size: cutaway.Config, tokenizer: cutaway.Tokenizer | None = None, embedding: float = 2.0
) -> str:
    """A folder as on the hub, with random weights that make predictions differ from token to token."""
    folder, dice, width = Path(name), np.random.RandomState(0), size.width
    shape = {"n_embd": width, "n_layer": size.layers, "n_head": size.heads, "n_positions": size.context}
    config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": size.vocabulary, **shape}
    config |= {"activation_function": "gelu_new", "layer_norm_epsilon": 1e-5}
    config |= dict.fromkeys(("bos_token_id", "eos_token_id"), size.vocabulary - 1)
    weights: dict[str, np.ndarray] = {}

    def add(name: str, *shape: int, spread: float = 0.1, mean: float = 0.0) -> None:
        weights[f"transformer.{name}"] = (mean + spread * dice.standard_normal(shape)).astype(np.float32)

    def add_linear(name: str, inputs: int, outputs: int) -> None:
        add(f"{name}.weight", inputs, outputs, spread=inputs**-0.5)
        add(f"{name}.bias", outputs)

    def add_norm(name: str) -> None:
        add(f"{name}.weight", width, mean=1.0)
        add(f"{name}.bias", width)

    add("wte.weight", size.vocabulary, width, spread=embedding * width**-0.5)
    add("wpe.weight", size.context, width, spread=width**-0.5)
    for layer in range(size.layers):
        add_norm(f"h.{layer}.ln_1")
        add_linear(f"h.{layer}.attn.c_attn", width, 3 * width)
        add_linear(f"h.{layer}.attn.c_proj", width, width)
        add_norm(f"h.{layer}.ln_2")
        add_linear(f"h.{layer}.mlp.c_fc", width, 4 * width)
        add_linear(f"h.{layer}.mlp.c_proj", 4 * width, width)
    add_norm("ln_f")
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    if tokenizer is not None:
        tokenizer.save(folder)
    return name


def tiny_model() -> str:
    """Three blocks of four heads, with the questions' tokenizer."""
    tokenizer = own_tokenizer()
    config = cutaway.Config(vocabulary=len(tokenizer), context=64, width=32, layers=3, heads=4)
    return random_model("tiny", config, tokenizer, embedding=0.5)


def own_tokenizer() -> cutaway.Tokenizer:
    """One that knows the words of the questions."""
    return cutaway.Tokenizer.train([LONG, OTHER] * 3, size=384)


def encoder_folder() -> str:
    """A BERT that guesses words, whose vocabulary has the words of the questions and some of their pieces."""
    words = sorted({*re.findall(r"\w+|[.,]", f"{LONG} {OTHER}".lower()), *"abcdefghijklmnopqrstuvwxyz"})
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, "##s", "##ed"]
    described = {
        "model_type": "bert", "architectures": ["BertForPreTraining"], "vocab_size": len(vocabulary), "hidden_size": 24,
        "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 96, "max_position_embeddings": 64,
        "sep_token_id": vocabulary.index("[SEP]"),
    }  # fmt: skip
    folder = random_folder("encoder", described)
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    return str(folder)


def transformer_folder() -> str:
    """A Transformer of encoder and decoder, with the questions' tokenizer and a token to begin a target with."""
    start = "<|translate|>"
    tokenizer = own_tokenizer().with_specials([start])
    described = {
        "model_type": "transformer", "vocabulary": len(tokenizer), "width": 32, "context": 40, "layers": 2, "heads": 4,
        "norm": "pre", "start_token": tokenizer.specials[start], "end_token": tokenizer.end,
    }  # fmt: skip
    folder = random_folder("transformer", described)
    tokenizer.save(folder)
    return str(folder)


def random_folder(name: str, described: dict[str, Any]) -> Path:
    """A folder of any architecture, with random weights for every tensor that it says such a model has."""
    folder, dice = Path(name), np.random.RandomState(0)
    shape = architecture(described["model_type"]).read_shape(described)
    weights = {one.stored: 0.3 * dice.standard_normal(one.shape) for one in tensors(shape)}
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(described))
    save_file({stored: one.astype(np.float32) for stored, one in weights.items()}, folder / "model.safetensors")
    return folder
