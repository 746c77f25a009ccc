"""What may come next in a performance: a logits processor, so that whatever is drawn can be played.

A key comes up only if it is down, and goes down only if it is up; a velocity is that of a note; every note ends. With a
key to stay in, only its notes go down. With a melody, its notes come at their time, and the model plays around them.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from cutaway.errors import CutawayError
from cutaway.music.events import END, OFF, SHIFT, SHIFTS, SIZE, STEP, VELOCITIES, VELOCITY
from cutaway.music.performance import Array, Performance

LOWEST, HIGHEST = 21, 108
"""The keys of a piano."""
LONGEST_NOTE = round(15 / STEP)
LONGEST_SILENCE = round(4 / STEP)
LONGEST_WAIT = round(6 / STEP)
"""Steps from one note to the next, while others sound: of GiantMIDI-Piano's 215,092 notes at hand 23 wait longer."""
LEAD = round(0.5 / STEP)
"""Steps before the first note of all: recordings begin with silence, performances need not."""
LAST_NOTES = round(2 / STEP)
"""Steps: so long may notes sound on after the last has begun."""
APART = round(0.3 / STEP)
"""Steps: so long before the melody strikes a key nobody else does."""
NAMES = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11, "H": 11}
SIGNS = {"": 0, "#": 1, "♯": 1, "b": -1, "♭": -1}
SCALES = {"major": (0, 2, 4, 5, 7, 9, 11), "minor": (0, 2, 3, 5, 7, 8, 10, 11)}
"""Semitones above the tonic; minor has both sevenths, the leading note being at home in it, too."""


def key_notes(name: str) -> frozenset[int]:
    """The pitch classes (0 is C) of a key: `C major`, `F# minor`, `Bb`; a bare name is major, `Am` is A minor."""
    words = name.replace("-", " ").split()
    tonic = words[0] if words else ""
    mode = words[1].lower() if len(words) > 1 else "major"
    if len(words) == 1 and len(tonic) > 1 and tonic.endswith("m"):
        tonic, mode = tonic[:-1], "minor"
    letter, sign = tonic[:1].upper(), tonic[1:]
    if letter not in NAMES or sign not in SIGNS or mode not in SCALES or len(words) > 2:
        raise CutawayError(f"There is no key {name!r}: give one like 'C major', 'F# minor' or 'Bb major'.")
    return frozenset((NAMES[letter] + SIGNS[sign] + step) % 12 for step in SCALES[mode])


@dataclass
class Rules:
    """For one performance: it is told all events so far each time, and reads on from those it knows."""

    steps: int
    """How long the new part is to be."""
    prompt: int
    """How many ids stand before it; the end token that a performance begins after is one of them."""
    classes: frozenset[int] = frozenset(range(12))
    melody: Performance | None = None

    now: int = field(default=0, init=False)
    known: int = field(default=0, init=False)
    start: int = field(default=0, init=False)
    """When the new part begins."""
    last: int = field(default=END, init=False)
    velocity: int = field(default=VELOCITIES // 2, init=False)
    silent_since: int = field(default=0, init=False)
    struck: int = field(default=0, init=False)
    """When the last key went down."""
    begun: bool = field(default=False, init=False)
    """Whether any key did."""
    down: dict[int, int] = field(default_factory=dict, init=False)
    """The keys that are down, and since when."""
    led: set[int] = field(default_factory=set, init=False)
    """Those that the melody holds down."""
    due: deque[tuple[int, int, int, int]] = field(default_factory=deque, init=False)
    """What the melody does next: when, whether a key goes down (1) or up (0), which, how hard."""

    def __post_init__(self) -> None:
        pitches = np.arange(OFF)
        inside = np.isin(pitches % 12, list(self.classes))
        self.keys = (pitches >= LOWEST) & (pitches <= HIGHEST) & inside

    def __call__(self, ids: list[int], logits: Array) -> Array:
        for token in ids[self.known :]:
            self.read(token)
        allowed = self.allowed()
        logits[:SIZE][~allowed] = -np.inf
        if not np.isfinite(logits[:SIZE].max()):  # a model that gives no chance to any of them: then all have the same
            logits[:SIZE][allowed] = 0
        return logits

    def read(self, token: int) -> None:
        """One event that is there."""
        self.known += 1
        if token < OFF:
            self.down[token] = self.struck = self.now
            self.begun = True
        elif token < SHIFT:
            self.down.pop(token - OFF, None)
            if self.due and self.due[0][:3] == (self.now, 0, token - OFF):
                self.due.popleft()
                self.led.discard(token - OFF)
            self.silent_since = self.now
        elif token < VELOCITY:
            self.now += token - SHIFT + 1
        elif token < END:
            self.velocity = token - VELOCITY
        if token < OFF and self.due and self.due[0][:3] == (self.now, 1, token):
            self.due.popleft()
            self.led.add(token)
        self.last = token
        if self.known == self.prompt:
            self.begin()

    def begin(self) -> None:
        """The new part begins here, and the melody with it."""
        self.start = self.silent_since = self.struck = self.now
        if self.melody is not None:
            self.due = deque(self.schedule(self.melody))

    def schedule(self, melody: Performance) -> list[tuple[int, int, int, int]]:
        """What the melody does, in order; where it strikes a key that is down, that comes up first."""
        starts = np.rint(melody.starts / STEP).astype(int) + self.start
        ends = np.maximum(np.rint(melody.ends / STEP).astype(int) + self.start, starts + 1)
        held: dict[int, tuple[int, int]] = {}
        events: list[tuple[int, int, int, int]] = []
        for start, end, pitch, velocity in zip(
            starts.tolist(), ends.tolist(), melody.pitches.tolist(), melody.velocities.tolist(), strict=True
        ):
            if pitch in held and held[pitch][1] > start:
                begun, _ = held[pitch]
                if begun == start:  # struck twice at once is struck once
                    continue
                events = [one for one in events if one[:3] != (held[pitch][1], 0, pitch)]
                events.append((start, 0, pitch, 0))
            held[pitch] = (start, end)
            events += [(start, 1, pitch, (velocity - 1) // 4), (end, 0, pitch, 0)]
        return sorted(events)

    def allowed(self) -> Array:
        """Which events may follow, by token."""
        may = np.zeros(SIZE, bool)
        if self.due and self.due[0][0] <= self.now:
            return self.follow(may, *self.due[0][1:])
        own = {pitch: since for pitch, since in self.down.items() if pitch not in self.led}
        late = [pitch for pitch, since in own.items() if self.now - since >= LONGEST_NOTE]
        over = self.now - self.start - self.steps  # at least 0: nothing new begins
        if late or (over >= LAST_NOTES and own and not self.due):
            may[[OFF + pitch for pitch in late or own if self.now > own[pitch]]] = True
            return may
        if VELOCITY <= self.last < END:
            return self.strikes(may)
        if over < 0:
            self.strikes(may)
            if may.any():
                may[VELOCITY:END] = True
        may[[OFF + pitch for pitch, since in own.items() if since < self.now]] = True
        self.waits(may, over)
        if over >= 0 and not self.down and not self.due:
            may[END] = True
        return may

    def strikes(self, may: Array) -> Array:
        """Keys that may go down: on the piano, in the key, up, and not about to be struck by the melody."""
        may[:OFF] = self.keys
        may[list(self.down)] = False
        for time, downward, pitch, _ in self.due:
            if time > self.now + APART:
                break
            may[pitch] &= not downward
        return may

    def waits(self, may: Array, over: int) -> None:
        """How far time may go on: to the next event of the melody, and not for ever with nothing new, or in silence."""
        most = SHIFTS
        if self.due:
            most = min(most, self.due[0][0] - self.now)
        elif SHIFT <= self.last < VELOCITY - 1:  # after less than a second comes an event, as in what was learned
            most = 0
        if not self.due and over < 0:
            most = min(most, (LONGEST_WAIT if self.begun else LEAD) - (self.now - self.struck))
        if not self.down and not self.due:
            most = min(most, LONGEST_SILENCE - (self.now - self.silent_since) if over < 0 else 0)
        may[SHIFT : SHIFT + max(0, most)] = True

    def follow(self, may: Array, downward: int, pitch: int, velocity: int) -> Array:
        """Only what the melody does now."""
        if not downward or pitch in self.down:
            may[OFF + pitch] = True
        elif self.velocity != velocity:
            may[VELOCITY + velocity] = True
        else:
            may[pitch] = True
        return may
