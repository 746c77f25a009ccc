"""Every tensor of a GPT-2: one table for checkpoints, packing and the parameter page.

The stored names are those of Hugging Face's files. The four matrices of a block are stored [input, output] (OpenAI's
habit), where torch's linear layers, and so our model, have [output, input].
"""

from __future__ import annotations

from collections.abc import Iterator

from cutaway.models.architecture import TensorSpec
from cutaway.models.gpt2.shape import Config


def tensors(shape: Config) -> Iterator[TensorSpec]:
    """In the order in which a token meets them."""
    width, inner, rows = shape.width, shape.mlp_width, (shape.vocabulary, shape.width)
    yield TensorSpec("token_embedding.weight", "wte.weight", rows, "a row for each token", "token embedding")
    if not shape.relative:
        positions, part = (shape.context, width), "position embedding"
        yield TensorSpec("position_embedding.weight", "wpe.weight", positions, "a row for each position", part)
    for block in range(shape.layers):
        ours, theirs = f"blocks.{block}", f"h.{block}"
        yield from norm(f"{ours}.attention_norm", f"{theirs}.ln_1", "norm before attention", width)
        yield from linear(
            f"{ours}.attention.queries_keys_values", f"{theirs}.attn.c_attn", "query, key and value", "attention",
            (width, 3 * width),
        )  # fmt: skip
        if shape.relative:
            distances, what = (shape.heads, shape.context, shape.head_width), "a row for each head and distance"
            yield TensorSpec(f"{ours}.attention.distances", f"{theirs}.attn.distances", distances, what, "attention")
        yield from linear(
            f"{ours}.attention.projection", f"{theirs}.attn.c_proj", "projection of the merged heads", "attention",
            (width, width),
        )  # fmt: skip
        yield from norm(f"{ours}.mlp_norm", f"{theirs}.ln_2", "norm before the MLP", width)
        yield from linear(f"{ours}.mlp.widen", f"{theirs}.mlp.c_fc", "MLP, first layer", "MLP", (width, inner))
        yield from linear(f"{ours}.mlp.projection", f"{theirs}.mlp.c_proj", "MLP, second layer", "MLP", (inner, width))
    yield from norm("final_norm", "ln_f", "final norm", width)
    if not shape.tied:
        yield TensorSpec("output.weight", "lm_head.weight", rows, "a score for each token", "output")


def linear(name: str, stored: str, what: str, part: str, shape: tuple[int, int]) -> Iterator[TensorSpec]:
    yield TensorSpec(f"{name}.weight", f"{stored}.weight", shape, what, part, transposed=True)
    yield TensorSpec(f"{name}.bias", f"{stored}.bias", shape[1:], f"{what}, bias", part)


def norm(name: str, stored: str, what: str, width: int) -> Iterator[TensorSpec]:
    for leaf, does in (("weight", "scale"), ("bias", "shift")):
        yield TensorSpec(f"{name}.{leaf}", f"{stored}.{leaf}", (width,), f"{what}, {does}", "layer norms")
