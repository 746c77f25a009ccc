"""The map of GPT-2: every named intermediate of a forward pass, its axes, and what made it from what.

The names a trace knows, the steps of the walk and the arithmetic of a number all come from here; model.py hands its
values over under the same names, in the same order, and a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterator

from cutaway.models.architecture import Place
from cutaway.models.gpt2.shape import Config

VECTOR = ("token", "column")
HEADS = ("head", "token", "column")
TABLE = ("head", "token", "key")


def places(shape: Config) -> Iterator[Place]:
    """In the order of computation."""
    embedding, position = "token_embedding", "position_embedding"
    yield Place(embedding, VECTOR, "look up", ("ids",), embedding, steps=("embedding",))
    if shape.relative:
        yield Place("residual.0", VECTOR, "copy", (embedding,), steps=("entry",))
    else:
        yield Place(position, VECTOR, "look up", ("positions",), position, steps=("position",))
        yield Place("residual.0", VECTOR, "add", (embedding, position), steps=("entry",))
    stream = "residual.0"
    for i in range(shape.layers):
        yield from attention(f"blocks.{i}", stream, shape.relative)
        yield from mlp(f"blocks.{i}", f"blocks.{i}.residual.middle")
        stream = f"blocks.{i}.residual"
    yield Place("final_norm", VECTOR, "norm", (stream,), "final_norm", steps=("final_norm",), kind="last")
    matrix = embedding if shape.tied else "output"
    yield Place("logits", VECTOR, "linear", ("final_norm",), matrix, steps=("logits",))


def attention(block: str, stream: str, relative: bool) -> Iterator[Place]:
    name = f"{block}.attention"
    scored = f"{name}.scores"
    yield Place(f"{name}.norm", VECTOR, "norm", (stream,), f"{block}.attention_norm", steps=("attention_norm",))
    for third, (made, kind) in enumerate((("queries", "query"), ("keys", "key"), ("values", "value"))):
        matrix, steps = f"{name}.queries_keys_values", ("made", "split")
        yield Place(f"{name}.{made}", HEADS, "linear", (f"{name}.norm",), matrix, (third, 3), steps, kind)
    yield Place(f"{name}.scores", TABLE, "score", (f"{name}.queries", f"{name}.keys"), name, steps=("scores",))
    if relative:
        scored = f"{name}.placed"
        yield Place(f"{name}.relative", TABLE, "distance", (f"{name}.queries",), name)
        yield Place(scored, TABLE, "add", (f"{name}.scores", f"{name}.relative"))
    yield Place(f"{name}.masked", TABLE, "mask", (scored,), steps=("mask",))
    yield Place(f"{name}.weights", TABLE, "softmax", (f"{name}.masked",), steps=("softmax",))
    yield Place(f"{name}.heads", HEADS, "mix", (f"{name}.weights", f"{name}.values"), steps=("mix",))
    yield Place(f"{name}.merged", VECTOR, "merge", (f"{name}.heads",), steps=("merge",))
    yield Place(
        f"{name}.output", VECTOR, "linear", (f"{name}.merged",), f"{name}.projection",
        steps=("projection",), kind="attention_out",
    )  # fmt: skip
    yield Place(f"{block}.residual.middle", VECTOR, "add", (stream, f"{name}.output"), steps=("attention_residual",))


def mlp(block: str, stream: str) -> Iterator[Place]:
    name = f"{block}.mlp"
    yield Place(f"{name}.norm", VECTOR, "norm", (stream,), f"{block}.mlp_norm", steps=("mlp_norm",))
    yield Place(f"{name}.hidden", VECTOR, "linear", (f"{name}.norm",), f"{name}.widen", steps=("widen",), kind="hidden")
    yield Place(f"{name}.activation", VECTOR, "activate", (f"{name}.hidden",), steps=("activation",))
    yield Place(
        f"{name}.output", VECTOR, "linear", (f"{name}.activation",), f"{name}.projection",
        steps=("narrow",), kind="mlp_out",
    )  # fmt: skip
    yield Place(f"{block}.residual", VECTOR, "add", (stream, f"{name}.output"), steps=("mlp_residual",))
