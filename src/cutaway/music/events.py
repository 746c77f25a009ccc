"""The performance encoding of Music Transformer: a performance as a row of events, one token each.

    0-127    note on: a key goes down, as hard as the last velocity said
    128-255  note off: a key comes up
    256-355  time goes on by 10 ms to one second
    356-387  velocity of the notes that follow, in 32 steps
    388      the end, which is also where a performance begins

Where a key goes down twice before it comes up (two hands, two tracks), the first to go down is the first to come up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import numpy as np

from cutaway.errors import CutawayError
from cutaway.music.performance import Array, Performance

PITCHES, SHIFTS, VELOCITIES = 128, 100, 32
ON, OFF, SHIFT, VELOCITY = 0, PITCHES, 2 * PITCHES, 2 * PITCHES + SHIFTS
END = VELOCITY + VELOCITIES
SIZE = END + 1
STEP = 0.01
"""Seconds of the smallest shift in time."""
BIN = 4
"""So many of MIDI's 127 velocities share one of ours."""


class Events:
    """The codec: performances to tokens and back. It has no state and no settings: share it freely."""

    end = END

    def __len__(self) -> int:
        return SIZE

    def encode(self, performance: Performance) -> list[int]:
        """The events of a performance, silence at its beginning included, the end not."""
        found: list[int] = encode(performance).tolist()
        return found

    def decode(self, ids: Iterable[int]) -> Performance:
        """The performance these events describe; what cannot be played (a key coming up that is not down) is left out,
        and keys still down at the end come up there."""
        return decode(int(i) for i in ids)

    def stream(self) -> NoteStream:
        """A decoder that takes one event at a time and gives the notes that have ended."""
        return NoteStream()

    def name(self, token: int) -> str:
        """An event in words: note on 60, note off 60, shift 120 ms, velocity 17 of 32, end."""
        if not 0 <= token < SIZE:
            raise CutawayError(f"There is no event {token}: they run from 0 to {SIZE - 1}.")
        if token < OFF:
            return f"note on {token}"
        if token < SHIFT:
            return f"note off {token - OFF}"
        if token < VELOCITY:
            return f"shift {10 * (token - SHIFT + 1)} ms"
        return "end" if token == END else f"velocity {token - VELOCITY + 1} of {VELOCITIES}"


def encode(performance: Performance) -> Array:
    """Events as an array. Every time is rounded to the nearest step, so that errors never add up."""
    count = len(performance)
    if not count:
        return np.zeros(0, np.int64)
    starts = np.rint(performance.starts / STEP).astype(np.int64)
    ends = np.rint(performance.ends / STEP).astype(np.int64)
    loud = (performance.velocities - 1) // BIN
    down_first, up_first = (np.lexsort((times, performance.pitches)) for times in (starts, ends))
    ends[down_first] = ends[up_first]  # a key that goes down twice comes up in the same order

    # At each step: keys that were down come up, then keys go down, then those come up again that hardly went down.
    steps = np.concatenate([starts, ends])
    rank = np.concatenate([np.ones(count, np.int64), np.where(ends == starts, 2, 0)])
    pitches = np.concatenate([performance.pitches, performance.pitches])
    order = np.lexsort((pitches, rank, steps))
    steps, down = steps[order], order < count
    events = np.where(down, ON, OFF) + pitches[order]

    # Before each event: how far time goes on, and the velocity where it is another than before.
    passed = np.diff(steps, prepend=0)
    whole, rest = passed // SHIFTS, passed % SHIFTS
    heard = loud[order[down]]
    louder = np.zeros(len(order), bool)
    louder[down] = np.diff(heard, prepend=-1) != 0
    sizes = whole + (rest > 0) + louder + 1
    last = np.cumsum(sizes) - 1
    found = np.full(int(sizes.sum()), SHIFT + SHIFTS - 1, np.int64)  # a whole second, where nothing else is written
    found[last] = events
    velocities = np.zeros(len(order), np.int64)
    velocities[down] = VELOCITY + heard
    found[(last - 1)[louder]] = velocities[louder]
    short = rest > 0
    found[(last - 1 - louder)[short]] = SHIFT + rest[short] - 1
    return found


def decode(ids: Iterable[int]) -> Performance:
    """Notes out of events. One that ends at the step it began at lasts no time here, and a tick in a MIDI file."""
    stream = NoteStream()
    for token in ids:
        stream.read(token)
        if stream.ended:
            break
    return stream.finish()


class NoteStream:
    """Events to notes one at a time: what `add` and `finish` give, added up, is `decode` of all the events."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.now, self.velocity, self.ended = 0, VELOCITIES // 2, False
        self.sounding: dict[int, deque[tuple[int, int]]] = {}
        """The keys that are down: when each went down, and how hard."""
        self.notes: list[tuple[int, int, int, int]] = []
        """Those that have ended and were not given yet: start, end, pitch, velocity."""

    def add(self, token: int) -> Performance:
        """The notes that this event ends."""
        self.read(token)
        return self.taken()

    def finish(self) -> Performance:
        """The notes still sounding, which end here; after that a new performance may begin."""
        for pitch, waiting in self.sounding.items():
            self.notes += [(start, self.now, pitch, velocity) for start, velocity in waiting]
        found = self.taken()
        self.reset()
        return found

    def read(self, token: int) -> None:
        if token < 0 or token >= SIZE:
            raise CutawayError(f"There is no event {token}: they run from 0 to {SIZE - 1}.")
        if self.ended:
            return
        if token < OFF:
            self.sounding.setdefault(token, deque()).append((self.now, self.velocity))
        elif token < SHIFT:
            if waiting := self.sounding.get(token - OFF):
                start, velocity = waiting.popleft()
                self.notes.append((start, self.now, token - OFF, velocity))
        elif token < VELOCITY:
            self.now += token - SHIFT + 1
        elif token < END:
            self.velocity = token - VELOCITY
        else:
            self.ended = True

    def taken(self) -> Performance:
        starts, ends, pitches, velocities = np.array(self.notes, np.int64).reshape(-1, 4).T
        self.notes = []
        return Performance.of(starts * STEP, ends * STEP, pitches, middle_of(velocities))


def middle_of(bins: Array) -> Array:
    """The velocity, as MIDI has it, that stands for all that share a bin."""
    return np.minimum(127, bins * BIN + 1 + BIN // 2)
