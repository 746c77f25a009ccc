"""How likely a text is: the log-probability of every token, and what might have stood in its place."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from cutaway.decoding.prediction import Prediction
from cutaway.errors import CutawayError
from cutaway.models.architecture import context_of, start_of
from cutaway.runtime.torch_texts import halves, read_texts

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel

POSITIONS_AT_ONCE = 64
"""The logits of a long text are never all there at once."""


@dataclass(frozen=True)
class ScoredToken:
    """A token of a text, and how likely it was where it stands."""

    id: int
    text: str
    logprob: float
    """The model's log-probability of it, after all that stands before it."""
    rank: int
    """1 if no token was likelier."""
    alternatives: tuple[Prediction, ...]
    """The likeliest tokens in its place, likeliest first; it may be among them."""


@dataclass(frozen=True)
class Score:
    """A text as the model finds it, token by token."""

    tokens: tuple[ScoredToken, ...]

    @property
    def logprobs(self) -> list[float]:
        """The log-probability of each token."""
        return [token.logprob for token in self.tokens]

    @property
    def logprob(self) -> float:
        """The log-probability of the whole text: the sum."""
        return math.fsum(self.logprobs)

    @property
    def perplexity(self) -> float:
        """e to the mean of what each token took, in nats; 1 for an empty text."""
        return math.exp(-self.logprob / max(1, len(self.tokens)))


def score(lm: LanguageModel, texts: list[list[int]], k: int) -> list[Score]:
    """Score every text after the end token, with the k likeliest at each place."""
    context, start = context_of(lm.config), start_of(lm.config)
    if start is not None:
        return score_targets(lm, texts, start, k)
    for ids in texts:
        if len(ids) > context:
            raise CutawayError(
                f"The text is {len(ids):,} tokens long and {lm.name} has a context of {context:,}. Shorten "
                "it, or let `cutaway evaluate` slide a window over it."
            )
    with torch.inference_mode():
        read = read_texts(lm.model, [[lm.config.end, *ids[:-1]] for ids in texts])
        return [Score(tuple(scored(lm, ids, vectors, k))) for ids, vectors in zip(texts, read, strict=True)]


def score_targets(lm: LanguageModel, texts: list[list[int]], start: int, k: int) -> list[Score]:
    """Of texts `source <start> target`, score the targets."""
    begins = [ids.index(start) if start in ids else len(ids) - 1 for ids in texts]  # without one, reading complains
    with torch.inference_mode():
        read = read_texts(lm.model, texts)
        return [
            Score(tuple(scored(lm, ids[at + 1 :], vectors[at:-1], k)))
            for ids, at, vectors in zip(texts, begins, read, strict=True)
        ]


def scored(lm: LanguageModel, ids: list[int], vectors: torch.Tensor, k: int) -> list[ScoredToken]:
    """The tokens of one text, scored by the vectors [tokens, width] of what stands before each."""
    found = []
    _, score = halves(lm.model)
    for first in range(0, len(ids), POSITIONS_AT_ONCE):
        part = ids[first : first + POSITIONS_AT_ONCE]
        logprobs = score(vectors[first : first + len(part)]).float().log_softmax(dim=-1)
        own = logprobs.gather(1, torch.tensor(part, device=logprobs.device)[:, None])  # [token, 1]
        ranks = (logprobs[:, : len(lm.tokenizer)] > own).sum(dim=-1) + 1
        best = logprobs[:, : len(lm.tokenizer)].topk(min(k, len(lm.tokenizer)), dim=-1)
        rows = zip(
            part, own[:, 0].tolist(), ranks.tolist(), best.indices.tolist(), best.values.exp().tolist(), strict=True
        )
        for token, logprob, rank, others, chances in rows:
            alternatives = (
                Prediction(other, lm.text_of(other), chance) for other, chance in zip(others, chances, strict=True)
            )
            found.append(ScoredToken(token, lm.text_of(token), logprob, rank, tuple(alternatives)))
    return found
