"""What can be found in the weights without reading any text: which tokens are alike, and how positions lie in a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from cutaway.errors import CutawayError
from cutaway.inspect.numbers import Line, Table, Token, ViewResult, token

if TYPE_CHECKING:
    from torch import Tensor

    from cutaway.language_model import LanguageModel

POINTS = 256
"""So many positions are told at most, evenly spaced."""


@dataclass(frozen=True)
class Neighbours(ViewResult):
    """The tokens whose rows of the token embedding point the same way as one token's, the nearest first."""

    of: Token
    tokens: tuple[Token, ...]
    cosine: Line


@dataclass(frozen=True)
class Waves(ViewResult):
    """The rows of the position embedding along the directions in which they differ most."""

    positions: list[int]
    lines: Table
    """[direction, position]"""
    share: Line
    """Of the variance that each direction has."""


def weight(lm: LanguageModel, name: str) -> Tensor:
    """One matrix of the model, or a sentence that says it has none."""
    found = dict(lm.model.named_parameters()).get(name)
    if found is None:
        raise CutawayError(f"The model {lm.name} has no matrix {name}.", "no_view", view="weights", model=lm.name, reads=name)
    return found.detach().float().cpu()


def neighbours(lm: LanguageModel, word: str, k: int = 8) -> Neighbours:
    """The nearest rows to that of a word's first token; the mean row, which all share, is taken off first."""
    ids = lm.ids(word)
    if not ids:
        raise CutawayError("Write a word to see its neighbours.", "no_text")
    rows = weight(lm, "token_embedding.weight")[: len(lm.tokenizer)]
    rows = torch.nn.functional.normalize(rows - rows.mean(0), dim=1)
    cosine = rows @ rows[ids[0]]
    cosine[ids[0]] = -2.0
    best = cosine.topk(min(k, len(cosine) - 1))
    named = tuple(token(lm.tokenizer, one) for one in best.indices.tolist())
    return Neighbours(token(lm.tokenizer, ids[0]), named, best.values.numpy())


def waves(lm: LanguageModel, count: int = 4) -> Waves:
    """The principal directions of the position embedding, and where each position lies along them."""
    rows = weight(lm, "position_embedding.weight").double()
    centred = rows - rows.mean(0)
    left, sizes, _ = torch.linalg.svd(centred, full_matrices=False)
    count = min(count, len(sizes))
    at = torch.linspace(0, len(rows) - 1, min(POINTS, len(rows))).round().long()
    lines = (left[:, :count] * sizes[:count]).T
    lines = lines * torch.where(lines[:, :1] < 0, -1.0, 1.0)  # a direction has no sign of its own
    share = sizes[:count].square() / sizes.square().sum()
    return Waves(at.tolist(), lines[:, at].float().numpy(), share.float().numpy())
