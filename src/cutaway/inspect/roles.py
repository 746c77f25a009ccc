"""What kind of head each is, measured on repeated random tokens: there is nothing in them to go by but their order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from cutaway.errors import CutawayError
from cutaway.inspect.numbers import Array, Table, ViewResult

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel

ROLES = ("induction", "previous", "duplicate")
CONFIDENT = 1.96
"""So many standard errors on either side hold the true mean in 95 of 100 cases."""


@dataclass(frozen=True)
class Measured(ViewResult):
    """One measure of every head: the mean over the queries of all texts, and how sure it is."""

    mean: Table
    """A weight, 0 to 1. [layer, head]"""
    margin: Table
    """The mean is within this of the true one with 95 % confidence; the texts are the sample. [layer, head]"""


@dataclass(frozen=True)
class Roles(ViewResult):
    """Each head's attention in texts of random tokens that are said twice over, in the second half."""

    texts: int
    tokens: int
    """How many random tokens a text has before it says them again."""
    seed: int
    induction: Measured
    """The weight on what followed this token the first time."""
    previous: Measured
    """The weight on the token just before."""
    duplicate: Measured
    """The weight on the same token, the first time."""
    told = ("queries",)

    @property
    def queries(self) -> int:
        """How many queries each mean is over."""
        return self.texts * self.tokens


def roles(lm: LanguageModel, tokens: int = 32, texts: int = 8, seed: int = 0) -> Roles:
    """Measure every head on so many texts of random tokens, each said twice over after the end token."""
    most = min((lm.config.context - 1) // 2, len(lm.tokenizer))
    if not 2 <= tokens <= most:
        raise CutawayError(f"The number of random tokens must be between 2 and {most:,} in this model, not {tokens}.")
    if texts < 2:
        raise CutawayError(f"The number of texts must be 2 or more, for a mean and its margin, not {texts}.")
    generator = np.random.default_rng(seed)
    second = torch.arange(tokens + 1, 2 * tokens + 1)  # the positions of the second half, which are the queries
    keys = {"induction": second - tokens + 1, "previous": second - 1, "duplicate": second - tokens}
    found: dict[str, list[Array]] = {role: [] for role in ROLES}
    for _ in range(texts):
        drawn = generator.choice(len(lm.tokenizer), tokens, replace=False).tolist()
        trace = lm.trace([lm.config.end, *drawn, *drawn], "blocks.*.attention.weights")
        weights = torch.stack(list(trace.kept.values())).float().cpu()  # [layer, head, query, key]
        for role in ROLES:
            found[role].append(weights[:, :, second, keys[role]].mean(-1).numpy())
    measured = {role: measure(np.stack(each)) for role, each in found.items()}
    return Roles(texts, tokens, seed, **measured)


def measure(each: Array) -> Measured:
    """The mean of one number from each text [text, layer, head], and its margin."""
    return Measured(each.mean(0), CONFIDENT * each.std(0, ddof=1) / math.sqrt(len(each)))
