"""Every tensor of an ELMo; a checkpoint stores them under the same names."""

from __future__ import annotations

from collections.abc import Iterator

from cutaway.models.architecture import TensorSpec
from cutaway.models.elmo.shape import Shape


def tensors(shape: Shape) -> Iterator[TensorSpec]:
    """In the order in which a word meets them."""
    width, cell, seen = shape.width, shape.cell_width, "characters"
    yield spec(
        "character_embedding.weight", (shape.vocabulary, shape.character_width), "a row for each character", seen
    )
    for number, (many, made) in enumerate(shape.filters):
        what = f"convolution over {many} characters" if many > 1 else "convolution over single characters"
        yield spec(f"filters.{number}.weight", (made, shape.character_width, many), what, seen)
        yield spec(f"filters.{number}.bias", (made,), f"{what}, bias", seen)
    for number in range(shape.highways):
        for part, what in (("change", "what may take its place"), ("gate", "how much stays as it is")):
            name = f"highways.{number}.{part}"
            yield spec(f"{name}.weight", (shape.filtered, shape.filtered), f"highway, {what}", "highway")
            yield spec(f"{name}.bias", (shape.filtered,), f"highway, {what}, bias", "highway")
    yield spec("projection.weight", (width, shape.filtered), "projection to a word's vector", "projection")
    yield spec("projection.bias", (width,), "projection to a word's vector, bias", "projection")
    for layer in range(shape.layers):
        for direction in ("forwards", "backwards"):
            name = f"blocks.{layer}.{direction}.cell"
            for stored, rows, what in (
                ("weight_ih_l0", (4 * cell, width), "from the word"),
                ("weight_hh_l0", (4 * cell, width), "from the state"),
                ("bias_ih_l0", (4 * cell,), "from the word, bias"),
                ("bias_hh_l0", (4 * cell,), "from the state, bias"),
                ("weight_hr_l0", (width, cell), "projection of the state"),
            ):
                yield spec(f"{name}.{stored}", rows, f"{direction}, {what}", "recurrence")
    yield spec("mix.weights", (shape.layers + 1,), "how much of each layer, before the softmax", "mix")
    yield spec("mix.scale", (1,), "gamma, by which the mix is scaled", "mix")
    yield spec("output.weight", (shape.words, width), "a row for each word that can be predicted", "output")
    yield spec("output.bias", (shape.words,), "added to each score", "output")


def spec(name: str, shape: tuple[int, ...], what: str, part: str) -> TensorSpec:
    return TensorSpec(name, name, shape, what, part)
