"""GPT-2 in Hugging Face's folders: its shape in `config.json`, in both directions, and what is odd about its files."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from cutaway.errors import CutawayError, nearest
from cutaway.models.gpt2.shape import Config

PREFIX = "transformer."
OURS = "cutaway-gpt2"
"""The `model_type` of what is no GPT-2 to others: one with relative attention would be read there without it."""
BUFFER = re.compile(r"h\.\d+\.attn\.(bias|masked_bias)")  # the causal mask, which some versions saved with the weights
COPIES = {"lm_head.weight": "wte.weight"}
"""The output matrix may be stored once more under a name of its own, though it is the token embedding."""
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


def read_shape(given: Mapping[str, Any]) -> Config:
    """The shape that a `config.json` states; what it leaves out is as in GPT-2 small, as `transformers` has it."""
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
    positions = given.get("positions", "absolute")
    if positions != "absolute" and given.get("model_type") != OURS:
        raise CutawayError(f"positions is {positions!r}, and the model_type is not {OURS!r}: the file is damaged.")
    shape = {ours: given[theirs] for theirs, ours in FIELDS.items() if theirs in given}
    config = Config(
        context=given.get("n_positions", given.get("n_ctx", 1_024)),
        mlp_width=given.get("n_inner", 0),
        activation=ACTIVATIONS[activation],
        norm_epsilon=float(epsilon),
        tied=given.get("tie_word_embeddings", True) is not False,
        scale_by_layer=given.get("scale_attn_by_inverse_layer_idx", False) is True,
        dropout=float(dropout),
        positions=positions,
        **shape,
    )
    end = given.get("eos_token_id")
    end = end[0] if isinstance(end, list) and end else end
    # Small models often keep the 50256 of the big ones, which they cannot mean: theirs is the last, as it was there.
    known = type(end) is int and 0 <= end < config.vocabulary
    return config.but(end_token=end) if known else config


def write_shape(config: Config) -> dict[str, Any]:
    """`config.json` for such a model."""
    activation = next(theirs for theirs, ours in ACTIVATIONS.items() if ours == config.activation)
    named = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2"}
    if config.relative:
        named = {"model_type": OURS, "positions": config.positions}
    return {
        **named,
        **{theirs: getattr(config, ours) for theirs, ours in FIELDS.items()},
        "n_positions": config.context,
        "n_ctx": config.context,
        "n_inner": None if config.mlp_width == 4 * config.width else config.mlp_width,
        "activation_function": activation,
        "layer_norm_epsilon": config.norm_epsilon,
        "tie_word_embeddings": config.tied,
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": config.scale_by_layer,
        **dict.fromkeys(("attn_pdrop", "embd_pdrop", "resid_pdrop"), config.dropout),
        "bos_token_id": config.end,
        "eos_token_id": config.end,
    }
