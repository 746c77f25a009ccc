"""A performance: every note with the second it begins and ends, its pitch, and how hard it was struck."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cutaway.errors import CutawayError

Array = np.ndarray[Any, Any]

DOWN = 64
"""From this value of the sustain pedal's controller on the dampers are up, and notes go on sounding."""


@dataclass(frozen=True)
class Performance:
    """Notes in the order in which they begin; the lower pitch first where several begin together."""

    starts: Array  # seconds, float64 [note]
    ends: Array  # seconds, float64 [note]
    pitches: Array  # 0 to 127, 60 is middle C; int64 [note]
    velocities: Array  # 1 to 127; int64 [note]

    @classmethod
    def of(cls, starts: Any, ends: Any, pitches: Any, velocities: Any) -> Performance:
        """From notes in any order; refused unless each is a note that a piano could be told to play."""
        starts, ends = np.asarray(starts, np.float64), np.asarray(ends, np.float64)
        pitches, velocities = np.asarray(pitches, np.int64), np.asarray(velocities, np.int64)
        if not len(starts) == len(ends) == len(pitches) == len(velocities):
            raise CutawayError("A performance needs a start, an end, a pitch and a velocity for each of its notes.")
        for name, values, low, high in (
            ("pitch", pitches, 0, 127),
            ("velocity", velocities, 1, 127),
            ("start", starts, 0, np.inf),
        ):
            wrong = ~((values >= low) & (values <= high))
            if wrong.any():
                raise CutawayError(f"A note's {name} must lie between {low} and {high}, not be {values[wrong][0]}.")
        if not (ends >= starts).all() or not np.isfinite(ends).all():
            raise CutawayError("A note must end after it begins.")
        order = np.lexsort((ends, pitches, starts))
        return cls(starts[order], ends[order], pitches[order], velocities[order])

    def __len__(self) -> int:
        return len(self.starts)

    def __add__(self, other: Performance) -> Performance:
        """The notes of both, played together."""
        columns = ("starts", "ends", "pitches", "velocities")
        return Performance.of(*(np.concatenate([getattr(self, one), getattr(other, one)]) for one in columns))

    @property
    def seconds(self) -> float:
        """Until the last note has ended."""
        return float(self.ends.max()) if len(self) else 0.0

    def transposed(self, steps: int) -> Performance:
        """The same in another key; notes that would leave the keyboard are left out."""
        pitches = self.pitches + steps
        there = (pitches >= 0) & (pitches <= 127)
        return Performance(self.starts[there], self.ends[there], pitches[there], self.velocities[there])

    def stretched(self, factor: float) -> Performance:
        """The same, slower (above 1) or faster (below 1)."""
        if not 0 < factor < np.inf:
            raise CutawayError(f"A tempo is stretched by a factor above 0, not {factor}.")
        return Performance(self.starts * factor, self.ends * factor, self.pitches, self.velocities)

    def between(self, start: float, end: float) -> Performance:
        """The notes that begin in this stretch of time, which then begins at 0."""
        there = (self.starts >= start) & (self.starts < end)
        return Performance(
            self.starts[there] - start, self.ends[there] - start, self.pitches[there], self.velocities[there]
        )


def sustained(performance: Performance, times: Array, values: Array) -> Performance:
    """With the sustain pedal worked into the lengths of the notes, as in the Music Transformer paper.

    A note released while the pedal is down goes on until the pedal comes up, or until its key is struck again. `times`
    and `values` are the messages of the pedal's controller, in order.
    """
    if not len(times) or not len(performance):
        return performance
    down = values >= DOWN
    changed = np.flatnonzero(np.diff(np.concatenate([[False], down]).astype(np.int8)))
    edges = np.append(times[changed], np.inf)  # down, up, down, up, ..., and for ever
    at = np.searchsorted(edges, performance.ends, side="right")
    held = at % 2 == 1  # after an odd number of edges the pedal is down
    released = np.where(held, edges[np.minimum(at, len(edges) - 1)], performance.ends)
    released = np.where(np.isinf(released), np.maximum(performance.seconds, times[-1]), released)
    struck = next_start(performance)
    ends = np.maximum(performance.ends, np.minimum(released, struck))
    return Performance(performance.starts, ends, performance.pitches, performance.velocities)


def next_start(performance: Performance) -> Array:
    """When the key of each note is struck the next time (after the note's own start); infinity if it never is."""
    order = np.lexsort((performance.starts, performance.pitches))
    starts, pitches = performance.starts[order], performance.pitches[order]
    later = np.full(len(order), np.inf)
    same = pitches[1:] == pitches[:-1]
    later[:-1][same] = starts[1:][same]
    for i in np.flatnonzero(later == starts)[::-1]:  # struck twice at once: both wait for the same next time
        later[i] = later[i + 1] if i + 1 < len(order) and pitches[i + 1] == pitches[i] else np.inf
    found = np.empty(len(order))
    found[order] = later
    return found
