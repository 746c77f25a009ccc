"""How one vector is made for a text, of those of its tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Sentence:
    """What is made of a text's vectors. The defaults are those of a plain encoder: their mean."""

    pooling: str = "mean"
    """mean (over all tokens, [CLS] and [SEP] among them), first ([CLS] alone) or max (number by number)."""
    normalized: bool = False
    """Whether the vector's length is made 1."""
    limit: int | None = None
    """How many tokens of a text are read at most; None: as many as the model has positions."""


def pooled(hidden: Tensor, mask: Tensor, sentence: Sentence) -> Tensor:
    """The vectors of the tokens as one of the text: [row, token, width] -> [row, width]."""
    import torch
    import torch.nn.functional as F

    own = mask[..., None]  # [row, token, 1]
    if sentence.pooling == "first":
        vectors = hidden[:, 0]
    elif sentence.pooling == "max":
        vectors = hidden.masked_fill(~own, -torch.inf).amax(1)
    else:
        vectors = (hidden * own).sum(1) / own.sum(1)
    return F.normalize(vectors, dim=-1) if sentence.normalized else vectors
