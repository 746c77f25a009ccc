"""Texts read side by side by the engine: each has its own memory, so that rows come, go and fork without copies."""

from __future__ import annotations

import time

import numpy as np

from cutaway.decoding.runtime import Scores, distinct
from cutaway.runtime.native.engine import Engine, Text
from cutaway.runtime.native.prefixes import Prefixes
from cutaway.runtime.native.speculation import Drafter, FirstOf, LookUp, SmallModel, Usual

ROWS_TO_GUESS = 2
"""With more texts at once the arithmetic, not the reading of weights, takes the time: nothing is guessed."""


class Row:
    """One text: its tokens, what the engine keeps of it, and the scores after guesses that may turn out right."""

    def __init__(self, text: Text, ids: list[int], drafter: Drafter | None):
        self.text, self.ids, self.drafter = text, ids, drafter
        self.ahead: list[tuple[int, Scores]] = []  # tokens read already, and the scores after each
        self.guessed = 0
        self.aside = False
        """Whether it will join again."""

    def fork(self) -> Row:
        other = Row(self.text.fork(), list(self.ids), new_drafter(self.text.engine))
        other.ahead, other.guessed = list(self.ahead), self.guessed
        return other

    def take(self, token: int) -> Scores | None:
        """The scores after this token, if it was guessed; if not, the guess is forgotten."""
        self.ids.append(token)
        if self.ahead and self.ahead[0][0] == token:
            scores = self.ahead.pop(0)[1]
            if not self.ahead:
                self.learn(self.guessed)
            return scores
        if self.ahead:
            self.learn(self.guessed - len(self.ahead))
            self.ahead = []
        if len(self.text) >= len(self.ids):
            self.text.trim(len(self.ids) - 1)
        return None

    def learn(self, right: int) -> None:
        if self.drafter:
            self.drafter.learn(right, self.guessed)

    def guess(self) -> list[int]:
        """Tokens to be read along with the last one."""
        room = self.text.engine.config.context - len(self.ids)
        return self.drafter.draft(self.ids, room) if self.drafter and room > 0 else []


def new_drafter(engine: Engine) -> Drafter | None:
    if engine.draft is not None:
        return SmallModel(engine.draft)
    usual = [Usual(engine.ngrams, engine.cost)] if engine.ngrams is not None else []
    return FirstOf([LookUp(), *usual]) if engine.look_up else None


class NativeBatch:
    """See `cutaway.decoding.runtime.Batch`."""

    def __init__(self, engine: Engine, prefixes: Prefixes | None = None):
        self.engine, self.prefixes = engine, prefixes
        self.rows: list[Row] = []

    def add(self, windows: list[list[int]]) -> Scores:
        different, rows = distinct(windows)
        new = [Row(self.engine.text(), ids, new_drafter(self.engine)) for ids in different]
        scores = self.engine.read([row.text for row in new], different)
        self.rows += new if len(different) == len(windows) else forked(new, rows)
        return scores if len(different) == len(windows) else scores[rows]

    def step(self, tokens: list[int]) -> Scores:
        found = [row.take(token) for row, token in zip(self.rows, tokens, strict=True)]
        reading = [row for row, scores in zip(self.rows, found, strict=True) if scores is None]
        if reading:
            may_guess = len(self.rows) <= ROWS_TO_GUESS
            guesses = [row.guess() if may_guess else [] for row in reading]
            new = [[row.ids[-1], *guess] for row, guess in zip(reading, guesses, strict=True)]
            begun = time.perf_counter()
            scores = self.engine.read([row.text for row in reading], new, [len(ids) for ids in new])
            if len(reading) == 1 and self.engine.ngrams is not None:  # who else asks what it costs?
                self.engine.cost.took(len(new[0]), time.perf_counter() - begun)
            if len(reading) == len(self.rows) == len(scores):
                return scores
            parts = iter(np.split(scores, np.cumsum([len(ids) for ids in new[:-1]])))
            for number, row in enumerate(self.rows):
                if found[number] is None:
                    first, *rest = next(parts)
                    found[number] = first
                    guess = guesses[reading.index(row)]
                    row.ahead, row.guessed = list(zip(guess, rest, strict=True)), len(guess)
        ready = [scores for scores in found if scores is not None]
        return ready[0][None] if len(ready) == 1 else np.stack(ready)  # one row is not worth a copy

    def keep(self, rows: list[int]) -> None:
        if self.prefixes is not None:
            staying = set(rows)
            for number, row in enumerate(self.rows):
                if number not in staying and not row.aside:
                    self.prefixes.add(row.ids[: len(row.text)], row.text)
        self.rows = forked(self.rows, rows)

    def begin(self, window: list[int], whole: bool = False) -> Row:
        known = None if whole or self.prefixes is None else self.prefixes.find(window)
        return Row(known or self.engine.text(), list(window), new_drafter(self.engine))

    def done(self, row: Row) -> int:
        return len(row.text)

    def read(self, rows: list[Row], counts: list[int], every: list[bool]) -> list[Scores]:
        new = [row.ids[len(row.text) :][:count] for row, count in zip(rows, counts, strict=True)]
        # Scores are wanted after the last token of a text, and of those whose every token is scored.
        ends = [len(row.text) + len(ids) == len(row.ids) for row, ids in zip(rows, new, strict=True)]
        wanted = [len(ids) if all_ else int(end) for ids, all_, end in zip(new, every, ends, strict=True)]
        scores = self.engine.read([row.text for row in rows], new, wanted)
        for row, end in zip(rows, ends, strict=True):
            if end and self.prefixes is not None:
                self.prefixes.add(row.ids, row.text.fork())
        return np.split(scores, np.cumsum(wanted[:-1]))

    def join(self, rows: list[Row], copies: list[int]) -> None:
        for row in rows:
            row.aside = False
        self.rows += forked(rows, [number for number, count in enumerate(copies) for _ in range(count)])

    def hold(self, row: int) -> Row:
        self.rows[row].aside = True
        return self.rows[row]


def forked(rows: list[Row], wanted: list[int]) -> list[Row]:
    """The rows of these numbers; one that is named twice goes on the first time, and forks the other times."""
    first = {row: number for number, row in reversed(list(enumerate(wanted)))}
    return [rows[row] if first[row] == number else rows[row].fork() for number, row in enumerate(wanted)]
