"""How each token was chosen: the scores, what temperature, top-k and top-p made of them, and where the die fell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from cutaway.decoding.generate import generate
from cutaway.decoding.sampling import keep_top_k, likeliest, probabilities, softmax, warm
from cutaway.decoding.scheduler import Chosen
from cutaway.decoding.sequence import Result
from cutaway.decoding.settings import Settings
from cutaway.errors import CutawayError
from cutaway.inspect.cache import CacheSteps, counted
from cutaway.inspect.generation import Step, Watched
from cutaway.inspect.numbers import Token, ViewResult, token
from cutaway.inspect.runs import Run, check, lend
from cutaway.models.gpt2.model import GPT
from cutaway.parts.cache import Cache
from cutaway.parts.trace import Trace

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel, Prompt

PIECES = 48
"""So many pieces of the line of probabilities are named, the largest; the rest lies between them."""


@dataclass(frozen=True)
class ChoiceCandidate(ViewResult):
    """One token on its way from score to chance."""

    id: int
    logit: float
    own: float
    """The model's own probability."""
    warm: float
    """The probability after temperature, before anything is cut."""
    chance: float
    """What it is drawn with."""
    cut: Literal["", "top_k", "top_p"]
    """What took it out: 'top_k', 'top_p', or nothing."""


@dataclass(frozen=True)
class Choice(ViewResult):
    """One token chosen."""

    chosen: int
    die: float | None
    """Uniform between 0 and 1; None where the likeliest is taken without one."""
    after_top_k: int
    possible: int
    """How many tokens top-k left, and how many top-p left of these."""
    candidates: tuple[ChoiceCandidate, ...]
    """The likeliest, and the chosen one; the likeliest first."""
    line: tuple[tuple[int, float, float], ...]
    """Pieces of the line of probabilities, in the order of the vocabulary: id, start, end. The die falls into one."""


@dataclass(frozen=True)
class Choices(ViewResult):
    """A text as it was drawn, token by token. A step whose choice was the end token is the last."""

    result: Result
    words: dict[int, Token]
    steps: tuple[Choice, ...]
    told = ("seed", "reason", "explanation", "text")
    hidden = ("result",)

    @property
    def seed(self) -> int | None:
        return self.result.seed

    @property
    def reason(self) -> str:
        return self.result.reason

    @property
    def explanation(self) -> str:
        return self.result.explanation

    @property
    def text(self) -> str:
        return self.result.text


@dataclass(frozen=True)
class Writing(ViewResult):
    """One text, written once, seen both ways."""

    choices: Choices
    cache: CacheSteps


class _Continued(Watched):
    """A model that need not read again what was carried through it before."""

    def __init__(self, model: GPT, known: Run | None):
        super().__init__(model, lambda start, read: None)
        self.known = None if known is None or known.changes else known

    def read(self, ids: Tensor, cache: Cache) -> Tensor:
        known = self.known
        if known is None or cache.length or ids.tolist() != [list(known.ids)]:
            return super().read(ids, cache)
        lend(known, len(known), cache)
        self.steps.append(Step(Trace(()), 0, len(known), 0, cache.nbytes))
        return self.model.score(known["final_norm"][-1:])


def choices(lm: LanguageModel, prompt: Prompt, max_tokens: int = 20, k: int = 10, **settings: Any) -> Choices:
    """Let the model write, and say of each token how it was chosen among the k likeliest."""
    return choices_and_cache(lm, prompt, max_tokens, k, **settings)[0]


@torch.no_grad()
def choices_and_cache(
    lm: LanguageModel, prompt: Prompt, max_tokens: int = 20, k: int = 10, known: Run | None = None, **settings: Any
) -> tuple[Choices, CacheSteps]:
    """Both views of one text that the model writes: how each token was chosen, and what was computed for it.

    `known` is a run over the prompt, if there is one: its keys and values are taken over.
    """
    wanted = lm.settings(settings, max_tokens)
    plain = Settings(
        max_tokens=max_tokens, temperature=wanted.temperature, top_k=wanted.top_k, top_p=wanted.top_p, seed=wanted.seed
    )
    if wanted != plain:
        raise CutawayError("A choice is shown for temperature, top-k, top-p and a seed. Leave the other settings out.")
    ids = lm.ids(prompt)
    check(lm, ids)
    runtime, steps = _Continued(lm.model, known), list[Choice]()
    [result] = generate(runtime, lm.tokenizer, [ids], wanted, lambda chosen: steps.append(_choice(chosen, k)))
    named = {one.id for step in steps for one in step.candidates} | {piece[0] for step in steps for piece in step.line}
    words = {number: token(lm.tokenizer, number) for number in sorted(named)}
    return Choices(result, words, tuple(steps)), counted(lm, ids, result, runtime.steps)


def _choice(chosen: Chosen, k: int) -> Choice:
    settings, own, logits = chosen.sequence.settings, softmax(chosen.logits), chosen.adjusted
    warmed, chance = softmax(warm(logits, settings.temperature)), probabilities(logits, settings)
    top_k = 1 if settings.greedy else settings.top_k
    left = np.ones(logits.shape, dtype=bool) if top_k is None else np.isfinite(keep_top_k(logits, top_k))
    shown = likeliest(logits, k).tolist()
    pieces = set(likeliest(chance, PIECES).tolist()) | {chosen.token}
    line = chance.cumsum(dtype=np.float64)
    line = line / line[-1]
    return Choice(
        chosen.token,
        None if settings.greedy else chosen.uniform,
        int(left.sum()),
        int((chance > 0).sum()),
        tuple(
            ChoiceCandidate(
                i, float(logits[i]), float(own[i]), float(warmed[i]), float(chance[i]),
                "" if chance[i] > 0 else "top_p" if left[i] else "top_k",
            )
            for i in (shown if chosen.token in shown else [*shown, chosen.token])
        ),
        tuple((i, float(line[i - 1]) if i else 0.0, float(line[i])) for i in sorted(pieces) if chance[i] > 0),
    )  # fmt: skip
