"""Many texts written at once, each by its own settings; they join and leave at every step.

What a text becomes depends only on its prompt, its seed and its settings, never on who else is written beside it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from cutaway.decoding.runtime import Runtime, Scores
from cutaway.decoding.sampling import Array, adjust, choose, log_total
from cutaway.decoding.sequence import Sequence
from cutaway.errors import CutawayError

ROWS_AT_ONCE = 32
"""How many texts are written side by side; more wait until one has ended."""


@dataclass(frozen=True)
class Chosen:
    """One token chosen, for whoever watches."""

    sequence: Sequence
    logits: Array
    """The model's own scores. [vocabulary]"""
    adjusted: Array
    """After bias, penalties and logits processors, and without entries that are no tokens. [token]"""
    uniform: float
    """The random number in [0, 1) that decided, where the likeliest is not simply taken."""
    token: int


Observer = Callable[[Chosen], object]
"""Is told of every token chosen, before the text has it."""


class Scheduler:
    """`add` texts, and `step` until they have ended: each step gives every text its next token."""

    def __init__(self, runtime: Runtime, observer: Observer | None = None, most: int = ROWS_AT_ONCE):
        self.limits, self.batch = runtime.config, runtime.open()
        self.observer, self.most = observer, most
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        """The rows of the batch."""

    @property
    def busy(self) -> bool:
        """Whether there is anything left to write."""
        return bool(self.running or self.waiting)

    def add(self, sequence: Sequence) -> None:
        """The text joins at the next step, or as soon as there is room."""
        length, context = len(sequence.prompt), self.limits.context
        if length > context and sequence.settings.overflow == "stop":
            raise CutawayError(
                f"The prompt is {length:,} tokens long and this model's context is {context:,}. "
                "Shorten it, or use overflow 'slide', which drops the oldest."
            )
        self.waiting.append(sequence)

    def cancel(self, sequence: Sequence) -> None:
        """Write no more of this text, and give back the memory that it took."""
        sequence.interrupt()
        self.waiting = deque(one for one in self.waiting if one is not sequence)
        self.keep([row for row, one in enumerate(self.running) if one is not sequence])

    def step(self) -> list[Sequence]:
        """One token more for every text, those that join included; gives the texts that changed."""
        self.keep([row for row, one in enumerate(self.running) if not one.reason])
        joining, ended = self.admit()
        try:
            scores: list[Scores] = []
            if self.running:
                scores.append(self.batch.step([one.window[-1] for one in self.running]))
            if joining:
                scores.append(self.batch.add([one.window for one in joining]))
                self.running = [*self.running, *joining]
            rows = (row for some in scores for row in some)  # views: nothing is copied
            for sequence, logits in zip(self.running, rows, strict=True):
                self.choose(sequence, logits)
        except BaseException:  # a reading broken off: what the batch holds is not what was written
            for sequence in (*self.running, *joining):
                sequence.interrupt()
            self.keep([])
            raise
        changed = [*ended, *self.running]
        slid = [one for one in self.running if not one.reason and one.make_room(self.limits)]
        self.waiting.extendleft(reversed(slid))
        self.keep([row for row, one in enumerate(self.running) if not one.reason and one not in slid])
        return changed

    def admit(self) -> tuple[list[Sequence], list[Sequence]]:
        """Those that join now, as many as there is room for, and those that end before their first token."""
        joining: list[Sequence] = []
        ended: list[Sequence] = []
        while self.waiting and len(self.running) + len(joining) < self.most:
            sequence = self.waiting.popleft()
            if not sequence.reason:
                sequence.make_room(self.limits)
            (ended if sequence.reason else joining).append(sequence)
        return joining, ended

    def choose(self, sequence: Sequence, logits: Array) -> None:
        """The next token of one text. What goes wrong in it ends this text, and no other.

        Some models score more entries than there are tokens: those are never chosen.
        """
        settings, uniform = sequence.settings, sequence.random.random()
        try:
            adjusted = adjust(logits, settings, sequence.prompt or [self.limits.end], sequence.ids)
            adjusted = adjusted[: len(sequence.codec)]
            token = choose(adjusted, settings, uniform)
        except Exception as error:
            sequence.error = error
            sequence.end("error", str(error))
            return
        if self.observer is not None:
            self.observer(Chosen(sequence, logits, adjusted, uniform, token))
        sequence.append(token, float(logits[token] - log_total(logits)[0]), self.limits.end)

    def keep(self, rows: list[int]) -> None:
        """Only these rows go on."""
        if len(rows) < len(self.running):
            self.running = [self.running[row] for row in rows]
            self.batch.keep(rows)
