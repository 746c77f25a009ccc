"""The map of GPT-2: every named intermediate of a forward pass, its axes, and what made it from what.

The names a trace knows, the walk and the arithmetic of a number all come from here; model.py hands its values over
under the same names, in the same order, and a test holds the two together.
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
    yield Place("token_embedding", VECTOR, "look up", ("ids",), "token_embedding")
    yield Place("position_embedding", VECTOR, "look up", ("positions",), "position_embedding")
    yield Place("residual.0", VECTOR, "add", ("token_embedding", "position_embedding"))
    stream = "residual.0"
    for i in range(shape.layers):
        yield from block(f"blocks.{i}", stream)
        stream = f"blocks.{i}.residual"
    yield Place("final_norm", VECTOR, "norm", (stream,), "final_norm")
    yield Place("logits", VECTOR, "linear", ("final_norm",), "token_embedding" if shape.tied else "output")


def block(name: str, stream: str) -> Iterator[Place]:
    attention, mlp, middle = f"{name}.attention", f"{name}.mlp", f"{name}.residual.middle"
    yield Place(f"{attention}.norm", VECTOR, "norm", (stream,), f"{name}.attention_norm")
    for third, made in enumerate(("queries", "keys", "values")):
        matrix = f"{attention}.queries_keys_values"
        yield Place(f"{attention}.{made}", HEADS, "linear", (f"{attention}.norm",), matrix, (third, 3))
    yield Place(f"{attention}.scores", TABLE, "score", (f"{attention}.queries", f"{attention}.keys"), attention)
    yield Place(f"{attention}.masked", TABLE, "mask", (f"{attention}.scores",))
    yield Place(f"{attention}.weights", TABLE, "softmax", (f"{attention}.masked",))
    yield Place(f"{attention}.heads", HEADS, "mix", (f"{attention}.weights", f"{attention}.values"))
    yield Place(f"{attention}.merged", VECTOR, "merge", (f"{attention}.heads",))
    yield Place(f"{attention}.output", VECTOR, "linear", (f"{attention}.merged",), f"{attention}.projection")
    yield Place(middle, VECTOR, "add", (stream, f"{attention}.output"))
    yield Place(f"{mlp}.norm", VECTOR, "norm", (middle,), f"{name}.mlp_norm")
    yield Place(f"{mlp}.hidden", VECTOR, "linear", (f"{mlp}.norm",), f"{mlp}.widen")
    yield Place(f"{mlp}.activation", VECTOR, "activate", (f"{mlp}.hidden",))
    yield Place(f"{mlp}.output", VECTOR, "linear", (f"{mlp}.activation",), f"{mlp}.projection")
    yield Place(f"{name}.residual", VECTOR, "add", (middle, f"{mlp}.output"))
