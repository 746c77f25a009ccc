"""Word vectors learned from text: word2vec's skip-gram with negative sampling.

A word's vector is to tell which words stand near it: of a pair that was seen together, the product of the word's vector
and the neighbour's is made large, and that with some words drawn by chance small. The same texts, settings and seed
give the same vectors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cutaway.errors import CutawayError
from cutaway.text.spelled_words import PIECE
from cutaway.words.vectors import WordVectors

AT_ONCE = 4_096
"""So many pairs are learned from together."""
SHORT = 100_000
"""A text of fewer words needs them all."""
SMOOTH = 0.75
"""Words drawn by chance: as often as they occur, to this power."""


@dataclass(frozen=True)
class SkipGram:
    """How the vectors are learned."""

    width: int = 50
    """The length of a vector."""
    window: int = 5
    """The farthest a neighbour may be; each time it is drawn anew, from 1 on, so that near ones count for more."""
    negatives: int = 5
    """How many words are drawn by chance for each pair."""
    words: int = 10_000
    """The most frequent words, at most so many; the others are passed over."""
    least: int = 5
    """A word that occurs less often has no vector."""
    often: float = 1e-4
    """Words with a larger share of the text are left out now and then, by word2vec's rule; 0 or a short text: never."""
    epochs: int = 3
    rate: float = 0.05
    """The learning rate of AdaGrad, which makes the steps of often met words smaller."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("width", "window", "negatives", "words", "least", "epochs"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise CutawayError(f"{name} must be a whole number of 1 or more, not {value!r}.")
        if not 0 <= self.often < 1 or not 0 < self.rate < 10:
            raise CutawayError("often must be at least 0 and below 1, and rate above 0 and below 10.")


def learn_vectors(
    texts: Iterable[str], settings: SkipGram | None = None, progress: Callable[[int, int], None] | None = None
) -> WordVectors:
    """Vectors of the texts' words in lower case; `progress` hears how many pairs of how many are learned from."""
    settings = settings or SkipGram()
    pieces = [[word for word in PIECE.findall(text.lower()) if word[0].isalnum()] for text in texts]
    counts = Counter(word for words in pieces for word in words)
    known = [word for word in sorted(counts, key=lambda one: (-counts[one], one)) if counts[word] >= settings.least]
    known = known[: settings.words]
    if len(known) < 2:
        raise CutawayError(
            f"There are {len(known)} words that occur {settings.least} times or more: too few to learn vectors from. "
            "Give more text."
        )
    numbers = {word: number for number, word in enumerate(known)}
    coded = [np.array([numbers[word] for word in words if word in numbers], np.int32) for words in pieces]
    frequency = np.array([counts[word] for word in known], np.float64)
    table = trained(coded, frequency, settings, progress)
    return WordVectors(known, table, "skip-gram")


def trained(
    coded: list[NDArray[np.int32]],
    frequency: NDArray[np.float64],
    settings: SkipGram,
    progress: Callable[[int, int], None] | None,
) -> NDArray[np.float32]:
    rng = np.random.default_rng(settings.seed)
    count, width = len(frequency), settings.width
    centre = ((rng.random((count, width), np.float32) - 0.5) / width).astype(np.float32)
    around = np.zeros((count, width), np.float32)
    squares = np.full((2, count, 1), 1e-6, np.float32)
    chance = np.cumsum(frequency**SMOOTH)
    share = frequency / frequency.sum()
    keep = np.ones(count)
    if settings.often and frequency.sum() > SHORT:
        keep = np.minimum(1, np.sqrt(settings.often / share) + settings.often / share)
    for epoch in range(settings.epochs):
        ours, theirs = pairs(coded, keep, settings.window, rng)
        order = rng.permutation(len(ours))
        for at in range(0, len(order), AT_ONCE):
            chosen = order[at : at + AT_ONCE]
            wrong = np.searchsorted(chance, rng.random((len(chosen), settings.negatives)) * chance[-1], side="right")
            learn(centre, around, squares, ours[chosen], theirs[chosen], wrong, settings.rate)
            if progress:
                progress(epoch * len(order) + at + len(chosen), settings.epochs * len(order))
    return centre


def pairs(
    coded: list[NDArray[np.int32]], keep: NDArray[np.float64], window: int, rng: np.random.Generator
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Every word with its neighbours, each text thinned out and each word's window drawn anew."""
    ours, theirs = [], []
    for words in coded:
        left = words[rng.random(len(words)) < keep[words]]
        reach = rng.integers(1, window + 1, len(left))
        for distance in range(1, min(window, len(left) - 1) + 1):
            first, second = left[:-distance], left[distance:]
            ours += [first[reach[:-distance] >= distance], second[reach[distance:] >= distance]]
            theirs += [second[reach[:-distance] >= distance], first[reach[distance:] >= distance]]
    if not sum(map(len, ours)):
        raise CutawayError("No two words stand beside each other: too few to learn vectors from. Give more text.")
    return np.concatenate(ours), np.concatenate(theirs)


def learn(
    centre: NDArray[np.float32], around: NDArray[np.float32], squares: NDArray[np.float32],
    ours: NDArray[np.int32], theirs: NDArray[np.int32], wrong: NDArray[np.int64], rate: float,
) -> None:  # fmt: skip
    """One step of AdaGrad, a rate for each word: log sigmoid(u v) of the pairs, log sigmoid(-u v) of the others."""
    words = np.concatenate([theirs[:, None], wrong], axis=1)  # [pair, 1 + negatives]
    vectors, others = centre[ours], around[words]
    scores = np.einsum("pw,pnw->pn", vectors, others)
    error = 1 / (1 + np.exp(-np.clip(scores, -30, 30)))
    error[:, 0] -= 1  # [pair, 1 + negatives]: what is said less what is so
    step(centre, squares[0], ours, np.einsum("pn,pnw->pw", error, others), rate)
    step(around, squares[1], words.ravel(), (error[..., None] * vectors[:, None]).reshape(-1, vectors.shape[1]), rate)


def step(
    table: NDArray[np.float32], squares: NDArray[np.float32], rows: NDArray[np.integer], gradient: NDArray[np.float32],
    rate: float,
) -> None:  # fmt: skip
    """Add up what falls on the same row, then go so far that often moved rows move less."""
    order = np.argsort(rows, kind="stable")
    present, begins = np.unique(rows[order], return_index=True)
    total = np.add.reduceat(gradient[order], begins, axis=0)
    squares[present] += (total**2).mean(axis=1, keepdims=True)
    table[present] -= rate * total / np.sqrt(squares[present])
