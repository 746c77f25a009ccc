"""The shape of a recurrent translator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cutaway.errors import CutawayError
from cutaway.models.transformer.shape import check_one_of, check_tokens, check_whole

CELLS = ("gru", "lstm")
ATTENTIONS = ("none", "additive", "multiplicative")


@dataclass(frozen=True)
class Shape:
    """Everything that decides the shapes and the arithmetic of a model."""

    kind: ClassVar[str] = "seq2seq"

    vocabulary: int = 8_000
    """How many tokens there are; source and target share them."""
    context: int = 512
    """How many tokens a target may have; a recurrent network itself knows no limit."""
    width: int = 256
    """The length of a token's vector and of a hidden state."""
    layers: int = 1
    """How many recurrent layers are stacked, in the encoder and in the decoder."""
    cell: str = "gru"
    """The recurrent unit: gru or lstm."""
    attention: str = "multiplicative"
    """How the decoder scores the encoder's hidden states: additive, multiplicative; or none, and only the last hidden
    state goes over."""
    bidirectional: bool = False
    """Whether the encoder reads the source in both directions, half of the width in each."""
    dropout: float = 0.0
    """The share of values dropped while training; never used otherwise."""
    end_token: int | None = None
    """The id of the token that ends a text; None means the last of the vocabulary."""
    start_token: int | None = None
    """The id of the token that the target begins with; None means the last but one of the vocabulary."""

    def __post_init__(self) -> None:
        if self.end_token is None:
            object.__setattr__(self, "end_token", self.vocabulary - 1)
        if self.start_token is None:
            object.__setattr__(self, "start_token", self.vocabulary - 2)
        for name in ("context", "width", "layers"):
            check_whole(name, getattr(self, name), least=1)
        check_whole("vocabulary", self.vocabulary, least=2)
        check_one_of("cell", self.cell, CELLS)
        check_one_of("attention", self.attention, ATTENTIONS)
        if self.bidirectional and self.width % 2:
            raise CutawayError(f"A width of {self.width} cannot be divided between two directions: choose an even one.")
        if not 0 <= self.dropout < 1:
            raise CutawayError(f"Dropout must lie between 0 and 1, not {self.dropout}.")
        check_tokens(self.vocabulary, self.start, self.end)

    @property
    def gates(self) -> int:
        """How many vectors of its own width a cell computes at each step."""
        return 3 if self.cell == "gru" else 4

    @property
    def end(self) -> int:
        """The id of the token that ends a text."""
        assert self.end_token is not None
        return self.end_token

    @property
    def start(self) -> int:
        """The id of the token that the target begins with: what makes this a model of two texts."""
        assert self.start_token is not None
        return self.start_token

    @property
    def between(self) -> tuple[int, ...]:
        """What stands between source and target."""
        return (self.start,)
