"""The examples that The Illustrated GPT-2 is known by, computed on any model: its table of four words, "it" in the
second law, the loop of top-k 1, the batch of four.

Where a word is several tokens its row is that of its last token, and what is attended to in its column is added up.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from cutaway.inspect.numbers import Line, Table, Token, ViewResult, array, token
from cutaway.inspect.runs import Run, run

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel

ORDERS = " robot must obey orders"
SECOND_LAW = "A robot must obey the orders given it"
"""As far as the article looks: what comes after a token has no part in it."""
BEGUN = ("The", "The dog ran and ran and ran and", "Max and Lily and Max and Lily and", "no no no no no no no no")
"""Beginnings for the loop, each more of a temptation: the first that ends in one is shown."""
WRITTEN = 100
PHRASE = 4
"""So many tokens in a row are a phrase."""
ROUNDS = 3
"""What is written three times in a row, one right after the other, is a loop."""


@dataclass(frozen=True)
class FourWords(ViewResult):
    """The attention of one head among four words: without the mask, as if the future could be seen, and with it."""

    text: str
    layer: int
    head: int
    words: tuple[str, ...]
    tokens: tuple[int, ...]
    """How many tokens each word is."""
    scores: Table
    unmasked: Table
    masked: Table


@torch.no_grad()
def four_words(lm: LanguageModel, layer: int = 0, head: int = 0) -> FourWords:
    seen = run(lm, ORDERS)
    layer, head = seen.layer(layer), seen.head(head)
    groups = by_words(seen)
    scores = seen[f"blocks.{layer}.attention.scores"][head].float()
    weights = seen[f"blocks.{layer}.attention.weights"][head].float()
    ends = [group[-1] for group in groups]
    return FourWords(
        seen.text,
        layer,
        head,
        tuple(spoken(seen, group) for group in groups),
        tuple(len(group) for group in groups),
        array(scores[ends][:, ends]),
        array(added(scores.softmax(-1), groups)),
        array(added(weights, groups)),
    )


def by_words(seen: Run) -> list[list[int]]:
    """The positions of each word: one begins where a token begins with a space."""
    groups: list[list[int]] = []
    for at, one in enumerate(seen.tokens):
        if not groups or one.bytes[:1] == b" ":
            groups.append([])
        groups[-1].append(at)
    return groups


def spoken(seen: Run, group: list[int]) -> str:
    return seen.lm.shown([seen.ids[at] for at in group]).strip()


def added(table: Tensor, groups: list[list[int]]) -> Tensor:
    """The rows of each word's last token, with the columns of each word added up. [word, word]"""
    rows = table[[group[-1] for group in groups]]
    return torch.stack([rows[:, group].sum(1) for group in groups], 1)


@dataclass(frozen=True)
class Mixture(ViewResult):
    """What one token becomes in the head that attends most from it to another: so much of each token's value."""

    tokens: tuple[Token, ...]
    position: int
    toward: int
    """The position of the token that the head was chosen by."""
    layer: int
    head: int
    weights: Line
    values: Table
    """[token, column]: what each has to give"""
    mixed: Line


@torch.no_grad()
def mixture(lm: LanguageModel, text: str = SECOND_LAW, word: str = " it", toward: str = " robot") -> Mixture:
    seen = run(lm, text)
    at, goal = end_of(seen, word), end_of(seen, toward)
    best = (-1.0, 0, 0)
    for layer in range(lm.config.layers):
        weights = seen[f"blocks.{layer}.attention.weights"][:, at, goal]
        head = int(weights.argmax())
        best = max(best, (float(weights[head]), layer, -head))
    _, layer, head = best[0], best[1], -best[2]
    weights = seen[f"blocks.{layer}.attention.weights"][head, at, : at + 1].float()
    values = seen[f"blocks.{layer}.attention.values"][head, : at + 1].float()
    mixed = seen[f"blocks.{layer}.attention.heads"][head, at].float()
    return Mixture(
        seen.tokens[: at + 1], at, goal, layer, head, array(weights), array(values), array(mixed)
    )  # fmt: skip


def end_of(seen: Run, word: str) -> int:
    """The position of the last token of the first place where a word stands."""
    ends = list(accumulate(len(one.bytes) for one in seen.tokens))
    text = b"".join(one.bytes for one in seen.tokens)
    found = text.find(word.encode())
    until = found + len(word.encode()) if found >= 0 else 1
    return next(at for at, end in enumerate(ends) if end >= until)


@dataclass(frozen=True)
class Written(ViewResult):
    """A text that was written, and the loop it is in at its end."""

    tokens: tuple[Token, ...]
    """Without the prompt."""
    begins: int | None
    """The token where the first round of the loop begins; none without one."""
    period: int | None
    """So many tokens are repeated."""
    repeated: float
    """The share of its tokens with which a phrase ends that was written before, or stood in the prompt."""


@dataclass(frozen=True)
class Loop(ViewResult):
    """The same beginning continued with the likeliest token each time, and by drawing among the forty likeliest."""

    prompt: tuple[Token, ...]
    greedy: Written
    drawn: Written
    seed: int


def loop(lm: LanguageModel, count: int = WRITTEN, seed: int = 1) -> Loop:
    """Of the beginnings the first that runs in a circle; if none does, the first."""
    found = None
    for begun in BEGUN:
        ids = lm.ids(begun)
        room = min(count, lm.config.context - len(ids))
        greedy = lm.generate(ids, room, temperature=0).ids
        if stuck(greedy)[1] is not None or found is None:
            found = ids, room, greedy
        if stuck(greedy)[1] is not None:
            break
    assert found is not None
    ids, room, greedy = found
    drawn = lm.generate(ids, room, temperature=1, top_k=40, seed=seed).ids

    def told(written: list[int]) -> Written:
        shown = tuple(token(lm.tokenizer, one) for one in written)
        return Written(shown, *stuck(written), repeated(ids, written))

    return Loop(tuple(token(lm.tokenizer, one) for one in ids), told(greedy), told(drawn), seed)


def repeated(prompt: list[int], written: list[int]) -> float:
    """How much of a text ends a phrase that it has written before."""
    ids, known, again = [*prompt, *written], set(), 0
    for end in range(1, len(ids) + 1):
        phrase = tuple(ids[max(0, end - PHRASE) : end])
        again += end > len(prompt) and phrase in known
        known.add(phrase)
    return again / len(written) if written else 0.0


def stuck(ids: list[int]) -> tuple[int | None, int | None]:
    """Where a loop that lasts to the end begins, and how long one round is; the shortest round there is."""
    for period in range(1, len(ids) // ROUNDS + 1):
        begins = len(ids) - period
        while begins > 0 and ids[begins - 1] == ids[begins - 1 + period]:
            begins -= 1
        if len(ids) - begins >= ROUNDS * period:
            return begins, period
    return None, None


@dataclass(frozen=True)
class Example(ViewResult):
    """One of the examples a text holds for training: some words, the word that should follow, how likely it was."""

    words: tuple[str, ...]
    wanted: str | None
    """None: the end of the text."""
    probability: float
    loss: float


@dataclass(frozen=True)
class Batch(ViewResult):
    """Four examples from four words, answered in one forward pass; what training makes smaller is their mean loss."""

    examples: tuple[Example, ...]
    loss: float


@torch.no_grad()
def batch(lm: LanguageModel) -> Batch:
    seen = run(lm, ORDERS)
    groups = by_words(seen)
    chances = seen.logits().log_softmax(-1)
    words = [spoken(seen, group) for group in groups]
    found = []
    for n, group in enumerate(groups):
        following = groups[n + 1] if n + 1 < len(groups) else None
        ids = [seen.ids[at] for at in following] if following else [lm.config.end]
        logs = [float(chances[group[-1] + i, one]) for i, one in enumerate(ids)]
        wanted = words[n + 1] if following else None
        found.append(Example(tuple(words[: n + 1]), wanted, float(torch.tensor(sum(logs)).exp()), -sum(logs)))
    return Batch(tuple(found), sum(one.loss for one in found) / len(found))
