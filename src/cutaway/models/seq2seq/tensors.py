"""Every tensor of a recurrent translator; a checkpoint stores them under the same names."""

from __future__ import annotations

from collections.abc import Iterator

from cutaway.models.architecture import TensorSpec
from cutaway.models.seq2seq.shape import Shape


def tensors(shape: Shape) -> Iterator[TensorSpec]:
    """In the order in which tokens meet them: the encoder, then the decoder."""
    width = shape.width
    yield spec("token_embedding.weight", (shape.vocabulary, width), "a row for each token", "token embedding")
    for stack, both in (("encoder", shape.bidirectional), ("decoder", False)):
        for layer in range(shape.layers):
            own = width // 2 if both else width
            for backwards in ("", "_reverse") if both else ("",):
                name, rows = f"{stack}.blocks.{layer}.cell", shape.gates * own
                what = f"{stack}{', backwards' if backwards else ''}"
                yield spec(f"{name}.weight_ih_l0{backwards}", (rows, width), f"{what}, from the word", "recurrence")
                yield spec(f"{name}.weight_hh_l0{backwards}", (rows, own), f"{what}, from the state", "recurrence")
                yield spec(f"{name}.bias_ih_l0{backwards}", (rows,), f"{what}, from the word, bias", "recurrence")
                yield spec(f"{name}.bias_hh_l0{backwards}", (rows,), f"{what}, from the state, bias", "recurrence")
    if shape.attention != "none":
        yield spec("attention.keys.weight", (width, width), "of the encoder's states", "attention")
    if shape.attention == "additive":
        yield spec("attention.queries.weight", (width, width), "of the decoder's states", "attention")
        yield spec("attention.vector.weight", (1, width), "from their sum to a score", "attention")
    wide = width if shape.attention == "none" else 2 * width
    yield spec("feed_forward.weight", (width, wide), "from [h; c] to the word", "output")
    yield spec("feed_forward.bias", (width,), "from [h; c] to the word, bias", "output")
    yield spec("output_bias", (shape.vocabulary,), "added to each score", "output")


def spec(name: str, shape: tuple[int, ...], what: str, part: str) -> TensorSpec:
    return TensorSpec(name, name, shape, what, part)
