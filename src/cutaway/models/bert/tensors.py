"""Every tensor of a BERT or a DistilBERT: one table for checkpoints and the parameter page.

The stored names are those of Hugging Face's files, without the prefix that the stack has there under a head.
"""

from __future__ import annotations

from collections.abc import Iterator

from cutaway.models.architecture import TensorSpec
from cutaway.models.bert.shape import Config

STACK = {"bert": "encoder.layer", "distilbert": "transformer.layer"}
BLOCK = {
    "bert": {
        "attention.query": "attention.self.query", "attention.key": "attention.self.key",
        "attention.value": "attention.self.value", "attention.projection": "attention.output.dense",
        "attention_norm": "attention.output.LayerNorm", "mlp.widen": "intermediate.dense",
        "mlp.projection": "output.dense", "mlp_norm": "output.LayerNorm",
    },
    "distilbert": {
        "attention.query": "attention.q_lin", "attention.key": "attention.k_lin", "attention.value": "attention.v_lin",
        "attention.projection": "attention.out_lin", "attention_norm": "sa_layer_norm", "mlp.widen": "ffn.lin1",
        "mlp.projection": "ffn.lin2", "mlp_norm": "output_layer_norm",
    },
}  # fmt: skip
HEAD = {
    "bert": {
        "pooler": "pooler.dense", "transform": "cls.predictions.transform.dense",
        "transform_norm": "cls.predictions.transform.LayerNorm", "output": "cls.predictions",
        "output.weight": "cls.predictions.decoder.weight", "next_sentence": "cls.seq_relationship",
    },
    "distilbert": {
        "pooler": "pre_classifier", "transform": "vocab_transform", "transform_norm": "vocab_layer_norm",
        "output": "vocab_projector", "output.weight": "vocab_projector.weight", "next_sentence": "next_sentence",
    },
}  # fmt: skip
WORDS = {
    "attention.query": "query", "attention.key": "key", "attention.value": "value",
    "attention.projection": "projection of the merged heads", "attention_norm": "norm after attention",
    "mlp.widen": "MLP, first layer", "mlp.projection": "MLP, second layer", "mlp_norm": "norm after the MLP",
}  # fmt: skip


def tensors(shape: Config) -> Iterator[TensorSpec]:
    """In the order in which a token meets them."""
    width, theirs = shape.width, "embeddings"
    for name, stored, rows, what in (
        ("token_embedding", "word_embeddings", shape.vocabulary, "a row for each token"),
        ("position_embedding", "position_embeddings", shape.context, "a row for each position"),
        ("segment_embedding", "token_type_embeddings", shape.segments, "a row for each segment"),
    ):
        if rows:
            part = name.replace("_", " ")
            yield TensorSpec(f"{name}.weight", f"{theirs}.{stored}.weight", (rows, width), what, part)
    yield from norm("embedding_norm", f"{theirs}.LayerNorm", "norm of the sum", width)
    for block in range(shape.layers):
        yield from block_tensors(shape, block)
    yield from head_tensors(shape)


def block_tensors(shape: Config, block: int) -> Iterator[TensorSpec]:
    width, inner = shape.width, shape.mlp_width
    sizes = {"mlp.widen": (inner, width), "mlp.projection": (width, inner)}
    for name, stored in BLOCK[shape.dialect].items():
        ours, theirs = f"blocks.{block}.{name}", f"{STACK[shape.dialect]}.{block}.{stored}"
        if name.endswith("norm"):
            yield from norm(ours, theirs, WORDS[name], width)
        else:
            part = "attention" if name.startswith("attention") else "MLP"
            yield from linear(ours, theirs, WORDS[name], part, sizes.get(name, (width, width)))


def head_tensors(shape: Config) -> Iterator[TensorSpec]:
    """What stands on top of the stack."""
    width, stored = shape.width, HEAD[shape.dialect]
    if shape.pooler:
        yield from linear(
            "pooler", stored["pooler"], "the text's vector, from its first token's", "head", (width, width)
        )
    if shape.scores_words:
        yield from linear("transform", stored["transform"], "masked words, first layer", "head", (width, width))
        yield from norm("transform_norm", stored["transform_norm"], "norm before the scores", width)
        if not shape.tied:
            rows = (shape.vocabulary, width)
            yield TensorSpec("output.weight", stored["output.weight"], rows, "a score for each token", "head")
        bias = f"{stored['output']}.bias"
        yield TensorSpec("output.bias", bias, (shape.vocabulary,), "a score for each token, bias", "head")
    if shape.head in ("pretraining", "next"):
        yield from linear("next_sentence", stored["next_sentence"], "does the second follow?", "head", (2, width))
    if shape.head in ("classes", "tags"):
        yield from linear("classifier", "classifier", "a score for each class", "head", (shape.labels, width))
    if shape.head == "span":
        yield from linear("span", "qa_outputs", "where the answer begins and ends", "head", (2, width))


def linear(name: str, stored: str, what: str, part: str, shape: tuple[int, int]) -> Iterator[TensorSpec]:
    yield TensorSpec(f"{name}.weight", f"{stored}.weight", shape, what, part)
    yield TensorSpec(f"{name}.bias", f"{stored}.bias", shape[:1], f"{what}, bias", part)


def norm(name: str, stored: str, what: str, width: int) -> Iterator[TensorSpec]:
    for leaf, does in (("weight", "scale"), ("bias", "shift")):
        yield TensorSpec(f"{name}.{leaf}", f"{stored}.{leaf}", (width,), f"{what}, {does}", "layer norms")
