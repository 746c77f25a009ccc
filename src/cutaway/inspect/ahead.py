"""What may come: the likeliest next tokens, after each of them the likeliest, and so on, as a tree with probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cutaway.decoding.sampling import likeliest, softmax
from cutaway.inspect.numbers import Token, ViewResult, token
from cutaway.models.architecture import context_of
from cutaway.runtime.torch_batch import torch_runtime

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel

WIDTHS = (4, 2, 1, 1)
"""How many tokens follow each one, the likeliest first."""


@dataclass(frozen=True)
class Way(ViewResult):
    """A token that may come, after those on the way to it."""

    token: Token
    parent: int | None
    """The place in the list of the one before it; None for the first."""
    probability: float
    """Of this token after those before it."""
    path: float
    """Of the whole way from the text to here: the product."""


def ahead(lm: LanguageModel, ids: Sequence[int], widths: Sequence[int] = WIDTHS) -> list[Way]:
    """The ways on from a text, level by level. The text is read once; each level is one step of a batch."""
    widths = widths[: max(0, context_of(lm.config) - len(ids) + 1)]  # the last one need not be read any more
    batch, vocabulary = torch_runtime(lm.model).open(), len(lm.tokenizer)
    found: list[Way] = []
    rows: list[int | None] = [None]
    scores = batch.add([list(ids) or [lm.config.end]])
    for depth, width in enumerate(widths):
        level: list[tuple[int, int]] = []  # the row it goes on from, and where it stands in the list
        for row, (parent, logits) in enumerate(zip(rows, scores, strict=True)):
            chances = softmax(logits)[:vocabulary]
            before = 1.0 if parent is None else found[parent].path
            for one in likeliest(chances, width).tolist():
                level.append((row, len(found)))
                chance = float(chances[one])
                found.append(Way(token(lm.tokenizer, one), parent, chance, before * chance))
        if depth + 1 < len(widths):
            batch.keep([row for row, _ in level])
            scores = batch.step([found[at].token.id for _, at in level])
            rows = [at for _, at in level]
    return found
