"""A Transformer in Hugging Face's folders: `config.json` as Marian's models have it, in both directions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from cutaway.errors import CutawayError
from cutaway.models.transformer.shape import Shape

MARIAN = "marian"
OURS = "transformer"
"""The `model_type` of what is no Marian: pre-norm, interleaved positions, a final norm."""
PREFIX = "model."
EMBEDDINGS = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")
COPIES = dict.fromkeys(EMBEDDINGS, "shared.weight")
"""One matrix, which files may hold under all of these names."""
COMPUTED = ("encoder.embed_positions.weight", "decoder.embed_positions.weight")
"""Sinusoids, which old files hold as well."""
ACTIVATIONS = {"swish": "silu", "silu": "silu", "relu": "relu", "gelu": "gelu", "gelu_new": "gelu_tanh"}
FIELDS = {
    "vocab_size": "vocabulary", "max_position_embeddings": "context", "d_model": "width", "encoder_layers": "layers",
    "decoder_layers": "decoder_layers", "encoder_attention_heads": "heads", "encoder_ffn_dim": "mlp_width",
    "eos_token_id": "end_token", "decoder_start_token_id": "start_token",
}  # fmt: skip
USUAL = {
    "vocab_size": 58_101, "max_position_embeddings": 1_024, "d_model": 1_024, "encoder_layers": 12,
    "decoder_layers": 12, "encoder_attention_heads": 16, "encoder_ffn_dim": 4_096, "eos_token_id": 0,
    "decoder_start_token_id": 58_100,
}  # fmt: skip
"""What `transformers` takes for what a file leaves out."""
SAME = {"decoder_attention_heads": "encoder_attention_heads", "decoder_ffn_dim": "encoder_ffn_dim"}


def read_shape(given: Mapping[str, Any]) -> Shape:
    """The shape that a `config.json` states."""
    if given.get("model_type") != MARIAN:
        return Shape(**{name: given[name] for name in asdict(Shape()) if name in given})
    for decoder, encoder in SAME.items():
        here = given.get(encoder, USUAL[encoder])
        if given.get(decoder, USUAL[encoder]) != here:
            raise CutawayError(f"{decoder} is {given.get(decoder)} and {encoder} {here}: both sides must be alike.")
    if not given.get("share_encoder_decoder_embeddings", True) or not given.get("tie_word_embeddings", True):
        raise CutawayError("source and target have vocabularies of their own, and only one for both is supported.")
    activation = given.get("activation_function", "gelu")
    if activation not in ACTIVATIONS:
        raise CutawayError(f"activation_function is {activation!r}, and known are {', '.join(ACTIVATIONS)}.")
    said = {ours: given.get(field, USUAL[field]) for field, ours in FIELDS.items()}
    if not isinstance(said["end_token"], int):
        raise CutawayError(f"eos_token_id must be one whole number, not {said['end_token']!r}.")
    return Shape(
        **said, activation=ACTIVATIONS[activation], positions="halves", scaled=bool(given.get("scale_embedding")),
        output_bias=True, dropout=float(given.get("dropout", 0.1)), source_end=True,
    )  # fmt: skip


def is_marian(shape: Shape) -> bool:
    """Whether others can read this shape as Marian's."""
    return (
        shape.norm == "post" and not shape.final_norm and shape.positions == "halves" and shape.output_bias
        and shape.source_end and shape.norm_epsilon == 1e-5
    )  # fmt: skip


def write_shape(shape: Shape) -> dict[str, Any]:
    """`config.json` for such a model."""
    if not is_marian(shape):
        return {"model_type": OURS, **asdict(shape)}
    activation = {"silu": "swish", "gelu_tanh": "gelu_new"}.get(shape.activation, shape.activation)
    return {
        "model_type": MARIAN, "architectures": ["MarianMTModel"], "is_encoder_decoder": True,
        **{field: getattr(shape, ours) for field, ours in FIELDS.items()},
        "decoder_attention_heads": shape.heads, "decoder_ffn_dim": shape.mlp_width,
        "decoder_vocab_size": shape.vocabulary, "activation_function": activation, "scale_embedding": shape.scaled,
        "dropout": shape.dropout, "pad_token_id": shape.start, "forced_eos_token_id": shape.end,
        "share_encoder_decoder_embeddings": True, "tie_word_embeddings": True,
        "static_position_embeddings": True, "normalize_before": False, "normalize_embedding": False,
    }  # fmt: skip


def generation(shape: Shape) -> dict[str, Any]:
    """What `generation_config.json` says for others: where to begin, and that the start is never written."""
    return {
        "decoder_start_token_id": shape.start, "pad_token_id": shape.start, "forced_eos_token_id": shape.end,
        "bad_words_ids": [[shape.start]],
    }  # fmt: skip
