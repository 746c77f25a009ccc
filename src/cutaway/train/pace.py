"""How far a training has come and what is due next: counted in steps, or by the clock where there is a time to keep.

With `train.time` the learning rate follows the clock: in each step it is reckoned anew how many steps there will have
been in the end, and the schedule is that of so many steps. What comes after the last step (measuring, writing) has its
time set aside, by what such work has taken so far. So a busy machine makes fewer steps, and is not late.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cutaway.train.recipe import Recipe, seconds

Clock = Callable[[], float]
"""Seconds since this training was asked for, or asked to go on."""

OFTEN = {"evaluate": 20, "sample": 10}
"""How many times in all, by the clock."""
SAVE_AFTER = 120.0
"""Seconds between checkpoints, by the clock."""
LOOKING = 0.25
"""The share of the time that measuring, samples and checkpoints may take, by the clock."""
SPARE = 0.03
"""The share of the time that nothing is planned for."""
WHOLE = 0.05
"""All held-out data is measured in the end if that takes no more than this share of the time."""
FORWARD = 0.5
"""Measuring a batch against learning from it, until it was measured: a third of the work, and some more."""
PER_BYTE = 1e-8
"""Seconds to write a byte of a checkpoint, until one was written."""


class Pace:
    """The pace of a training. `clock` must tell all its processes the same where there is a time to keep."""

    def __init__(
        self, recipe: Recipe, clock: Clock, size: int = 0, batches: int = 0, step: int = 0, progress: float = 0.0,
        spent: float = 0.0,
    ):  # fmt: skip
        """`size`: a checkpoint's, in bytes; `batches`: of all held-out data; `spent`: seconds before it was resumed."""
        settings = recipe.train
        self.clock, self.spent, self.most, self.batches = clock, spent, settings.steps, batches
        self.asked = seconds(settings.time) if settings.time else math.inf
        self.limit = (1 - SPARE) * self.asked - spent
        self.few = min(batches, settings.evaluate_batches)
        self.every = {
            what: getattr(settings, f"{what}_every")
            if recipe.decided(f"train.{what}_every") or not settings.time
            else None
            for what in ("evaluate", "sample", "checkpoint")
        }
        self.step = self.first = step
        self.progress = max(progress if settings.time else 0.0, step / self.most)
        """From 0 to 1: how much of the steps, or of the time for them, is gone."""
        self.expected: float = self.most
        """How many steps there will have been in the end; by the clock not a whole number, so that nothing jumps."""
        self.begun = self.now = self.saved = clock()
        self.seen = {what: int(self.progress * times) for what, times in OFTEN.items()}
        self.steps_took: deque[float] = deque(maxlen=8)
        self.took = {
            "evaluate": FORWARD * self.few, "sample": 0.0,  # in steps of the time: a busy machine is slow in both
            "checkpoint": size * PER_BYTE, "result": size * PER_BYTE / 3,  # in seconds
        }  # fmt: skip
        self.looking = self.looking_lately = 0.0

    @property
    def by_clock(self) -> bool:
        return self.asked < math.inf

    @property
    def time(self) -> float:
        """Seconds of training, those before it went on included."""
        return self.spent + self.now

    @property
    def steps(self) -> int:
        """How many steps there will have been in the end, to tell."""
        return round(self.expected)

    def advance(self, step: int) -> None:
        """Call this in each step, before the weights change: the schedule is then that of `expected` steps."""
        before, self.now, self.step = self.now, self.clock(), step
        took = self.now - before
        self.steps_took.append(took - self.looking_lately)
        self.looking_lately = 0.0
        if self.by_clock:
            left = max(0.0, self.limit - self.finale() - self.now)
            self.progress += (1 - self.progress) * (took / (took + left) if took + left else 1)
        self.progress = min(1.0, max(self.progress, step / self.most))
        if self.by_clock:
            self.expected = min(self.most, step / self.progress)

    def over(self) -> bool:
        """Whether there is no step left to take. A training takes one at least."""
        if self.by_clock and self.step and self.progress < 1:
            late = self.clock() + max(self.steps_took, default=0.0) > self.limit - self.finale()
            self.progress = 1.0 if late else self.progress
        if self.progress >= 1:
            self.expected = self.step
        return self.progress >= 1

    def due(self, what: str) -> bool:
        """Whether after this step it is time to 'evaluate', to 'sample' or for a 'checkpoint'."""
        every = self.every[what]
        if every is not None:
            return every > 0 and self.step % every == 0
        now, cost = self.clock(), self.cost(what)
        if what in OFTEN and int(self.progress * OFTEN[what]) <= self.seen[what]:
            return False
        if what == "checkpoint" and now - self.saved < SAVE_AFTER:
            return False
        return now + cost + self.finale() <= self.limit and self.looking + cost <= LOOKING * (now - self.begun)

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Around such work: what it takes is remembered."""
        begun = self.clock()
        yield
        ended = self.clock()
        self.took[what] = (ended - begun) / (self.usual_step or 1.0 if what in OFTEN else 1.0)
        self.looking += ended - begun
        self.looking_lately += ended - begun
        if what in OFTEN:
            self.seen[what] = int(self.progress * OFTEN[what])
        elif what == "checkpoint":
            self.saved = ended

    def cost(self, what: str) -> float:
        """About how many seconds such work takes."""
        if what == "whole":
            return self.cost("evaluate") * self.batches / max(1, self.few)
        return self.took[what] * (self.usual_step if what in OFTEN else 1)

    @property
    def usual_step(self) -> float:
        """Seconds of a step, of late."""
        return sum(self.steps_took) / len(self.steps_took) if self.steps_took else 0.0

    def affords_whole(self) -> bool:
        """Whether all held-out data can be measured in the end."""
        return self.cost("whole") <= WHOLE * self.asked

    def finale(self) -> float:
        """What comes after the last step, in seconds: measuring, the last checkpoint and the model's folder."""
        measuring = self.cost("whole" if self.affords_whole() else "evaluate")
        return measuring + self.cost("checkpoint") + self.cost("result")

    def left(self) -> float:
        """About how many seconds it will take from here, all included."""
        each = (self.now - self.begun) / max(1, self.step - self.first)
        whole = (self.most - self.step) * each + self.finale()
        return max(0.0, min(whole, self.limit - self.now))
