"""Many texts written at once, each by its own settings; they join and leave at every step.

What a text becomes depends only on its prompt, its seed and its settings, never on who else is written beside it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from cutaway.decoding.runtime import PiecewiseBatch, Runtime, Scores, continued
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


PromptObserver = Callable[[Sequence, int, Scores], object]
"""Is told of prompts whose every token is scored: from which place on, and the scores after each token read now."""


@dataclass
class Reading:
    """A prompt that is being read in pieces, and the texts that begin with it."""

    row: Any
    texts: list[Sequence]
    length: int


class Scheduler:
    """`add` texts, and `step` until they have ended: each step gives every text its next token.

    A server has more to say: prompts are read `piece` tokens at a step, so that nobody who writes waits for a long one,
    and after `turn` tokens a text that writes makes room for one that waits. Neither changes what any text becomes.
    """

    def __init__(
        self,
        runtime: Runtime,
        observer: Observer | None = None,
        most: int = ROWS_AT_ONCE,
        piece: int | None = None,
        turn: int | None = None,
        prompts: PromptObserver | None = None,
    ):
        self.limits, self.batch = runtime.config, runtime.open()
        self.observer, self.prompts, self.most = observer, prompts, most
        self.pieces = cast(PiecewiseBatch, self.batch) if piece and hasattr(self.batch, "begin") else None
        self.piece, self.turn = piece or 0, turn
        self.waiting: deque[Sequence] = deque()
        self.reading: list[Reading] = []
        self.aside: dict[Sequence, Any] = {}
        """Texts that wait for their next turn, and what the batch holds of them."""
        self.running: list[Sequence] = []
        """The rows of the batch."""
        self.groups: dict[Sequence, object] = {}
        self.since: dict[Sequence, int] = {}
        """How long each text was when its turn began."""

    @property
    def busy(self) -> bool:
        """Whether there is anything left to write."""
        return bool(self.running or self.waiting or self.reading)

    def add(self, sequence: Sequence, group: object = None) -> None:
        """The text joins at the next step, or as soon as there is room; the group with fewest at work goes first."""
        length, context = len(continued(self.limits, sequence.prompt)), self.limits.context
        if sequence.settings.overflow == "slide" and getattr(self.limits, "start", None) is not None:
            raise CutawayError("A window cannot slide over two texts: leave overflow at 'stop'.")
        if length > context and sequence.settings.overflow == "stop":
            raise CutawayError(
                f"The prompt is {length:,} tokens long and this model's context is {context:,}. "
                "Shorten it, or use overflow 'slide', which drops the oldest."
            )
        self.waiting.append(sequence)
        if group is not None:
            self.groups[sequence] = group

    def cancel(self, sequence: Sequence) -> None:
        """Write no more of this text, and give back the memory that it took."""
        sequence.interrupt()
        self.waiting = deque(one for one in self.waiting if one is not sequence)
        for reading in self.reading:
            reading.texts = [one for one in reading.texts if one is not sequence]
        self.reading = [reading for reading in self.reading if reading.texts]
        self.keep([row for row, one in enumerate(self.running) if one is not sequence])
        self.forget([sequence])

    def step(self) -> list[Sequence]:
        """One token more for every text, those that join included; gives the texts that changed."""
        self.keep([row for row, one in enumerate(self.running) if not one.reason])
        self.end_turns()
        joining, ended = self.admit()
        try:
            scores: list[Scores] = []
            if self.pieces is not None:
                joining = self.begin(self.pieces, joining)
            if self.running:
                scores.append(self.batch.step([one.window[-1] for one in self.running]))
            if self.pieces is not None and self.reading:
                scores += self.read(self.pieces)
            elif joining:
                scores.append(self.batch.add([one.window for one in joining]))
                self.running = [*self.running, *joining]
            rows = (row for some in scores for row in some)  # views: nothing is copied
            for sequence, logits in zip(self.running, rows, strict=True):
                self.choose(sequence, logits)
        except BaseException:  # a reading broken off: what the batch holds is not what was written
            for sequence in (*self.running, *joining, *(one for reading in self.reading for one in reading.texts)):
                sequence.interrupt()
            self.reading = []
            self.keep([])
            raise
        changed = [*ended, *self.running]
        slid = [one for one in self.running if not one.reason and one.make_room(self.limits)]
        self.waiting.extendleft(reversed(slid))
        self.keep([row for row, one in enumerate(self.running) if not one.reason and one not in slid])
        self.forget([one for one in changed if one.reason])
        return changed

    def admit(self) -> tuple[list[Sequence], list[Sequence]]:
        """Those that join now, as many as there is room for, and those that end before their first token."""
        joining: list[Sequence] = []
        ended: list[Sequence] = []
        busy = len(self.running) + sum(len(reading.texts) for reading in self.reading)
        while self.waiting and busy + len(joining) < self.most:
            sequence = self.next_waiting(joining)
            if not sequence.reason and sequence not in self.aside:
                sequence.make_room(self.limits)
            (ended if sequence.reason else joining).append(sequence)
        return joining, ended

    def next_waiting(self, joining: list[Sequence]) -> Sequence:
        """The first of the group that has the fewest texts at work: one request of many does not keep others out."""
        if not self.groups:
            return self.waiting.popleft()
        reading = [one for each in self.reading for one in each.texts]
        busy = Counter(id(self.groups.get(one)) for one in (*self.running, *reading, *joining))
        sequence = min(self.waiting, key=lambda one: busy[id(self.groups.get(one))])
        self.waiting.remove(sequence)
        return sequence

    def end_turns(self) -> None:
        """Where others wait and there is no room, those who have written longest since their turn began stand aside."""
        if self.pieces is None or self.turn is None or not self.waiting:
            return
        room = self.most - len(self.running) - sum(len(reading.texts) for reading in self.reading)
        written = {row: len(one.ids) - self.since.get(one, 0) for row, one in enumerate(self.running)}
        done = sorted((row for row, n in written.items() if n >= self.turn), key=lambda row: -written[row])
        gone = set(done[: max(0, len(self.waiting) - room)])
        for row in gone:
            self.aside[self.running[row]] = self.pieces.hold(row)
        self.waiting.extend(self.running[row] for row in sorted(gone))
        self.keep([row for row in range(len(self.running)) if row not in gone])

    def begin(self, batch: PiecewiseBatch, joining: list[Sequence]) -> list[Sequence]:
        """Begin to read the prompts of those that join, each prompt once; those that stood aside go on at once."""
        back = [one for one in joining if one in self.aside]
        batch.join([self.aside.pop(one) for one in back], [1] * len(back))
        self.running = [*self.running, *back]
        self.since.update({one: len(one.ids) for one in back})
        new: dict[tuple[Any, ...], Reading] = {}
        for one in joining:
            if one not in back:
                key = (one.score_prompt, *one.window)
                if key not in new:
                    new[key] = Reading(batch.begin(one.window, one.score_prompt), [], len(one.window))
                new[key].texts.append(one)
        self.reading += new.values()
        return []

    def read(self, batch: PiecewiseBatch) -> list[Scores]:
        """The next pieces of the prompts: half for the one that came first, the rest for those that have least left."""
        left = {id(one): one.length - batch.done(one.row) for one in self.reading}
        first, budget = self.reading[0], self.piece
        order = [first, *sorted(self.reading, key=lambda one: left[id(one)])]
        counts = dict.fromkeys(left, 0)
        for limit, one in zip([(budget + 1) // 2, *[budget] * len(self.reading)], order, strict=True):
            count = min(left[id(one)] - counts[id(one)], limit, budget)
            counts[id(one)] += count
            budget -= count
        some = [one for one in self.reading if counts[id(one)]]
        starts = [batch.done(one.row) for one in some]
        every = [one.texts[0].score_prompt for one in some]
        scores = batch.read([one.row for one in some], [counts[id(one)] for one in some], every)
        found: list[Scores] = []
        for one, start, own in zip(some, starts, scores, strict=True):
            if one.texts[0].score_prompt and self.prompts is not None:
                for text in one.texts:
                    self.prompts(text, start, own)
            if start + counts[id(one)] == one.length:
                batch.join([one.row], [len(one.texts)])
                self.running = [*self.running, *one.texts]
                found += [own[-1:]] * len(one.texts)
        self.reading = [one for one in self.reading if left[id(one)] > counts[id(one)]]
        return found

    def choose(self, sequence: Sequence, logits: Array) -> None:
        """The next token of one text. What goes wrong in it ends this text, and no other.

        Some models score more entries than there are tokens: those are never chosen.
        """
        settings, uniform = sequence.settings, sequence.random.random()
        try:
            prompt = continued(self.limits, sequence.prompt) or [self.limits.end]
            adjusted = adjust(logits, settings, prompt, sequence.ids)
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

    def forget(self, gone: list[Sequence]) -> None:
        for one in gone:
            self.aside.pop(one, None)
            self.groups.pop(one, None)
            self.since.pop(one, None)
