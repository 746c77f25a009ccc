"""Writing performances: the one decoder, the rules of a performance, and as many at once as are asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cutaway.decoding.scheduler import Scheduler
from cutaway.decoding.sequence import Sequence as Text
from cutaway.errors import CutawayError
from cutaway.music.events import STEP, Events
from cutaway.music.performance import Performance
from cutaway.music.rules import Rules, key_notes
from cutaway.music.vocabulary import is_of_events

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel

LONGEST = 3600
"""Seconds that one performance may have."""
AFTER = 2.0
"""Seconds more than its melody that an accompaniment has, if nobody says."""
USUAL = {"temperature": 1.0, "top_k": None, "top_p": 0.97}
"""How events are chosen where neither the caller nor the model says."""


@dataclass(frozen=True)
class Composition:
    """A performance that was written, the primer at its beginning."""

    performance: Performance
    ids: list[int]
    """The new events."""
    seed: int
    sample: int
    dropped: int
    """How many of the oldest events had left the model's context by the end."""


def compose(
    lm: LanguageModel,
    seconds: float | None = None,
    seed: int | None = None,
    samples: int = 1,
    primer: Performance | Sequence[int] | None = None,
    melody: Performance | None = None,
    key: str | None = None,
    progress: Callable[[float, float], None] | None = None,
    **settings: Any,
) -> list[Composition]:
    """Performances of so many new seconds, by a model of performances; with a primer, they begin with it.

    The primer may be events, too: keys that are down at its end are then the model's to let go.
    `key` is one to stay in, `melody` one to play around. What each becomes depends on the seed and its number alone.
    A performance longer than the model's context goes on: the oldest quarter leaves, and is never read again.
    `progress` hears how many seconds of music there are, and of how many.
    """
    if not is_of_events(lm.tokenizer):
        raise CutawayError(
            f"{lm.name} writes text, not performances: train a pianist with the task 'performance'.",
            "no_pianist",
            name=lm.name,
        )
    if seconds is None:
        seconds = melody.seconds + AFTER if melody is not None else 30.0
    if not 0 < seconds <= LONGEST:
        raise CutawayError(f"A performance lasts up to {LONGEST:,} seconds, and more than none: not {seconds:g}.")
    if samples < 1:
        raise CutawayError(f"The number of performances must be 1 or more, not {samples}.")
    events = Events()
    given = events.encode(primer) if isinstance(primer, Performance) else (primer or [])
    prompt = [events.end, *given]
    chosen = lm.settings({**USUAL, **lm.recommended, **settings, "overflow": "slide"}, None)
    classes = key_notes(key) if key else frozenset(range(12))
    seed = seed if seed is not None else int.from_bytes(os.urandom(4))
    scheduler, texts = Scheduler(lm.runtime), []
    for number in range(samples):
        rules = Rules(round(seconds / STEP), len(prompt), classes, melody)
        text = Text(prompt, replace(chosen, logits_processors=(rules,)), lm.tokenizer, seed, number)
        texts.append((text, rules))
        scheduler.add(text)
    while scheduler.busy:
        for text in scheduler.step():
            if text.error is not None:
                raise text.error
        if progress is not None:
            progress(sum(min(seconds, (one.now - one.start) * STEP) for _, one in texts), samples * seconds)
    return [
        Composition(events.decode([*prompt[1:], *text.ids]), text.ids, seed, text.sample, text.dropped)
        for text, _ in texts
    ]
