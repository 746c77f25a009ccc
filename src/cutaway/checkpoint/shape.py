"""The shape of a model from the file that states it: config.json of Hugging Face, hparams.json of OpenAI. No torch."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from cutaway.checkpoint.files import read_json
from cutaway.config import Config
from cutaway.errors import CutawayError, nearest

CONFIG = "config.json"
HPARAMS = "hparams.json"
ACTIVATIONS = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu": "gelu",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
FIELDS = {"vocab_size": "vocabulary", "n_embd": "width", "n_layer": "layers", "n_head": "heads"}
OPENAI_FIELDS = {"n_vocab": "vocabulary", "n_ctx": "context", "n_embd": "width", "n_head": "heads", "n_layer": "layers"}


def read_huggingface(folder: Path) -> Config:
    """The shape in `config.json`; what is not said there is as in GPT-2 small, as `transformers` has it."""
    path = folder / CONFIG
    given = read_json(path)
    try:
        return _config(given)
    except CutawayError as error:
        raise CutawayError(f"{path}: {error}") from None


def _config(given: dict[str, Any]) -> Config:
    kind = given.get("model_type", "gpt2" if "n_embd" in given else None)
    if kind != "gpt2":
        raise CutawayError(f"the model's type is {kind!r}, and only 'gpt2' is supported.")
    if not given.get("scale_attn_weights", True):
        raise CutawayError("scale_attn_weights is false: GPT-2 divides attention scores by the root of a head's width.")
    if given.get("add_cross_attention"):
        raise CutawayError("add_cross_attention is true: a decoder that attends to an encoder is not a GPT-2.")
    given = {field: value for field, value in given.items() if value is not None}
    for field in (*FIELDS, "n_positions", "n_ctx", "n_inner"):
        if field in given and (type(given[field]) is not int or given[field] < 1):
            raise CutawayError(f"{field} must be a whole number of 1 or more, not {given[field]!r}.")
    activation = str(given.get("activation_function", "gelu_new"))
    if activation not in ACTIVATIONS:
        raise CutawayError(f"the activation {activation!r} is not known.{nearest(activation, ACTIVATIONS)}")
    epsilon = given.get("layer_norm_epsilon", 1e-5)
    if isinstance(epsilon, bool) or not isinstance(epsilon, float | int) or not 0 < epsilon < math.inf:
        raise CutawayError(f"layer_norm_epsilon must be a number above 0, not {epsilon!r}.")
    dropout = given.get("resid_pdrop", 0.1)
    if isinstance(dropout, bool) or not isinstance(dropout, float | int):
        raise CutawayError(f"resid_pdrop must be a number, not {dropout!r}.")
    shape = {ours: given[theirs] for theirs, ours in FIELDS.items() if theirs in given}
    config = Config(
        context=given.get("n_positions", given.get("n_ctx", 1_024)),
        mlp_width=given.get("n_inner", 0),
        activation=ACTIVATIONS[activation],
        norm_epsilon=float(epsilon),
        tied=given.get("tie_word_embeddings", True) is not False,
        scale_by_layer=given.get("scale_attn_by_inverse_layer_idx", False) is True,
        dropout=float(dropout),
        **shape,
    )
    end = given.get("eos_token_id")
    end = end[0] if isinstance(end, list) and end else end
    # Small models often keep the 50256 of the big ones, which they cannot mean: theirs is the last, as it was there.
    known = type(end) is int and 0 <= end < config.vocabulary
    return config.but(end_token=end) if known else config


def read_openai(folder: Path) -> Config:
    """The shape in `hparams.json`."""
    path = folder / HPARAMS
    given = read_json(path)
    for field in OPENAI_FIELDS:
        if type(given.get(field)) is not int:
            raise CutawayError(f"{path} should give {field} as a whole number, and gives {given.get(field)!r}.")
    try:
        return Config(**{ours: given[field] for field, ours in OPENAI_FIELDS.items()})
    except CutawayError as error:
        raise CutawayError(f"{path}: {error}") from None
