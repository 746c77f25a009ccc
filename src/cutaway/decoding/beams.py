"""Beam search: keep the few likeliest texts so far, extend each by every token, and keep the few likeliest again.

The rules are those of transformers' `generate(num_beams=...)`: a text's score is its log-probability over its length to
the power of the length penalty; twice as many candidates as beams are looked at, so that enough unended ones remain;
the search stops when as many texts have ended as there are beams and no open one can be expected to overtake the worst
of them.

Several prompts are searched together: the open texts of all of them are the rows of one batch. What is found for one
does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from heapq import nlargest

import numpy as np

from cutaway.codec import Codec
from cutaway.decoding.runtime import Limits, Runtime, continued
from cutaway.decoding.sampling import NEVER, Array, adjust, likeliest, log_total
from cutaway.decoding.scheduler import ROWS_AT_ONCE
from cutaway.decoding.sequence import Result, StopFilter
from cutaway.decoding.settings import Settings
from cutaway.errors import CutawayError


@dataclass(frozen=True)
class Beam:
    """A text so far: its new ids, the model's log-probability of each, and their sum after bias and penalties."""

    ids: list[int]
    logprobs: list[float]
    total: float
    reason: str = ""
    row: int = 0
    """The row of the batch that the text was read in, up to its newest id."""

    def score(self, length_penalty: float) -> float:
        return self.total / max(1, len(self.ids)) ** length_penalty


@dataclass(eq=False)
class Search:
    """What has been found for one prompt: the texts still open and those that have ended, the best of each first."""

    prompt: list[int]
    limits: Limits
    longest: int
    """How many new tokens there may be."""
    open: list[Beam] = field(default_factory=lambda: [Beam([], [], 0.0)])
    ended: list[Beam] = field(default_factory=list)

    @property
    def window(self) -> list[int]:
        """What the model reads first: the prompt, or the end token for an empty one."""
        return self.prompt or [self.limits.end]

    def go_on(self, candidates: list[Beam], codec: Codec[str], settings: Settings) -> None:
        """Keep the best candidates, those that have ended and those that have not; none stays open at the end."""
        width = settings.beams or 1
        candidates = [self.mark_end(beam, codec, settings) for beam in candidates]
        ended = [*self.ended, *(beam for beam in candidates[:width] if beam.reason)]
        self.ended = sorted(ended, key=lambda beam: -beam.score(settings.length_penalty))[:width]
        self.open = [beam for beam in candidates if not beam.reason][:width]
        if self.open and settled(self.open[0], self.ended, width, settings.length_penalty):
            self.open = []

    def mark_end(self, beam: Beam, codec: Codec[str], settings: Settings) -> Beam:
        """The beam, with the reason for its end if its newest token ends it."""
        reason = "length" if len(beam.ids) == self.longest else ""
        if settings.stop and any(stop in codec.decode(beam.ids) for stop in settings.stop):
            reason = "stop"
        if beam.ids[-1] == self.limits.end:
            reason = "end"
        return replace(beam, reason=reason) if reason else beam


def search(runtime: Runtime, codec: Codec[str], prompts: list[list[int]], settings: Settings) -> list[Result]:
    """The best texts found for each prompt, best first, prompt by prompt; `settings.best` of each, or one."""
    searches = [begin(prompt, runtime.config, settings) for prompt in prompts]
    some = sorted((one for one in searches if one.longest), key=lambda one: len(one.window))  # alike ones, less padding
    together = max(1, ROWS_AT_ONCE // (settings.beams or 1))
    for first in range(0, len(some), together):
        run_searches(runtime, codec, some[first : first + together], settings)
    return [result for one in searches for result in results(one, codec, settings)]


def begin(prompt: list[int], limits: Limits, settings: Settings) -> Search:
    room = limits.context - max(1, len(continued(limits, prompt)))
    if room < 0:
        raise CutawayError(
            f"The prompt is {len(prompt):,} tokens long and this model's context is {limits.context:,}. Shorten it."
        )
    return Search(prompt, limits, room if settings.max_tokens is None else min(room, settings.max_tokens))


def run_searches(runtime: Runtime, codec: Codec[str], live: list[Search], settings: Settings) -> None:
    """Search for all of these prompts to the end, a token at a time; those that are done leave the batch."""
    batch = runtime.open()
    logits = batch.add([one.window for one in live])  # [row, vocabulary]
    while True:
        for one, candidates in zip(live, extended(logits, live, settings, len(codec)), strict=True):
            one.go_on(candidates, codec, settings)
        live = [one for one in live if one.open]
        if not live:
            return
        beams = [beam for one in live for beam in one.open]
        batch.keep([beam.row for beam in beams])
        logits = batch.step([beam.ids[-1] for beam in beams])


def extended(logits: Array, live: list[Search], settings: Settings, known: int) -> Iterator[list[Beam]]:
    """For each search the likeliest one-token extensions of all its open beams together, best first.

    Only the first `known` entries of the vocabulary are tokens, and none that is forbidden extends a text.
    """
    beams = [beam for one in live for beam in one.open]
    plain = logits - log_total(logits).astype(np.float32)
    totals = np.empty((len(beams), known), dtype=np.float32)
    windows = (continued(one.limits, one.window) for one in live for _ in one.open)
    for row, (window, beam) in enumerate(zip(windows, beams, strict=True)):
        totals[row] = adjust(plain[row], settings, window, beam.ids)[:known] + np.float32(beam.total)
    wanted = 2 * (settings.beams or 1)
    best = likeliest(totals, wanted)  # [row, candidate]
    sums, logprobs = (np.take_along_axis(numbers, best, axis=-1).tolist() for numbers in (totals, plain))
    tokens = best.tolist()
    first = 0
    for one in live:
        rows = range(first, first + len(one.open))
        first = rows.stop
        found = ((total, row, rank) for row in rows for rank, total in enumerate(sums[row]) if total > NEVER)
        yield [
            Beam([*beams[row].ids, tokens[row][rank]], [*beams[row].logprobs, logprobs[row][rank]], total, row=row)
            for total, row, rank in nlargest(wanted, found, key=lambda at: at[0])
        ]


def settled(best_open: Beam, ended: list[Beam], width: int, length_penalty: float) -> bool:
    """Whether the search is over: enough texts have ended, and the best open one is behind the worst of them."""
    return len(ended) == width and best_open.score(length_penalty) <= ended[-1].score(length_penalty)


def results(found: Search, codec: Codec[str], settings: Settings) -> list[Result]:
    beams = found.ended or [Beam([], [], 0.0, reason="length")]
    return [finish(beam, found, codec, settings) for beam in beams[: settings.best or 1]]


def finish(beam: Beam, found: Search, codec: Codec[str], settings: Settings) -> Result:
    text = StopFilter(codec, settings.stop)
    ids = beam.ids[:-1] if beam.reason == "end" else beam.ids
    for token in ids:
        text.add(token)
    text.finish()
    full = settings.max_tokens is None or len(ids) < settings.max_tokens
    explanation = {
        "end": "The model wrote its end token.",
        "stop": f"The stop string {text.found!r} came up.",
        "length": f"The context of {found.limits.context:,} tokens is full."
        if full
        else f"It has the {settings.max_tokens:,} tokens that were asked for.",
    }[beam.reason]
    return Result(
        text=text.text, ids=ids, reason=beam.reason, explanation=explanation, logprobs=beam.logprobs[: len(ids)],
        prompt_ids=found.prompt, score=beam.score(settings.length_penalty),
    )  # fmt: skip
