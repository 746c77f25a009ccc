"""The shape of a Transformer. The defaults are the paper's base model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cutaway.errors import CutawayError

NORMS = ("post", "pre")
POSITIONS = ("interleaved", "halves")
ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu")


@dataclass(frozen=True)
class Shape:
    """Everything that decides the shapes and the arithmetic of a model."""

    kind: ClassVar[str] = "transformer"

    vocabulary: int = 37_000
    """How many tokens there are; source and target share them."""
    context: int = 512
    """How many tokens a source may have, and how many a target."""
    width: int = 512
    """The length of the vector each token is carried in."""
    layers: int = 6
    """How many blocks the encoder stacks."""
    decoder_layers: int = 0
    """How many blocks the decoder stacks; 0 means as many as the encoder."""
    heads: int = 8
    """How many attention heads there are in each attention; the width is divided between them."""
    mlp_width: int = 0
    """The length of the feed-forward network's hidden layer; 0 means four times the width."""
    activation: str = "relu"
    norm: str = "post"
    """Where each layer norm stands: after the sum, as in the paper ("post"), or before the layer ("pre")."""
    final_norm: bool | None = None
    """Whether a norm follows each stack; None means with pre-norm only."""
    positions: str = "interleaved"
    """How the sinusoids of a position are laid out: sine and cosine in turn, as the paper has it, or all sines in one
    half and all cosines in the other ("halves"), as in the authors' code and in Marian."""
    scaled: bool = True
    """Whether embeddings are multiplied by the root of the width before positions are added."""
    output_bias: bool = False
    """Whether a number for each token is added to its score (Marian)."""
    norm_epsilon: float = 1e-5
    dropout: float = 0.0
    """The share of values dropped while training; never used otherwise."""
    end_token: int | None = None
    """The id of the token that ends a text; None means the last of the vocabulary."""
    start_token: int | None = None
    """The id of the token that the target begins with; None means the last but one of the vocabulary."""
    source_end: bool = False
    """Whether a source ends with the end token, too (Marian)."""

    def __post_init__(self) -> None:
        if not self.mlp_width:
            object.__setattr__(self, "mlp_width", 4 * self.width)
        if not self.decoder_layers:
            object.__setattr__(self, "decoder_layers", self.layers)
        if self.final_norm is None:
            object.__setattr__(self, "final_norm", self.norm == "pre")
        if self.end_token is None:
            object.__setattr__(self, "end_token", self.vocabulary - 1)
        if self.start_token is None:
            object.__setattr__(self, "start_token", self.vocabulary - 2)
        for name in ("context", "width", "layers", "decoder_layers", "heads", "mlp_width"):
            check_whole(name, getattr(self, name), least=1)
        check_whole("vocabulary", self.vocabulary, least=2)
        if self.width % self.heads or self.width % 2:
            raise CutawayError(
                f"A width of {self.width} cannot be divided between {self.heads} heads, or into sines and cosines: "
                "choose an even width, and a number of heads that divides it."
            )
        check_one_of("activation", self.activation, ACTIVATIONS)
        check_one_of("norm", self.norm, NORMS)
        check_one_of("positions", self.positions, POSITIONS)
        if not 0 <= self.dropout < 1:
            raise CutawayError(f"Dropout must lie between 0 and 1, not {self.dropout}.")
        check_tokens(self.vocabulary, self.start, self.end)

    @property
    def head_width(self) -> int:
        return self.width // self.heads

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
        return (self.end, self.start) if self.source_end else (self.start,)


def check_whole(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise CutawayError(f"A model's {name} must be a whole number of {least} or more, not {value!r}.")


def check_one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise CutawayError(f"A model's {name} is one of {', '.join(known)}, not {value!r}.")


def check_tokens(vocabulary: int, start: int, end: int) -> None:
    """Refuse a start or an end that is no token, or that could not be told from the other."""
    for what, token in (("start", start), ("end", end)):
        if not 0 <= token < vocabulary:
            raise CutawayError(f"The {what} token {token} is not in a vocabulary of {vocabulary:,}.")
    if start == end:
        raise CutawayError(f"The token {start} cannot begin a target and end it, too.")
