"""The map of a recurrent translator: every named intermediate of a forward pass, and what made it from what."""

from __future__ import annotations

from collections.abc import Iterator

from cutaway.models.architecture import Place
from cutaway.models.seq2seq.shape import Shape

VECTOR = ("token", "column")
TABLE = ("token", "key")


def places(shape: Shape) -> Iterator[Place]:
    """In the order of computation. In the decoder a token is one of the target, and a key one of the source."""
    memory, last = "", list[str]()
    for stack in ("encoder", "decoder"):
        yield Place(f"{stack}.token_embedding", VECTOR, "look up", ("ids",), "token_embedding", steps=("embedding",))
        vector = f"{stack}.token_embedding"
        for layer in range(shape.layers):
            block = f"{stack}.blocks.{layer}"
            before = (vector, last[layer]) if stack == "decoder" else (vector,)
            vector = f"{block}.hidden"
            yield Place(vector, VECTOR, "recur", before, f"{block}.cell", steps=("recur",), kind="hidden")
            if stack == "encoder":
                last.append(f"{block}.last")
                yield Place(f"{block}.last", ("column",), "last", (vector,), steps=("goes_over",))
        memory = memory or vector
    if shape.attention != "none":
        name = "decoder.attention"
        scored = f"{name}.scores"
        yield Place(
            scored, TABLE, "score by a layer", (vector, memory), "attention", steps=("cross_scores",), kind="score"
        )
        yield Place(f"{name}.masked", TABLE, "mask", (scored,), steps=("cross_mask_padding",))
        yield Place(f"{name}.weights", TABLE, "softmax", (f"{name}.masked",), steps=("cross_softmax",))
        yield Place(f"{name}.context", VECTOR, "mix", (f"{name}.weights", memory), steps=("context",))
        yield Place("decoder.joined", VECTOR, "join", (vector, f"{name}.context"), steps=("joined",))
        vector = "decoder.joined"
    yield Place("decoder.output", VECTOR, "feed forward", (vector,), "feed_forward", steps=("feed_forward",))
    yield Place("logits", VECTOR, "linear", ("decoder.output",), "token_embedding", steps=("logits",))
