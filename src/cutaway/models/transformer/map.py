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
        yield Place(f"{stack}.token_embedding", VECTOR, "look up", ("ids",), "token_embedding", steps=("embedding",))
        vector = f"{stack}.token_embedding"
        if shape.scaled:
            yield Place(f"{stack}.scaled", VECTOR, "scale", (vector,), steps=("scaled",))
            vector = f"{stack}.scaled"
        position = f"{stack}.position_embedding"
        yield Place(position, VECTOR, "sinusoids", ("positions",), steps=("sinusoids",), kind="position")
        yield Place(f"{stack}.entry", VECTOR, "add", (vector, position), steps=("entry",))
        stream = f"{stack}.entry"
        for layer in range(layers):
            block = f"{stack}.blocks.{layer}"
            for name in ("attention", "cross", "mlp") if stack == "decoder" else ("attention", "mlp"):
                made = list(part(block, name, stream, memory, shape.norm == "pre"))
                yield from made
                stream = made[-1].name
        if shape.final_norm:
            name = f"{stack}.final_norm"
            yield Place(name, VECTOR, "norm", (stream,), name, steps=("final_norm",), kind="last")
            stream = f"{stack}.final_norm"
        memory = memory or stream
    yield Place("logits", VECTOR, "linear", (stream,), "token_embedding", steps=("logits",))


def part(block: str, name: str, stream: str, memory: str, pre: bool) -> Iterator[Place]:
    """One layer of a block, added to what went in, and normed before or after."""
    within, norm = f"{block}.{name}", f"{block}.norms.{name}"
    entry = stream
    if pre:
        yield Place(f"{within}.norm", VECTOR, "norm", (stream,), norm, steps=(f"{name}_norm",))
        entry = f"{within}.norm"
    yield from mlp(within, entry) if name == "mlp" else attention(within, entry, memory if name == "cross" else entry)
    added = "mlp_sum" if name == "mlp" else f"{name}_residual"
    yield Place(f"{within}.sum", VECTOR, "add", (stream, f"{within}.output"), steps=(added,))
    if not pre:
        yield Place(f"{within}.norm", VECTOR, "norm", (f"{within}.sum",), norm, steps=(f"{name}_norm_after",))


def attention(name: str, stream: str, looked_at: str) -> Iterator[Place]:
    cross = "cross_" if name.endswith(".cross") else ""
    mask = "mask" if name.startswith("decoder.") and not cross else "mask_padding"
    for made, kind, source in (
        ("queries", "query", stream), ("keys", "key", looked_at), ("values", "value", looked_at)
    ):  # fmt: skip
        steps = (f"{cross}made_apart",)
        yield Place(f"{name}.{made}", HEADS, "linear", (source,), f"{name}.{made}", steps=steps, kind=kind)
    yield Place(f"{name}.scores", TABLE, "score", (f"{name}.queries", f"{name}.keys"), steps=(f"{cross}scores",))
    yield Place(f"{name}.masked", TABLE, "mask", (f"{name}.scores",), steps=(f"{cross}{mask}",))
    yield Place(f"{name}.weights", TABLE, "softmax", (f"{name}.masked",), steps=(f"{cross}softmax",))
    yield Place(f"{name}.heads", HEADS, "mix", (f"{name}.weights", f"{name}.values"), steps=(f"{cross}mix",))
    yield Place(f"{name}.merged", VECTOR, "merge", (f"{name}.heads",), steps=(f"{cross}merge",))
    yield Place(
        f"{name}.output", VECTOR, "linear", (f"{name}.merged",), f"{name}.projection",
        steps=(f"{cross}projection",), kind="attention_out",
    )  # fmt: skip


def mlp(name: str, stream: str) -> Iterator[Place]:
    yield Place(f"{name}.hidden", VECTOR, "linear", (stream,), f"{name}.widen", steps=("widen",), kind="hidden")
    yield Place(f"{name}.activation", VECTOR, "activate", (f"{name}.hidden",), steps=("mlp_activation",))
    yield Place(
        f"{name}.output", VECTOR, "linear", (f"{name}.activation",), f"{name}.projection",
        steps=("narrow",), kind="mlp_out",
    )  # fmt: skip
