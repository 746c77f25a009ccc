"""The shape of a model, and the shapes that have names."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from cutaway.errors import CutawayError, nearest

ACTIVATIONS = ("gelu_tanh", "gelu", "relu", "silu")
POSITIONS = ("absolute", "relative")


@dataclass(frozen=True)
class Config:
    """Everything that decides the shapes and the arithmetic of a model. The defaults are GPT-2 small."""

    kind: ClassVar[str] = "gpt2"
    """Which architecture it is a shape of (see models/architecture.py)."""

    vocabulary: int = 50_257
    """How many tokens there are: rows of the token embedding, columns of the logits."""
    context: int = 1_024
    """How many positions there are: the longest text the model can look at."""
    width: int = 768
    """The length of the vector each token is carried in (the residual stream)."""
    layers: int = 12
    """How many blocks are stacked."""
    heads: int = 12
    """How many attention heads each block has; the width is divided between them."""
    mlp_width: int = 0
    """The length of the MLP's hidden layer; 0 means four times the width."""
    activation: str = "gelu_tanh"
    """The MLP's non-linearity. GPT-2 was trained with the tanh form of GELU."""
    norm_epsilon: float = 1e-5
    """Added to the variance in every layer norm."""
    tied: bool = True
    """Whether the output uses the token embedding matrix again, as GPT-2 does."""
    scale_by_layer: bool = False
    """Whether scores in block i are also divided by i + 1 (Stanford's Mistral models do; GPT-2 does not)."""
    dropout: float = 0.0
    """The share of values dropped while training; never used otherwise."""
    positions: str = "absolute"
    """How a token knows where others stand: by a vector for each position, added at the entry, as in GPT-2; or
    "relative", as in Music Transformer: attention learns in every head what each distance back is worth."""
    end_token: int | None = None
    """The id of `<|endoftext|>`; None means the last id of the vocabulary."""

    def __post_init__(self) -> None:
        if not self.mlp_width:
            object.__setattr__(self, "mlp_width", 4 * self.width)
        if self.end_token is None:
            object.__setattr__(self, "end_token", self.vocabulary - 1)
        for name in ("vocabulary", "context", "width", "layers", "heads", "mlp_width"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise CutawayError(f"A model's {name} must be a whole number of 1 or more, not {value!r}.")
        if self.width % self.heads:
            raise CutawayError(
                f"A width of {self.width} cannot be divided between {self.heads} heads: "
                f"choose a number of heads that divides {self.width}."
            )
        if self.activation not in ACTIVATIONS:
            raise CutawayError(f"Unknown activation {self.activation!r}. Known: {', '.join(ACTIVATIONS)}.")
        if self.positions not in POSITIONS:
            raise CutawayError(f"A model's positions are {' or '.join(POSITIONS)}, not {self.positions!r}.")
        if not 0 <= self.dropout < 1:
            raise CutawayError(f"Dropout must lie between 0 and 1, not {self.dropout}.")
        if not 0 <= self.end < self.vocabulary:
            raise CutawayError(f"The end token {self.end_token} is not in a vocabulary of {self.vocabulary:,}.")

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    @property
    def relative(self) -> bool:
        """Whether attention goes by the distance between two tokens."""
        return self.positions == "relative"

    @property
    def end(self) -> int:
        """The id of the token that ends a text, and that begins one written from nothing."""
        assert self.end_token is not None
        return self.end_token

    def but(self, **changes: Any) -> Config:
        """The same shape with some fields changed; unknown names are refused."""
        known = [field.name for field in fields(self)]
        for name in changes:
            if name not in known:
                raise CutawayError(f"A model has no {name!r}.{nearest(name, known)}")
        if "width" in changes and "mlp_width" not in changes and self.mlp_width == 4 * self.width:
            changes["mlp_width"] = 0
        if "vocabulary" in changes and "end_token" not in changes:
            changes["end_token"] = None
        return replace(self, **changes)


SIZES: dict[str, Config] = {
    "gpt2": Config(width=768, layers=12, heads=12),
    "gpt2-medium": Config(width=1_024, layers=24, heads=16),
    "gpt2-large": Config(width=1_280, layers=36, heads=20),
    "gpt2-xl": Config(width=1_600, layers=48, heads=25),
}
"""The four sizes OpenAI published, by the names they have on the hub."""
