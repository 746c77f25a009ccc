"""The thread in which one model writes: every text that is asked for joins its batch, and leaves it when it has ended.

The event loop hands over jobs and takes what each step gave; whoever reads slowly keeps nobody waiting.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from cutaway.decoding.runtime import Runtime, Scores
from cutaway.decoding.sampling import Array, likeliest, log_total
from cutaway.decoding.scheduler import Chosen, Scheduler
from cutaway.decoding.sequence import Sequence
from cutaway.serve.openai.errors import ApiError
from cutaway.serve.settings import ServeSettings

Top = list[tuple[int, float]]
"""The likeliest tokens at a place, each with its log-probability."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one step gave one text: a token, unless it ended without one."""

    index: int
    """Which text of the job."""
    token: int | None
    piece: str
    logprob: float
    top: Top | None
    reason: str
    error: Exception | None = None


@dataclass(eq=False)
class Job:
    """Texts that were asked for together; `steps()` gives what is written as it is written."""

    sequences: list[Sequence]
    top: int | None = None
    """How many of the likeliest tokens to tell with each token; None for no log-probabilities."""
    runtime: Runtime | None = None
    """What writes these texts, if it is not what writes all others (the model under changes)."""
    prompt_scores: dict[Sequence, list[tuple[float, Top]]] = field(default_factory=dict)
    """Where `score_prompt` was asked for: of each token of the prompt but the first."""
    targets: dict[Sequence, list[int]] = field(default_factory=dict)
    """The prompt that is scored, where it has a token more than the text has room to read."""
    ready: asyncio.Queue[Step] = field(default_factory=asyncio.Queue)
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    begun: float = field(default_factory=time.monotonic)

    async def steps(self) -> AsyncIterator[list[Step]]:
        """Everything that is ready, each time; ends with the last text."""
        left = len(self.sequences)
        while left:
            some = [await self.ready.get()]
            while not self.ready.empty():
                some.append(self.ready.get_nowait())
            left -= sum(bool(step.reason) for step in some)
            yield some


class Writer:
    """One thread, one scheduler for all; a job under changes has a scheduler of its own, and so touches no other."""

    def __init__(self, runtime: Runtime | None, settings: ServeSettings, name: str = "model"):
        self.runtime, self.settings = runtime, settings
        self.condition = threading.Condition()
        self.inbox: list[Job] = []
        self.gone: list[Job] = []
        self.owner: dict[Sequence, tuple[Job, int]] = {}
        self.told: dict[Sequence, int] = {}
        self.tops: dict[Sequence, Top] = {}
        self.own: dict[Job, Scheduler] = {}
        self.pending = 0
        """Texts that were asked for and have not ended."""
        self.seconds = 1.0
        """About how long a text takes, from the question to its end."""
        self.written = 0
        self.read = 0
        self.closed = False
        self.main = self.scheduler(runtime) if runtime is not None else None
        self.thread = threading.Thread(target=self.run, name=f"cutaway-writer-{name}", daemon=True)
        self.thread.start()

    def scheduler(self, runtime: Runtime, shared: bool = True) -> Scheduler:
        settings = self.settings
        if not shared:  # changes are made at positions of a prompt that is read whole
            return Scheduler(runtime, self.observe, settings.rows)
        made = Scheduler(runtime, self.observe, settings.rows, settings.piece, settings.turn, self.observe_prompt)
        if settings.prefix_memory and hasattr(made.batch, "prefixes"):
            from cutaway.runtime.native.prefixes import Prefixes

            made.batch.prefixes = Prefixes(settings.prefix_memory)
        return made

    # In the event loop.

    def submit(self, job: Job) -> None:
        """Have these texts written; refused where too many wait."""
        most, asked = self.settings.rows + self.settings.queue, len(job.sequences)
        if asked > most:
            raise ApiError(400, f"{asked:,} texts in one request are too many: this server takes {most:,} at once.")
        with self.condition:
            if self.pending + asked > most:
                wait = self.seconds * self.pending / self.settings.rows
                raise ApiError(
                    429, "Too many texts are waiting. Try again later.", code="queue_full", retry_after=min(60, wait)
                )
            self.pending += asked
            self.inbox.append(job)
            self.condition.notify()

    def cancel(self, job: Job) -> None:
        """Nobody waits for these texts any more: their places are free at the next step."""
        with self.condition:
            self.gone.append(job)
            self.condition.notify()

    def figures(self) -> dict[str, int]:
        """What is going on, for those who watch the server."""
        main = self.main
        prefixes = getattr(main.batch, "prefixes", None) if main is not None else None
        return {
            "pending": self.pending,
            "running": len(main.running) if main is not None else 0,
            "tokens_written": self.written,
            "tokens_read": self.read,
            "prefix_tokens": prefixes.found if prefixes else 0,
            "prefix_bytes": prefixes.held if prefixes else 0,
        }

    def close(self) -> None:
        """End the thread; texts that are not finished end where they are."""
        with self.condition:
            self.closed = True
            self.condition.notify()
        self.thread.join()

    # In the thread.

    def run(self) -> None:
        while True:
            with self.condition:
                while not (self.inbox or self.gone or self.busy or self.closed):
                    self.condition.wait()
                inbox, gone, self.inbox, self.gone = self.inbox, self.gone, [], []
                closed = self.closed
            for job in inbox:
                self.begin(job)
            if closed:
                gone = list({job: None for job, _ in self.owner.values()})
            for job in gone:
                self.drop(job)
            if closed:
                return
            for scheduler in self.schedulers():
                if scheduler.busy:
                    self.step(scheduler)
            self.own = {job: one for job, one in self.own.items() if one.busy}

    @property
    def busy(self) -> bool:
        return any(scheduler.busy for scheduler in self.schedulers())

    def schedulers(self) -> list[Scheduler]:
        return [*([] if self.main is None else [self.main]), *self.own.values()]

    def begin(self, job: Job) -> None:
        if job.runtime is not None:
            self.own[job] = scheduler = self.scheduler(job.runtime, shared=False)
        else:
            assert self.main is not None
            scheduler = self.main
        for index, sequence in enumerate(job.sequences):
            self.owner[sequence], self.told[sequence] = (job, index), 0
            self.read += len(sequence.prompt)
            scheduler.add(sequence, group=job)

    def drop(self, job: Job) -> None:
        scheduler = self.own.get(job) or self.main
        left = [one for one in job.sequences if one in self.owner]
        for sequence in left:
            if scheduler is not None:
                scheduler.cancel(sequence)
            sequence.interrupt()
        self.deliver([self.tell(one) for one in left])

    def step(self, scheduler: Scheduler) -> None:
        try:
            changed = scheduler.step()
        except Exception as error:  # what went wrong ends the texts of this batch; others are written in a new one
            changed = [one for one in self.owner if self.home(one) is scheduler]
            for one in changed:
                one.interrupt()
                one.error = one.error or error
            if scheduler is self.main:
                assert self.runtime is not None
                self.main = self.scheduler(self.runtime)
        self.deliver([self.tell(one) for one in changed if one in self.owner])

    def home(self, sequence: Sequence) -> Scheduler | None:
        job = self.owner[sequence][0]
        return self.own.get(job) if job.runtime is not None else self.main

    def tell(self, sequence: Sequence) -> tuple[Job, Step]:
        """What a text has that its job was not told of."""
        job, index = self.owner[sequence]
        new = sequence.newest is not None and self.told[sequence] < len(sequence.ids)
        ended_by_token = sequence.reason == "end" and sequence.newest is not None
        self.told[sequence] = len(sequence.ids)
        token, logprob = sequence.newest if sequence.newest and (new or ended_by_token) else (None, 0.0)
        piece = sequence.piece if token is not None else ""  # else it was told before
        step = Step(
            index, token, piece, logprob, self.tops.pop(sequence, None), sequence.reason, sequence.error
        )  # fmt: skip
        self.written += token is not None
        if sequence.reason:
            del self.owner[sequence], self.told[sequence]
            with self.condition:
                self.pending -= 1
                self.seconds += 0.1 * (time.monotonic() - job.begun - self.seconds)
        return job, step

    def deliver(self, steps: list[tuple[Job, Step]]) -> None:
        """Hand over what there is, once for each loop that waits (there is one)."""
        loops: dict[asyncio.AbstractEventLoop, list[tuple[Job, Step]]] = {}
        for job, step in steps:
            loops.setdefault(job.loop, []).append((job, step))
        for loop, own in loops.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(put, own)

    def observe(self, chosen: Chosen) -> None:
        job, _ = self.owner[chosen.sequence]
        if job.top is not None:
            logits = chosen.logits
            self.tops[chosen.sequence] = top_of(logits, log_total(logits)[0], job.top, len(chosen.sequence.codec))

    def observe_prompt(self, sequence: Sequence, start: int, scores: Scores) -> None:
        job, _ = self.owner[sequence]
        found = job.prompt_scores.setdefault(sequence, [])
        following = job.targets.get(sequence, sequence.window)[start + 1 : start + 1 + len(scores)]
        for token, row in zip(following, scores, strict=False):  # after the last token comes what is written
            total = log_total(row)[0]
            found.append((float(row[token] - total), top_of(row, total, job.top or 0, len(sequence.codec))))


def top_of(logits: Array, total: float, count: int, known: int) -> Top:
    """The likeliest tokens, with the model's own log-probabilities; `total` makes these of its logits."""
    if not count:
        return []
    best = likeliest(logits[:known], count)
    chances = logits[best] - total
    return list(zip(best.tolist(), chances.tolist(), strict=True))


def put(steps: list[tuple[Any, Step]]) -> None:
    for job, step in steps:
        job.ready.put_nowait(step)
