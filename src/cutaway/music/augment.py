"""The same performance in another key and at another tempo, event by event: more to learn from."""

from __future__ import annotations

import numpy as np

from cutaway.music.events import END, PITCHES, SHIFT, SHIFTS, VELOCITY
from cutaway.music.performance import Array


def transposed(ids: Array, steps: int) -> Array:
    """Events in another key: `steps` semitones higher, or as far as all of them stay on the keyboard."""
    notes = ids < SHIFT
    if not steps or not notes.any():
        return ids
    pitches = ids[notes] % PITCHES
    steps = int(np.clip(steps, -pitches.min(), PITCHES - 1 - pitches.max()))
    return np.where(notes, ids + steps, ids)


def stretched(ids: Array, factor: float) -> Array:
    """Events slower (above 1) or faster (below 1), each time rounded by itself, so that errors do not add up.

    Written as a performance is: whole seconds, then the rest. There may be more of them, or fewer.
    """
    shifts = (ids >= SHIFT) & (ids < VELOCITY)
    if factor == 1 or not shifts.any():
        return ids
    now = np.rint(np.cumsum(np.where(shifts, ids - SHIFT + 1, 0)) * factor).astype(np.int64)
    kept = np.append(np.flatnonzero(~shifts), len(ids))  # the last one stands for the end of the window
    times = np.append(now, now[-1])[kept]
    passed = np.diff(times, prepend=0)
    whole, rest = passed // SHIFTS, passed % SHIFTS
    sizes = whole + (rest > 0) + 1
    last = np.cumsum(sizes) - 1
    found = np.full(int(sizes.sum()), SHIFT + SHIFTS - 1, ids.dtype)
    found[last] = np.append(ids, END)[kept]
    short = rest > 0
    found[(last - 1)[short]] = SHIFT + rest[short] - 1
    return found[:-1]


def varied(ids: Array, transpose: int, tempo: float, random: np.random.Generator) -> Array:
    """A window of events in a key up to `transpose` semitones away, slower or faster by up to a share of `tempo`."""
    steps = int(random.integers(-transpose, transpose + 1))
    factor = float(random.uniform(1 - tempo, 1 + tempo))
    return stretched(transposed(ids, steps), factor)[: len(ids)]
