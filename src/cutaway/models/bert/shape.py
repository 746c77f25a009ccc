"""The shape of a BERT or DistilBERT, what stands on top of it, and the shapes that have names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from cutaway.errors import CutawayError

ACTIVATIONS = ("gelu", "gelu_tanh", "relu", "silu")
DIALECTS = ("bert", "distilbert")
HEADS = {
    "": "no head: a vector for each token",
    "words": "a score for each entry of the vocabulary, for words behind [MASK]",
    "pretraining": "the same, and whether the second sentence follows the first",
    "next": "whether the second sentence follows the first",
    "classes": "a score for each class of a text or of a pair of texts",
    "span": "a score for each token to be the first of the answer, and to be the last",
    "tags": "a score for each class of every token",
}
"""What may stand on top of the stack."""
POOLING = ("pretraining", "next", "classes")
"""Heads that read the pooled vector of the first token."""


@dataclass(frozen=True)
class Config:
    """Everything that decides the shapes and the arithmetic of a model. The defaults are BERT base, uncased."""

    kind: ClassVar[str] = "bert"
    """Which architecture it is a shape of (see models/architecture.py)."""

    vocabulary: int = 30_522
    """How many tokens there are: rows of the token embedding."""
    context: int = 512
    """How many positions there are: the longest text the model can read."""
    width: int = 768
    """The length of the vector each token is carried in."""
    layers: int = 12
    """How many blocks are stacked."""
    heads: int = 12
    """How many attention heads each block has; the width is divided between them."""
    mlp_width: int = 0
    """The length of the MLP's hidden layer; 0 means four times the width."""
    segments: int = 2
    """How many segments there are, each with a vector: first and second sentence. DistilBERT has none."""
    activation: str = "gelu"
    """The non-linearity of the MLP and of the masked-word head."""
    norm_epsilon: float = 1e-12
    """Added to the variance in every layer norm."""
    pooler: bool = False
    """Whether a layer makes one vector of the text, from that of its first token."""
    head: str = ""
    """What stands on top: one of `HEADS`."""
    labels: int = 2
    """How many classes the heads `classes` and `tags` know."""
    tied: bool = True
    """Whether the masked-word head uses the token embedding matrix again."""
    dialect: str = "bert"
    """Whose names the files have, and whose habits: bert or distilbert."""
    dropout: float = 0.1
    """The share of values dropped while training; never used otherwise."""
    end_token: int | None = None
    """The id of `[SEP]`, after which the second segment begins; None: not known, all is one segment."""

    def __post_init__(self) -> None:
        if not self.mlp_width:
            object.__setattr__(self, "mlp_width", 4 * self.width)
        if self.head in POOLING:
            object.__setattr__(self, "pooler", True)
        for name in ("vocabulary", "context", "width", "layers", "heads", "mlp_width", "labels"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise CutawayError(f"A model's {name} must be a whole number of 1 or more, not {value!r}.")
        if self.width % self.heads:
            raise CutawayError(
                f"A width of {self.width} cannot be divided between {self.heads} heads: "
                f"choose a number of heads that divides {self.width}."
            )
        for name, known in (("activation", ACTIVATIONS), ("dialect", DIALECTS), ("head", tuple(HEADS))):
            if getattr(self, name) not in known:
                raise CutawayError(f"Unknown {name} {getattr(self, name)!r}. Known: {', '.join(filter(None, known))}.")
        if not 0 <= self.dropout < 1:
            raise CutawayError(f"Dropout must lie between 0 and 1, not {self.dropout}.")

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    @property
    def scores_words(self) -> bool:
        """Whether there are scores over the vocabulary."""
        return self.head in ("words", "pretraining")

    @property
    def distilled(self) -> bool:
        return self.dialect == "distilbert"

    @property
    def end(self) -> int:
        """The id of `[SEP]`; the last one there is, as long as nobody knows."""
        return self.vocabulary - 1 if self.end_token is None else self.end_token

    def but(self, **changes: Any) -> Config:
        """The same shape with some fields changed."""
        if "width" in changes and "mlp_width" not in changes and self.mlp_width == 4 * self.width:
            changes["mlp_width"] = 0
        return replace(self, **changes)


SIZES: dict[str, Config] = {
    "bert-base": Config(),
    "bert-large": Config(width=1_024, layers=24, heads=16),
    "distilbert-base": Config(layers=6, segments=0, dialect="distilbert"),
    "minilm-l6": Config(width=384, layers=6),
}
"""Sizes that were published, by their names."""
