"""The map of ELMo: every named intermediate of a forward pass, its axes, and what made it from what.

What the two directions make of a word stands side by side in `residual.0` and in each block's `residual`: these are the
layers that are mixed. model.py hands its values over under the same names, in the same order, and a test holds the two
together.
"""

from __future__ import annotations

from collections.abc import Iterator

from cutaway.models.architecture import Place
from cutaway.models.elmo.shape import Shape

VECTOR = ("token", "column")
DIRECTIONS = ("forwards", "backwards")


def places(shape: Shape) -> Iterator[Place]:
    """In the order of computation."""
    yield Place("characters", ("character", *VECTOR), "spell", ("ids",), "character_embedding", kind="character")
    yield Place("filters", VECTOR, "convolve", ("characters",), "filters", kind="hidden")
    vector = "filters"
    for number in range(shape.highways):
        yield Place(f"highways.{number}", VECTOR, "highway", (vector,), f"highways.{number}", kind="hidden")
        vector = f"highways.{number}"
    yield Place("word", VECTOR, "linear", (vector,), "projection", kind="token")
    yield Place("residual.0", VECTOR, "join", ("word", "word"), kind="stream")
    before = dict.fromkeys(DIRECTIONS, "word")
    for layer in range(shape.layers):
        for direction in DIRECTIONS:
            name = f"blocks.{layer}.{direction}"
            yield Place(f"{name}.hidden", VECTOR, "recur", (before[direction],), f"{name}.cell", kind="hidden")
            if layer:
                yield Place(f"{name}.output", VECTOR, "add", (before[direction], f"{name}.hidden"))
            else:  # what the first layer makes goes on as it is
                yield Place(f"{name}.output", VECTOR, "pass", (f"{name}.hidden",))
            before[direction] = f"{name}.output"
        yield Place(f"blocks.{layer}.residual", VECTOR, "join", tuple(before.values()), kind="stream")
    every = ("residual.0", *(f"blocks.{layer}.residual" for layer in range(shape.layers)))
    yield Place("mixed", VECTOR, "mix layers", every, "mix", kind="mixed")
    for direction in DIRECTIONS:
        yield Place(f"{direction}.logits", VECTOR, "linear", (before[direction],), "output")
