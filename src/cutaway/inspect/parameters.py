"""Every matrix of a model, its shape and its count: arithmetic on the shape alone, no weights needed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from cutaway.errors import CutawayError, nearest
from cutaway.models.architecture import TensorSpec, tensors
from cutaway.models.gpt2.shape import SIZES, Config

IN_THE_PAPER = {"gpt2": 117, "gpt2-medium": 345, "gpt2-large": 762, "gpt2-xl": 1_542}
"""The millions printed in the GPT-2 paper (its table 2). OpenAI has since corrected them."""
GPT1_VOCABULARY = 40_478


Matrix = TensorSpec


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
    def blocks(self) -> int:
        return len({matrix.block for matrix in self.matrices} - {None})

    @property
    def per_block(self) -> int:
        return sum(matrix.count for matrix in self.block())

    @property
    def before(self) -> tuple[Matrix, ...]:
        """What stands before the stack: the embeddings."""
        return tuple(takewhile(lambda matrix: matrix.block is None, self.matrices))

    @property
    def after(self) -> tuple[Matrix, ...]:
        """What stands after the stack: the final norm, and the output where it is not the token embedding again."""
        return tuple(matrix for matrix in self.matrices[len(self.before) :] if matrix.block is None)

    def parts(self) -> dict[str, int]:
        """The count by kind of work; the kinds add up to the total. Layer norms, which are small, come last."""
        counts: Counter[str] = Counter()
        for matrix in self.matrices:
            counts[matrix.part] += matrix.count
        return dict(sorted(counts.items(), key=lambda one: one[0] == "layer norms"))

    def to_json(self) -> dict[str, Any]:
        config = self.config
        return {
            "total": self.total,
            "per_block": self.per_block,
            "blocks": self.blocks,
            "tied": getattr(config, "tied", False),
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
    return Parameters(config, tensors(config))


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
