"""The map of BERT: every named intermediate of a forward pass, its axes, and what made it from what.

Unlike GPT-2's: no mask, a norm after every sum and not before every layer, and one more vector at the entry, that of
the segment. model.py hands its values over under the same names, in the same order, and a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterator

from cutaway.models.architecture import Place
from cutaway.models.bert.shape import Config

VECTOR = ("token", "column")
HEADS = ("head", "token", "column")
TABLE = ("head", "token", "key")


def places(shape: Config) -> Iterator[Place]:
    """In the order of computation."""
    tokens, position, segment = "token_embedding", "position_embedding", "segment_embedding"
    yield Place(tokens, VECTOR, "look up", ("ids",), tokens, steps=("embedding",))
    yield Place(position, VECTOR, "look up", ("positions",), position, steps=("position",))
    yield Place("placed", VECTOR, "add", (tokens, position), steps=("entry_both",))
    entry = "placed"
    if shape.segments:
        yield Place(segment, VECTOR, "look up", ("segments",), segment, steps=("segment",), kind="segment")
        yield Place("entry", VECTOR, "add", ("placed", segment), steps=("entry_segment",))
        entry = "entry"
    yield Place("residual.0", VECTOR, "norm", (entry,), "embedding_norm", steps=("entry_norm",))
    stream = "residual.0"
    for i in range(shape.layers):
        yield from attention(f"blocks.{i}", stream)
        yield from mlp(f"blocks.{i}", f"blocks.{i}.attention.norm")
        stream = f"blocks.{i}.residual"
    if shape.scores_words:
        yield Place("transform.hidden", VECTOR, "linear", (stream,), "transform", steps=("transform",))
        yield Place("transform.activation", VECTOR, "activate", ("transform.hidden",), steps=("transform_activation",))
        yield Place(
            "final_norm", VECTOR, "norm", ("transform.activation",), "transform_norm", steps=("transform_norm",)
        )
        yield Place("logits", VECTOR, "linear", ("final_norm",), "output", steps=("word_scores",), kind="gap")


def attention(block: str, stream: str) -> Iterator[Place]:
    name = f"{block}.attention"
    for made, kind in (("queries", "query"), ("keys", "key"), ("values", "value")):
        steps = ("made_apart", "split")
        yield Place(f"{name}.{made}", HEADS, "linear", (stream,), f"{name}.{kind}", steps=steps, kind=kind)
    yield Place(f"{name}.scores", TABLE, "score", (f"{name}.queries", f"{name}.keys"), name, steps=("scores",))
    yield Place(f"{name}.weights", TABLE, "softmax", (f"{name}.scores",), steps=("softmax_both",))
    yield Place(f"{name}.heads", HEADS, "mix", (f"{name}.weights", f"{name}.values"), steps=("mix",))
    yield Place(f"{name}.merged", VECTOR, "merge", (f"{name}.heads",), steps=("merge",))
    yield Place(
        f"{name}.output", VECTOR, "linear", (f"{name}.merged",), f"{name}.projection",
        steps=("projection",), kind="attention_out",
    )  # fmt: skip
    yield Place(f"{block}.residual.middle", VECTOR, "add", (stream, f"{name}.output"), steps=("attention_residual",))
    yield Place(
        f"{name}.norm", VECTOR, "norm", (f"{block}.residual.middle",), f"{block}.attention_norm",
        steps=("attention_norm_after",),
    )  # fmt: skip


def mlp(block: str, stream: str) -> Iterator[Place]:
    name = f"{block}.mlp"
    yield Place(f"{name}.hidden", VECTOR, "linear", (stream,), f"{name}.widen", steps=("widen",), kind="hidden")
    yield Place(f"{name}.activation", VECTOR, "activate", (f"{name}.hidden",), steps=("activation",))
    yield Place(
        f"{name}.output", VECTOR, "linear", (f"{name}.activation",), f"{name}.projection",
        steps=("narrow",), kind="mlp_out",
    )  # fmt: skip
    yield Place(f"{name}.sum", VECTOR, "add", (stream, f"{name}.output"), steps=("mlp_sum",))
    yield Place(f"{block}.residual", VECTOR, "norm", (f"{name}.sum",), f"{block}.mlp_norm", steps=("mlp_norm_after",))
