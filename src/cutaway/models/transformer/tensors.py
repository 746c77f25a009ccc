"""Every tensor of a Transformer, with the name it has in Marian's folders."""

from __future__ import annotations

from collections.abc import Iterator

from cutaway.models.architecture import TensorSpec
from cutaway.models.transformer.shape import Shape

ATTENTIONS = {
    "attention": ("self_attn", "self-attention"),
    "cross": ("encoder_attn", "attention to the source"),
}
MATRICES = {"queries": "q_proj", "keys": "k_proj", "values": "v_proj", "projection": "out_proj"}


def tensors(shape: Shape) -> Iterator[TensorSpec]:
    """In the order in which tokens meet them: the encoder, then the decoder."""
    rows = (shape.vocabulary, shape.width)
    yield TensorSpec("token_embedding.weight", "shared.weight", rows, "a row for each token", "token embedding")
    for stack, layers in (("encoder", shape.layers), ("decoder", shape.decoder_layers)):
        for layer in range(layers):
            yield from block(stack, layer, shape)
        if shape.final_norm:
            yield from norm(f"{stack}.final_norm", f"{stack}.layer_norm", f"{stack}, final norm", shape)
    if shape.output_bias:
        yield TensorSpec("output_bias", "final_logits_bias", (1, shape.vocabulary), "added to each score", "output")


def block(stack: str, layer: int, shape: Shape) -> Iterator[TensorSpec]:
    ours, theirs, width = f"{stack}.blocks.{layer}", f"{stack}.layers.{layer}", shape.width
    for name in ("attention", "cross") if stack == "decoder" else ("attention",):
        stored, what = ATTENTIONS[name]
        for matrix, there in MATRICES.items():
            does = f"{stack}, {what}, {matrix}"
            yield from linear(f"{ours}.{name}.{matrix}", f"{theirs}.{stored}.{there}", does, "attention", width, width)
        yield from norm(f"{ours}.norms.{name}", f"{theirs}.{stored}_layer_norm", f"{stack}, norm of {what}", shape)
    inner = shape.mlp_width
    yield from linear(f"{ours}.mlp.widen", f"{theirs}.fc1", f"{stack}, feed-forward, first layer", "MLP", inner, width)
    second = f"{stack}, feed-forward, second layer"
    yield from linear(f"{ours}.mlp.projection", f"{theirs}.fc2", second, "MLP", width, inner)
    yield from norm(f"{ours}.norms.mlp", f"{theirs}.final_layer_norm", f"{stack}, norm of the feed-forward", shape)


def linear(name: str, stored: str, what: str, part: str, outputs: int, inputs: int) -> Iterator[TensorSpec]:
    yield TensorSpec(f"{name}.weight", f"{stored}.weight", (outputs, inputs), what, part)
    yield TensorSpec(f"{name}.bias", f"{stored}.bias", (outputs,), f"{what}, bias", part)


def norm(name: str, stored: str, what: str, shape: Shape) -> Iterator[TensorSpec]:
    for leaf, does in (("weight", "scale"), ("bias", "shift")):
        yield TensorSpec(f"{name}.{leaf}", f"{stored}.{leaf}", (shape.width,), f"{what}, {does}", "layer norms")
