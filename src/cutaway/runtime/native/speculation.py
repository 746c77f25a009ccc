"""Guessing what comes next, so that several tokens can be read in one call. A guess changes the speed and nothing else:

the engine gives the same scores, to the last bit, whether tokens are read one by one or together, and a token is always
chosen from the scores of the model itself. A guess that turns out right has its scores ready; one that does not is
forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cutaway.runtime.native.engine import Engine
from cutaway.runtime.native.ngrams import NGrams
from cutaway.runtime.native.reading_cost import Cost

ORDER = 3
"""How many tokens must have been seen in this order before for what followed to be a guess."""
LONGEST, SHORT = 7, 3
"""Tokens in a guess: together with the one that is read anyway they fill the kernels' rows of four."""
PAUSE = 64
TRUST = 0.05
"""How quickly the n-grams' chances are taken for more or less than they say, as guesses turn out."""


class Drafter(Protocol):
    """Guesses for one text."""

    def draft(self, ids: list[int], most: int) -> list[int]:
        """Up to `most` tokens that may follow these; none if there is nothing to go by."""
        ...

    def learn(self, right: int, guessed: int) -> None:
        """So many of the last guess were right."""
        ...


class Pace:
    """How much to guess: more while guesses are right, and seldom where they are wrong."""

    def __init__(self) -> None:
        self.length, self.misses, self.wait = SHORT, 0, 0

    def next(self) -> int:
        """How many tokens to guess now."""
        self.wait = max(0, self.wait - 1)
        return 0 if self.wait else self.length

    def learn(self, right: int, guessed: int) -> None:
        if right:
            self.misses, self.length = 0, LONGEST if right == guessed >= SHORT else SHORT
        else:  # one token the next time: enough to see whether it is worth more
            self.misses, self.length = self.misses + 1, 1
            self.wait = min(PAUSE, 2**self.misses)


class Paced:
    """Guesses whose chances nobody knows: how often and how many depends on how the last ones turned out."""

    def __init__(self) -> None:
        self.pace = Pace()

    def draft(self, ids: list[int], most: int) -> list[int]:
        most = min(self.pace.next(), most)
        return self.follow(ids, most) if most > 0 else []

    def learn(self, right: int, guessed: int) -> None:
        self.pace.learn(right, guessed)

    def follow(self, ids: list[int], most: int) -> list[int]:
        raise NotImplementedError


class LookUp(Paced):
    """What followed the last few tokens when they stood in this text before."""

    def __init__(self) -> None:
        super().__init__()
        self.after: dict[tuple[int, ...], int] = {}
        self.known = 0

    def follow(self, ids: list[int], most: int) -> list[int]:
        for end in range(max(self.known, ORDER), len(ids)):  # the newest place counts, but not the end itself
            self.after[tuple(ids[end - ORDER : end])] = end
        self.known = max(self.known, len(ids))
        at = self.after.get(tuple(ids[-ORDER:]))
        return [] if at is None else ids[at : at + most]


class SmallModel(Paced):
    """The likeliest tokens according to a smaller model of the same vocabulary."""

    def __init__(self, engine: Engine):
        super().__init__()
        self.engine, self.text = engine, engine.text()
        self.ids: list[int] = []

    def follow(self, ids: list[int], most: int) -> list[int]:
        if len(ids) + most > self.engine.config.context:
            return []
        same = next((at for at, (a, b) in enumerate(zip(self.ids, ids, strict=False)) if a != b), None)
        same = min(len(self.ids), len(ids)) if same is None else same
        same = min(same, len(ids) - 1)  # something must be read to have scores
        self.text.trim(same)
        guess: list[int] = []
        new = ids[same:]
        for _ in range(most):
            guess.append(int(self.engine.read([self.text], [new])[0].argmax()))
            new = guess[-1:]
        self.ids = ids + guess[:-1]
        return guess


class Usual:
    """What usually follows, as long as the chance that it is right is more than what reading it costs."""

    def __init__(self, ngrams: NGrams, cost: Cost):
        self.ngrams, self.cost = ngrams, cost
        self.trust, self.expected = 1.0, 0.0

    def draft(self, ids: list[int], most: int) -> list[int]:
        guess: list[int] = []
        chance = self.trust
        last = ids[-ORDER:]
        for _ in range(min(most, SHORT)):
            token, likely = self.ngrams.guess(last)
            chance *= likely
            if chance <= self.cost.one_more:
                break
            if not guess:
                self.expected = likely
            guess.append(token)
            last = [*last[1 - ORDER :], token]
        return guess

    def learn(self, right: int, guessed: int) -> None:
        """Only of the first: whether it was right, beside how likely that was said to be."""
        self.trust = min(1.0, max(0.0, self.trust + TRUST * (bool(right) - self.trust * self.expected)))


class FirstOf:
    """The guess of the first that has one."""

    def __init__(self, drafters: Sequence[Drafter]):
        self.drafters = drafters
        self.answered = drafters[0]

    def draft(self, ids: list[int], most: int) -> list[int]:
        for one in self.drafters:
            if guess := one.draft(ids, most):
                self.answered = one
                return guess
        return []

    def learn(self, right: int, guessed: int) -> None:
        self.answered.learn(right, guessed)
