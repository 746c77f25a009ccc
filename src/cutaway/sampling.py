"""From logits to the next token: pure functions, each a step, and the order they are taken in.

    logits -> bias -> penalties for what was said -> temperature -> top-k -> top-p -> min-p -> probabilities -> a choice

The steps mean what they mean in Hugging Face's transformers; a test compares them one by one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from cutaway.errors import CutawayError

NEVER = float("-inf")


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen. The defaults are the article's: among the forty likeliest, as the model says."""

    temperature: float = 1.0
    """Below 1 the likely becomes likelier; above 1 the list flattens. For the likeliest token always: top_k=1."""
    top_k: int | None = 40
    """Choose among this many; 1 is greedy, None is the whole vocabulary."""
    top_p: float | None = None
    """Choose among the fewest tokens that together have this probability."""
    min_p: float | None = None
    """Choose among tokens at least this share as likely as the likeliest."""
    repetition_penalty: float = 1.0
    """Above 1: every token already in the text, prompt included, becomes less likely by this factor of its logit."""
    presence_penalty: float = 0.0
    """Taken once from the logit of every token written so far."""
    frequency_penalty: float = 0.0
    """Taken from a token's logit as often as it has been written so far."""
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    """Added to the logits of these ids; -inf forbids one."""

    def __post_init__(self) -> None:
        if self.temperature == 0:
            raise CutawayError(
                "A temperature of 0 divides by zero. For the likeliest token every time, use top-k 1 (--greedy)."
            )
        require("temperature", self.temperature, self.temperature > 0 and math.isfinite(self.temperature), "above 0")
        require(
            "top-k", self.top_k, self.top_k is None or self.top_k >= 1, "1 or more, or none for the whole vocabulary"
        )
        require("top-p", self.top_p, self.top_p is None or 0 < self.top_p <= 1, "above 0 and at most 1")
        require("min-p", self.min_p, self.min_p is None or 0 <= self.min_p <= 1, "between 0 and 1")
        penalty = self.repetition_penalty
        require("repetition penalty", penalty, penalty > 0 and math.isfinite(penalty), "above 0 (1 changes nothing)")
        for name in ("presence_penalty", "frequency_penalty"):
            require(name.replace("_", " "), getattr(self, name), math.isfinite(getattr(self, name)), "a finite number")
        for token, bias in self.logit_bias.items():
            require(f"logit bias of token {token}", bias, bias < math.inf, "a number (or -inf, to forbid the token)")

    @property
    def greedy(self) -> bool:
        return self.top_k == 1


def require(name: str, value: object, holds: bool, rule: str) -> None:
    """Refuse a setting that breaks its rule, in one form of words for all of them."""
    if not holds:
        raise CutawayError(f"The {name} must be {rule}, not {value}.")


def adjust(logits: Tensor, how: Sampling, prompts: Sequence[list[int]], written: Sequence[list[int]]) -> Tensor:
    """The steps that look at ids: bias, then penalties for what stands in the prompt and the text. [row, vocabulary]"""
    if how.logit_bias:
        ids = torch.tensor(list(how.logit_bias), device=logits.device)
        if not 0 <= int(ids.min()) <= int(ids.max()) < logits.shape[-1]:
            raise CutawayError(f"A logit bias names a token that is not in the vocabulary of {logits.shape[-1]:,}.")
        bias = torch.tensor(list(how.logit_bias.values()), device=logits.device, dtype=logits.dtype)
        logits = logits.index_add(-1, ids, bias.expand(logits.shape[0], -1))
    if how.repetition_penalty != 1:
        logits = torch.stack(
            [
                penalize_repetition(row, [*prompt, *new], how.repetition_penalty)
                for row, prompt, new in zip(logits, prompts, written, strict=True)
            ]
        )
    if how.presence_penalty or how.frequency_penalty:
        logits = torch.stack(
            [
                penalize_written(row, new, how.presence_penalty, how.frequency_penalty)
                for row, new in zip(logits, written, strict=True)
            ]
        )
    return logits


def penalize_repetition(logits: Tensor, seen: list[int], penalty: float) -> Tensor:
    """Divide the positive and multiply the negative logits of tokens already seen. [vocabulary]"""
    ids = torch.tensor(sorted(set(seen)), dtype=torch.long, device=logits.device)
    found = logits[ids]
    return logits.index_copy(0, ids, torch.where(found < 0, found * penalty, found / penalty))


def penalize_written(logits: Tensor, written: list[int], presence: float, frequency: float) -> Tensor:
    """Take `presence` once and `frequency` each time from the logits of tokens written so far. [vocabulary]"""
    counts = Counter(written)
    ids = torch.tensor(list(counts), dtype=torch.long, device=logits.device)
    off = torch.tensor([presence + frequency * n for n in counts.values()], device=logits.device, dtype=logits.dtype)
    return logits.index_add(0, ids, -off)


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    """Only the k highest stay possible (and those level with the last of them)."""
    lowest_kept = logits.topk(min(k, logits.shape[-1]), dim=-1).values[..., -1:]
    return logits.masked_fill(logits < lowest_kept, NEVER)


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    """Only the likeliest stay, as many as it takes to reach the probability p; the likeliest one always does."""
    ordered, order = logits.sort(dim=-1)
    dropped = ordered.softmax(dim=-1).cumsum(dim=-1) <= 1 - p
    dropped[..., -1] = False
    return logits.masked_fill(dropped.scatter(-1, order, dropped), NEVER)


def keep_min_p(logits: Tensor, share: float) -> Tensor:
    """Only tokens at least `share` times as likely as the likeliest stay."""
    chances = logits.softmax(dim=-1)
    return logits.masked_fill(chances < share * chances.max(dim=-1, keepdim=True).values, NEVER)


def probabilities(logits: Tensor, how: Sampling) -> Tensor:
    """The distribution the next token is drawn from: temperature, top-k, top-p, min-p, softmax. [..., vocabulary]"""
    logits = logits.float() / how.temperature
    if how.top_k is not None:
        logits = keep_top_k(logits, how.top_k)
    if how.top_p is not None and how.top_p < 1:
        logits = keep_top_p(logits, how.top_p)
    if how.min_p:
        logits = keep_min_p(logits, how.min_p)
    return logits.softmax(dim=-1)


def draw(chances: Tensor, dice: Tensor) -> Tensor:
    """The token each die points at: dice [row], uniform in [0, 1), cut the line of probabilities [row, vocabulary]."""
    line = chances.double().cumsum(dim=-1)
    at = torch.searchsorted(line, dice[:, None].to(line) * line[:, -1:], right=True)[:, 0]
    return torch.where(at < chances.shape[-1], at, chances.argmax(dim=-1))


def choose(logits: Tensor, how: Sampling, dice: Tensor) -> Tensor:
    """One token for each row of logits [row, vocabulary]: the highest when greedy, else drawn."""
    return logits.argmax(dim=-1) if how.greedy else draw(probabilities(logits, how), dice)
