"""Choice and entailment without any training: a language model is asked which of several texts it finds likelier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from cutaway.errors import CutawayError
from cutaway.models.architecture import context_of
from cutaway.runtime.torch_texts import halves

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel

CONNECTIVES = {"follows": " So,", "contradicts": " But"}
"""What stands between a premise and a hypothesis that follows from it, or that speaks against it."""


@dataclass(frozen=True)
class Weighed:
    """Ways to go on, each with the tokens that the model read and its probability among the others."""

    labels: tuple[str, ...]
    logprobs: tuple[float, ...]
    """The log-probability of each way, all its tokens together."""
    prompts: tuple[tuple[int, ...], ...]
    answers: tuple[tuple[int, ...], ...]

    @property
    def probabilities(self) -> list[float]:
        return torch.tensor(self.logprobs, dtype=torch.float64).softmax(-1).tolist()

    @property
    def best(self) -> int:
        return max(range(len(self.logprobs)), key=lambda i: self.logprobs[i])


def choice(lm: LanguageModel, context: str, choices: Sequence[str]) -> Weighed:
    """Which of these continuations of a text is likeliest."""
    context = context.rstrip()
    return weigh(lm, [str(i) for i in range(len(choices))], [(context, f" {one.strip()}") for one in choices])


def entailment(lm: LanguageModel, premise: str, hypothesis: str) -> Weighed:
    """Whether a hypothesis is likelier after "So," or after "But": does it follow, or speak against the premise?"""
    premise, hypothesis = premise.rstrip(), hypothesis.strip()
    first = hypothesis.split(maxsplit=1)[0] if hypothesis else ""
    if first not in premise.split():  # a name stays as it is; other words are small inside a sentence
        hypothesis = hypothesis[:1].lower() + hypothesis[1:]
    return weigh(lm, list(CONNECTIVES), [(premise + word, f" {hypothesis}") for word in CONNECTIVES.values()])


@torch.no_grad()
def weigh(lm: LanguageModel, labels: Sequence[str], ways: Sequence[tuple[str, str]]) -> Weighed:
    """The log-probability of the second text of each pair after the first."""
    cut = [(tuple(lm.ids(before)) or (lm.config.end,), tuple(lm.ids(after))) for before, after in ways]
    for before, after in cut:
        if len(before) + len(after) > context_of(lm.config):
            raise CutawayError(
                f"The texts are {len(before) + len(after):,} tokens long and {lm.name} has a context of "
                f"{lm.config.context:,}. Shorten them."
            )
    found = []
    read, score = halves(lm.model)
    for before, after in cut:
        hidden = read(torch.tensor([[*before, *after]], device=lm.device))
        scores = score(hidden[:, len(before) - 1 : -1]).float().log_softmax(-1)[0]  # [token, vocabulary]
        found.append(float(scores.gather(1, torch.tensor(after, device=scores.device)[:, None]).sum()))
    return Weighed(tuple(labels), tuple(found), tuple(one for one, _ in cut), tuple(one for _, one in cut))
