"""Every matrix of a model, its shape and its count: arithmetic on the shape alone, no weights needed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from cutaway.errors import CutawayError, nearest
from cutaway.models.gpt2.shape import SIZES, Config

IN_THE_PAPER = {"gpt2": 117, "gpt2-medium": 345, "gpt2-large": 762, "gpt2-xl": 1_542}
"""The millions printed in the GPT-2 paper (its table 2). OpenAI has since corrected them."""
GPT1_VOCABULARY = 40_478


@dataclass(frozen=True)
class Matrix:
    """One matrix or vector of weights."""

    name: str
    """Its name in this program, as in `model.named_parameters()`."""
    stored: str
    """Its name in a checkpoint."""
    what: str
    """What it does, in a few words."""
    shape: tuple[int, ...]
    """As a checkpoint stores it: inputs x outputs; an embedding (and an output of its own) has a row for each token."""
    block: int | None = None
    """The block it belongs to; None outside the stack."""

    @property
    def count(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Parameters:
    """All the matrices of a model, in the order in which a token meets them."""

    config: Config
    matrices: tuple[Matrix, ...]

    @property
    def total(self) -> int:
        return sum(matrix.count for matrix in self.matrices)

    def block(self, index: int = 0) -> tuple[Matrix, ...]:
        """The matrices of one block; all blocks have the same shapes."""
        return tuple(matrix for matrix in self.matrices if matrix.block == index)

    @property
    def per_block(self) -> int:
        return sum(matrix.count for matrix in self.block())

    @property
    def before(self) -> tuple[Matrix, ...]:
        """What stands before the stack: the embeddings."""
        return self.matrices[:2]

    @property
    def after(self) -> tuple[Matrix, ...]:
        """What stands after the stack: the final norm, and the output where it is not the token embedding again."""
        return tuple(matrix for matrix in self.matrices[2:] if matrix.block is None)

    def parts(self) -> dict[str, int]:
        """The count by kind of work; the kinds add up to the total."""
        kinds = {"token embedding": 0, "position embedding": 0, "attention": 0, "MLP": 0, "layer norms": 0, "output": 0}
        for matrix in self.matrices:
            kinds[_kind(matrix.name)] += matrix.count
        return {kind: count for kind, count in kinds.items() if count}

    def to_json(self) -> dict[str, Any]:
        config = self.config
        return {
            "total": self.total,
            "per_block": self.per_block,
            "blocks": config.layers,
            "tied": config.tied,
            "parts": self.parts(),
            "paper": (paper := in_the_paper(config)) and paper.to_json(),
            "matrices": [
                {
                    "name": matrix.name,
                    "stored": matrix.stored,
                    "what": matrix.what,
                    "block": matrix.block,
                    "shape": list(matrix.shape),
                    "count": matrix.count,
                }
                for matrix in self.matrices
            ],
        }


@dataclass(frozen=True)
class InThePaper:
    """What the GPT-2 paper printed for a size, and the count that gives that number."""

    millions: int
    with_gpt1_vocabulary: int
    """The same model counted with GPT-1's vocabulary of 40,478: it rounds to the printed number, for all four sizes."""

    def to_json(self) -> dict[str, Any]:
        return {
            "millions": self.millions,
            "gpt1_vocabulary": GPT1_VOCABULARY,
            "with_gpt1_vocabulary": self.with_gpt1_vocabulary,
        }


def parameters(config: Config) -> Parameters:
    """Every matrix of a model of this shape."""
    width, inner = config.width, config.mlp_width

    def linear(name: str, stored: str, what: str, inputs: int, outputs: int, block: int) -> list[Matrix]:
        return [
            Matrix(f"{name}.weight", f"{stored}.weight", what, (inputs, outputs), block),
            Matrix(f"{name}.bias", f"{stored}.bias", f"{what}, bias", (outputs,), block),
        ]

    def norm(name: str, stored: str, what: str, block: int | None = None) -> list[Matrix]:
        return [
            Matrix(f"{name}.weight", f"{stored}.weight", f"{what}, scale", (width,), block),
            Matrix(f"{name}.bias", f"{stored}.bias", f"{what}, shift", (width,), block),
        ]

    matrices = [
        Matrix("token_embedding.weight", "wte.weight", "a row for each token", (config.vocabulary, width)),
        Matrix("position_embedding.weight", "wpe.weight", "a row for each position", (config.context, width)),
    ]
    for i in range(config.layers):
        ours, theirs = f"blocks.{i}", f"h.{i}"
        matrices += norm(f"{ours}.attention_norm", f"{theirs}.ln_1", "norm before attention", i)
        matrices += linear(
            f"{ours}.attention.queries_keys_values",
            f"{theirs}.attn.c_attn",
            "query, key and value",
            width,
            3 * width,
            i,
        )
        matrices += linear(
            f"{ours}.attention.projection", f"{theirs}.attn.c_proj", "projection of the merged heads", width, width, i
        )
        matrices += norm(f"{ours}.mlp_norm", f"{theirs}.ln_2", "norm before the MLP", i)
        matrices += linear(f"{ours}.mlp.widen", f"{theirs}.mlp.c_fc", "MLP, first layer", width, inner, i)
        matrices += linear(f"{ours}.mlp.projection", f"{theirs}.mlp.c_proj", "MLP, second layer", inner, width, i)
    matrices += norm("final_norm", "ln_f", "final norm")
    if not config.tied:
        matrices.append(Matrix("output.weight", "lm_head.weight", "a score for each token", (config.vocabulary, width)))
    return Parameters(config, tuple(matrices))


def find(config: Config, name: str) -> Matrix:
    """One matrix of a model of this shape, by its name here or in a checkpoint."""
    matrices = {key: one for one in parameters(config).matrices for key in (one.stored, one.name)}
    if name not in matrices:
        raise CutawayError(f"No matrix is called {name!r}.{nearest(name, matrices)} `cutaway parameters` lists them.")
    return matrices[name]


def in_the_paper(config: Config) -> InThePaper | None:
    """The paper's number for this shape, if it is one of the four published."""
    for name, size in SIZES.items():
        if parameters(config).matrices == parameters(size).matrices:
            as_gpt1 = parameters(size.but(vocabulary=GPT1_VOCABULARY)).total
            return InThePaper(IN_THE_PAPER[name], as_gpt1)
    return None


def _kind(name: str) -> str:
    if "norm" in name:
        return "layer norms"
    for part, kind in (("attention", "attention"), ("mlp", "MLP"), ("output", "output"), ("token", "token embedding")):
        if part in name:
            return kind
    return "position embedding"
