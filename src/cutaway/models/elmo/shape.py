"""The shape of an ELMo."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cutaway.errors import CutawayError
from cutaway.models.transformer.shape import check_whole

FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1_024))
"""The paper's convolutions: how many characters each looks at, and how many numbers it makes of them."""


@dataclass(frozen=True)
class Shape:
    """Everything that decides the shapes and the arithmetic of a model. The defaults are the paper's."""

    kind: ClassVar[str] = "elmo"

    vocabulary: int = 261
    """How many characters there are: the 256 bytes, and five marks."""
    words: int = 793_471
    """How many words can be predicted, the marks of a text's begin and end and the unknown word among them."""
    character_width: int = 16
    """The length of a character's vector."""
    filters: tuple[tuple[int, int], ...] = FILTERS
    """The convolutions: (how many characters each sees, how many numbers it makes)."""
    longest: int = 50
    """So many characters of a word are read, its marks among them; the rest of a longer one is passed over."""
    highways: int = 2
    """How many highway layers follow the convolutions."""
    width: int = 512
    """The length of a word's vector in each direction: a projection brings everything to it."""
    cell_width: int = 4_096
    """The length of an LSTM's cell, and of its hidden state before the projection."""
    layers: int = 2
    """How many LSTM layers each direction has."""
    dropout: float = 0.1
    """The share of values dropped while training; never used otherwise."""
    end_token: int | None = None
    """The id of the mark that ends a text."""

    def __post_init__(self) -> None:
        pairs = self.filters
        whole = isinstance(pairs, list | tuple) and bool(pairs) and all(
            isinstance(pair, list | tuple) and len(pair) == 2 and all(type(one) is int and one > 0 for one in pair)
            for pair in pairs
        )  # fmt: skip
        if not whole:
            raise CutawayError(
                "A model's filters must be pairs of whole numbers, how many characters and how many outputs, such as "
                f"[[1, 32], [3, 64]], not {pairs!r}."
            )
        object.__setattr__(self, "filters", tuple((seen, made) for seen, made in pairs))
        for name in ("character_width", "width", "layers", "longest"):
            check_whole(name, getattr(self, name), least=1)
        check_whole("vocabulary", self.vocabulary, least=6)
        check_whole("words", self.words, least=3)
        check_whole("highways", self.highways, least=0)
        check_whole("cell_width", self.cell_width, least=1)
        if self.cell_width <= self.width:
            raise CutawayError(
                f"The cell of an LSTM with a projection is wider than what comes out: cell_width is {self.cell_width}, "
                f"width {self.width}. Choose a wider cell."
            )
        if isinstance(self.dropout, bool) or not 0 <= self.dropout < 1:
            raise CutawayError(f"Dropout must lie between 0 and 1, not {self.dropout}.")

    @property
    def filtered(self) -> int:
        """How many numbers all convolutions make of a word together."""
        return sum(made for _, made in self.filters)

    @property
    def end(self) -> int:
        """The id of the mark that ends a text."""
        return 2 if self.end_token is None else self.end_token
