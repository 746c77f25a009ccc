"""What kind of head each is: by where it attends in repeated random tokens, where there is nothing to go by but their
order; and by whether it says again what it attends to, measured on random tokens and on names.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from cutaway.errors import CutawayError
from cutaway.inspect.numbers import Array, Table, ViewResult
from cutaway.inspect.view import has
from cutaway.models.architecture import places

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel

ROLES = ("induction", "previous", "duplicate")
COPIED, RAISED = 128, 5
NAMES = (
    "Lily", "Tom", "Ben", "Tim", "Mia", "Max", "Sam", "Anna", "Sara", "Jack", "Lucy", "Mary", "John", "Amy", "Bob",
    "Sue", "Emma", "Jane", "Leo", "Kate", "Peter", "Mark", "Paul", "David", "James", "Robert", "Michael", "William",
    "Alice", "Billy", "Daisy", "Ella", "Fred", "Jim", "Joe", "Rose", "Molly", "Spot", "Sally", "Benny",
)  # fmt: skip
OUTPUT = ("output_matrix", "final_norm.weight", "blocks.0.attention.projection.weight")
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
    copying: Measured | None
    """Of random tokens, the share that the head would say again: attending to such a token alone, it raises it among
    the five that it raises most. None where the model does not have what that asks for."""
    names: Measured | None
    """The same for names; None where fewer than two of them are single tokens."""
    copied: int
    """How many random tokens that is over."""
    named: int
    """And how many names."""
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
    words = generator.choice(len(lm.tokenizer), min(len(lm.tokenizer), COPIED), replace=False).tolist()
    found_names = names_in(lm)
    copies = [copying(lm, some) if len(some) > 1 else None for some in (words, found_names)]
    counts = [0 if one is None else len(some) for one, some in zip(copies, (words, found_names), strict=True)]
    return Roles(texts, tokens, seed, **measured, copying=copies[0], names=copies[1], copied=counts[0], named=counts[1])


def measure(each: Array) -> Measured:
    """The mean of one number from each text [text, layer, head], and its margin."""
    return Measured(each.mean(0), CONFIDENT * each.std(0, ddof=1) / math.sqrt(len(each)))


def names_in(lm: LanguageModel) -> list[int]:
    """Names that are one token each in this vocabulary, as in the middle of a sentence."""
    found = [lm.tokenizer.encode(f" {name}") for name in NAMES]
    return [ids[0] for ids in found if len(ids) == 1]


@torch.no_grad()
def copying(lm: LanguageModel, words: list[int]) -> Measured | None:
    """For each head the share of these tokens that it would say again, and its margin. [layer, head]

    A token is read after the end token. What a head finds there, attending to nothing else, goes straight to the
    output (`path.attribution`); the token is copied if it is among the five whose logits that raises most.
    """
    if "blocks.0.attention.values" not in places(lm.config) or not all(has(lm.model, one) for one in OUTPUT):
        return None
    traces = lm.traces([[lm.config.end, word] for word in words], keep="blocks.*.attention.values")
    matrix = lm.model.output_matrix.float() * lm.model.final_norm.weight.float()
    matrix = matrix - matrix.mean(-1, keepdim=True)  # [vocabulary, width]
    asked, heads = torch.tensor(words, device=matrix.device)[:, None], lm.config.heads
    each = torch.empty(len(words), lm.config.layers, heads)
    for layer in range(lm.config.layers):
        found = torch.stack([trace[f"blocks.{layer}.attention.values"][:, -1] for trace in traces]).float()
        block: Any = lm.model.blocks[layer]
        weight = block.attention.projection.weight.float().unflatten(-1, (heads, -1))  # [width, head, head width]
        for head in range(heads):
            best = (found[:, head] @ weight[:, head].T @ matrix.T).topk(RAISED).indices  # [word, RAISED]
            each[:, layer, head] = (best == asked).any(-1).float().cpu()
    return measure(each.numpy())
