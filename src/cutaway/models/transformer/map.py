"""The map of a Transformer: every named intermediate of a forward pass, its axes, and what made it from what.

`encoder.` and `decoder.` stand before the names of each stack; a block's attention to the source is `cross`. In the
encoder, `token` is a token of the source; in the decoder, one of the target, and the keys of `cross` are the source's.
"""

from __future__ import annotations

from collections.abc import Iterator

from cutaway.models.architecture import Place
from cutaway.models.transformer.shape import Shape

VECTOR = ("token", "column")
HEADS = ("head", "token", "column")
TABLE = ("head", "token", "key")


def places(shape: Shape) -> Iterator[Place]:
    """In the order of computation."""
    memory = ""
    for stack, layers in (("encoder", shape.layers), ("decoder", shape.decoder_layers)):
        yield Place(f"{stack}.token_embedding", VECTOR, "look up", ("ids",), "token_embedding")
        vector = f"{stack}.token_embedding"
        if shape.scaled:
            yield Place(f"{stack}.scaled", VECTOR, "scale", (vector,))
            vector = f"{stack}.scaled"
        yield Place(f"{stack}.position_embedding", VECTOR, "sinusoids", ("positions",))
        yield Place(f"{stack}.entry", VECTOR, "add", (vector, f"{stack}.position_embedding"))
        stream = f"{stack}.entry"
        for layer in range(layers):
            block = f"{stack}.blocks.{layer}"
            for name in ("attention", "cross", "mlp") if stack == "decoder" else ("attention", "mlp"):
                made = list(part(block, name, stream, memory, shape.norm == "pre"))
                yield from made
                stream = made[-1].name
        if shape.final_norm:
            yield Place(f"{stack}.final_norm", VECTOR, "norm", (stream,), f"{stack}.final_norm")
            stream = f"{stack}.final_norm"
        memory = memory or stream
    yield Place("logits", VECTOR, "linear", (stream,), "token_embedding")


def part(block: str, name: str, stream: str, memory: str, pre: bool) -> Iterator[Place]:
    """One layer of a block, added to what went in, and normed before or after."""
    within, norm = f"{block}.{name}", f"{block}.norms.{name}"
    entry = stream
    if pre:
        yield Place(f"{within}.norm", VECTOR, "norm", (stream,), norm)
        entry = f"{within}.norm"
    yield from mlp(within, entry) if name == "mlp" else attention(within, entry, memory if name == "cross" else entry)
    yield Place(f"{within}.sum", VECTOR, "add", (stream, f"{within}.output"))
    if not pre:
        yield Place(f"{within}.norm", VECTOR, "norm", (f"{within}.sum",), norm)


def attention(name: str, stream: str, looked_at: str) -> Iterator[Place]:
    for made, kind, source in (
        ("queries", "query", stream), ("keys", "key", looked_at), ("values", "value", looked_at)
    ):  # fmt: skip
        yield Place(f"{name}.{made}", HEADS, "linear", (source,), f"{name}.{made}", kind=kind)
    yield Place(f"{name}.scores", TABLE, "score", (f"{name}.queries", f"{name}.keys"))
    yield Place(f"{name}.masked", TABLE, "mask", (f"{name}.scores",))
    yield Place(f"{name}.weights", TABLE, "softmax", (f"{name}.masked",))
    yield Place(f"{name}.heads", HEADS, "mix", (f"{name}.weights", f"{name}.values"))
    yield Place(f"{name}.merged", VECTOR, "merge", (f"{name}.heads",))
    yield Place(f"{name}.output", VECTOR, "linear", (f"{name}.merged",), f"{name}.projection")


def mlp(name: str, stream: str) -> Iterator[Place]:
    yield Place(f"{name}.hidden", VECTOR, "linear", (stream,), f"{name}.widen", kind="hidden")
    yield Place(f"{name}.activation", VECTOR, "activate", (f"{name}.hidden",))
    yield Place(f"{name}.output", VECTOR, "linear", (f"{name}.activation",), f"{name}.projection", kind="mlp_out")
