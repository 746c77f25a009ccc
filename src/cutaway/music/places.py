"""Where a performance's notes stand among its events: which event is the note's beginning, and which its end."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cutaway.music.events import END, OFF, SHIFT, STEP, VELOCITIES, VELOCITY, middle_of
from cutaway.music.performance import Array


@dataclass(frozen=True)
class Placed:
    """Events and their notes, in the order in which their keys go down. As notes they are `decode` of the events."""

    times: Array
    """When each event happens, in steps of 10 ms; a shift in time has happened when it is over. int64 [event]"""
    on: Array
    """Which event is each note's beginning. int64 [note]"""
    off: Array
    """Which is its end; -1 for a key that is down to the last. int64 [note]"""
    pitches: Array
    velocities: Array
    """As MIDI has them, 1 to 127. int64 [note]"""

    @property
    def starts(self) -> Array:
        """Seconds. float64 [note]"""
        return self.times[self.on] * STEP

    @property
    def ends(self) -> Array:
        last = self.times[-1] if len(self.times) else 0
        return np.where(self.off >= 0, self.times[self.off], last) * STEP

    def owners(self) -> Array:
        """Which note each event begins or ends; -1 for time, velocity and the end. int64 [event]"""
        found = np.full(len(self.times), -1)
        found[self.on] = np.arange(len(self.on))
        ended = self.off >= 0
        found[self.off[ended]] = np.flatnonzero(ended)
        return found


def placed(ids: Sequence[int] | Array) -> Placed:
    """The notes of these events and their places. The end token among them (the first, say) changes nothing."""
    events = np.asarray(ids, np.int64)
    shifts = (events >= SHIFT) & (events < VELOCITY)
    times = np.cumsum(np.where(shifts, events - SHIFT + 1, 0))
    down: dict[int, deque[int]] = {}
    notes: list[list[int]] = []
    loud = VELOCITIES // 2
    for at, token in enumerate(events.tolist()):
        if token < OFF:
            down.setdefault(token, deque()).append(len(notes))
            notes.append([at, -1, token, loud])
        elif token < SHIFT:
            if waiting := down.get(token - OFF):
                notes[waiting.popleft()][1] = at
        elif VELOCITY <= token < END:
            loud = token - VELOCITY
    on, off, pitches, bins = np.array(notes, np.int64).reshape(-1, 4).T
    return Placed(times, on, off, pitches, middle_of(bins))
