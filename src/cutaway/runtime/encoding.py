"""What an encoder is asked: one vector for each of many texts, and the words that fit into a text's gaps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from cutaway.decoding.prediction import Prediction
from cutaway.errors import CutawayError
from cutaway.parts.sentence import Sentence, pooled

if TYPE_CHECKING:
    from cutaway.models.architecture import Encoder
    from cutaway.text.wordpiece import WordPiece

TOKENS_AT_ONCE = 1_024
"""How many tokens, padding among them, are read together: what they make then fits into a core's own cache."""
WASTE = 0.05
"""The share of a batch that may be padding: texts are sorted by length, so that it rarely is."""


@dataclass(frozen=True)
class Gap:
    """A `[MASK]` of a text, and what may stand there."""

    position: int
    """Which token of the text it is; the first, [CLS], is 0."""
    predictions: tuple[Prediction, ...]
    """The likeliest entries of the vocabulary, likeliest first."""


def batches(rows: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """The numbers of rows that are read together: of like length, and never much padding among them."""
    order = sorted(range(len(rows)), key=lambda number: len(rows[number]), reverse=True)
    batch: list[int] = []
    tokens = 0
    for number in order:
        longest = len(rows[batch[0]]) if batch else len(rows[number])
        filled, room = tokens + len(rows[number]), (len(batch) + 1) * longest
        if batch and (room > TOKENS_AT_ONCE or room - filled > WASTE * room):
            yield batch
            batch, tokens = [], 0
        batch.append(number)
        tokens += len(rows[number])
    if batch:
        yield batch


def encode(model: Encoder, rows: Sequence[Sequence[int]], sentence: Sentence, device: torch.device) -> Tensor:
    """One vector for each row of ids. [row, width]"""
    found: list[Tensor | None] = [None] * len(rows)
    for numbers in batches(rows):
        longest = len(rows[numbers[0]])
        ids = torch.tensor([[*rows[number], *[0] * (longest - len(rows[number]))] for number in numbers], device=device)
        lengths = torch.tensor([len(rows[number]) for number in numbers], device=device)
        mask = torch.arange(longest, device=device) < lengths[:, None]  # [row, token]
        read = model.read(ids, mask=None if bool(mask.all()) else mask).float()
        words = getattr(model, "heard", None)  # several ids may be one word
        vectors = pooled(read, mask if words is None else words(ids), sentence)
        for number, vector in zip(numbers, vectors, strict=True):
            found[number] = vector
    return torch.stack([one for one in found if one is not None])


def fitting(rows: Sequence[Sequence[int]], limit: int, cut: bool, name: str) -> list[list[int]]:
    """The rows as the model can read them: refused if one is too long, or with `cut` without what does not fit.

    The last token, [SEP], stays.
    """
    if not rows:
        raise CutawayError("There is no text to read: the list is empty. Give one text or more.")
    for number, row in enumerate(rows, 1):
        if not row:
            raise CutawayError(f"Text {number:,} has no tokens. Give at least one.")
        if len(row) > limit and not cut:
            which = f"Text {number:,} is" if len(rows) > 1 else "The text is"
            raise CutawayError(
                f"{which} {len(row):,} tokens long with [CLS] and [SEP], and {name} reads {limit:,}. Divide it, or let "
                "its end be cut off (--cut, cut=True)."
            )
    return [[*row[: limit - 1], row[-1]] if len(row) > limit else list(row) for row in rows]


def fill(
    model: Encoder, tokenizer: WordPiece, ids: Sequence[int], k: int, name: str, device: torch.device
) -> list[Gap]:
    """The k likeliest entries of the vocabulary for every [MASK] among the ids."""
    mask = tokenizer.special("mask")
    gaps = [at for at, one in enumerate(ids) if one == mask]
    if not gaps:
        raise CutawayError('There is no [MASK] in the text. Put one where a word is missing: "The sky is [MASK]."')
    if not getattr(model, "output", None):
        raise CutawayError(
            f"{name} has no head that scores words, so it cannot fill in [MASK]: it was made for something else. "
            "Its vectors are to be had with cutaway embed (lm.embed)."
        )
    hidden = model.read(torch.tensor([list(ids)], device=device))[0, gaps]  # [gap, width]
    chances = model.score(hidden).float().softmax(-1)[:, : len(tokenizer)]
    best = chances.topk(min(k, len(tokenizer)))
    return [
        Gap(at, tuple(Prediction(token, tokenizer.spelling(token), chance) for token, chance in zip(*row, strict=True)))
        for at, row in zip(gaps, zip(best.indices.tolist(), best.values.tolist(), strict=True), strict=True)
    ]
