"""Performances in numbers, to hold those a model wrote against those that people played."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from cutaway.errors import CutawayError
from cutaway.music.performance import Array, Performance

PHRASE = 4
"""Notes in a row that are looked for a second time."""
CLASSES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")


@dataclass(frozen=True)
class Measures:
    """One performance in numbers."""

    density: float
    """Notes a second."""
    together: float
    """How many notes sound at once, in the mean over the time in which any does."""
    length: float
    """Seconds that a note lasts, in the median."""
    pitch: float
    """The mean pitch; 60 is middle C."""
    compass: float
    """Semitones between the lowest and the highest tenth of the notes."""
    classes: float
    """How many of the twelve pitch classes are in use, as e to the entropy of their shares: few in one key."""
    loudness: float
    """The mean velocity."""
    dynamics: float
    """The standard deviation of the velocities."""
    repetition: float
    """The share of phrases of four notes whose steps from note to note came before: 0 wanders, 1 runs in a circle."""


def pitch_classes(performance: Performance) -> Array:
    """The share of the notes that are a C, a C sharp, ... [12]"""
    counts = np.bincount(performance.pitches % 12, minlength=12).astype(np.float64)
    found: Array = counts / max(1, len(performance))
    return found


def measure(performance: Performance) -> Measures:
    """One performance, or an excerpt of one, in numbers."""
    count = len(performance)
    if not count:
        raise CutawayError("There are no notes to measure.")
    lengths = performance.ends - performance.starts
    whole = max(1e-9, performance.seconds - float(performance.starts.min()))
    shares = pitch_classes(performance)
    there = shares[shares > 0]
    low, high = np.quantile(performance.pitches, [0.1, 0.9])
    return Measures(
        density=count / whole,
        together=float(lengths.sum()) / max(1e-9, sounding(performance)),
        length=float(np.median(lengths)),
        pitch=float(performance.pitches.mean()),
        compass=float(high - low),
        classes=float(np.exp(-(there * np.log(there)).sum())),
        loudness=float(performance.velocities.mean()),
        dynamics=float(performance.velocities.std()),
        repetition=repetition(performance),
    )


def sounding(performance: Performance) -> float:
    """Seconds in which any note sounds."""
    starts = performance.starts
    reach = np.maximum.accumulate(performance.ends)
    gaps = np.maximum(0.0, starts[1:] - reach[:-1])
    return float(reach[-1] - starts[0] - gaps.sum())


def repetition(performance: Performance) -> float:
    """The share of runs of four notes, by their steps in pitch, that stood before in the same performance."""
    steps = np.diff(performance.pitches)
    if len(steps) < PHRASE:
        return 0.0
    phrases = np.lib.stride_tricks.sliding_window_view(steps, PHRASE - 1)
    _, first = np.unique(phrases, axis=0, return_index=True)
    return 1 - len(first) / len(phrases)


@dataclass(frozen=True)
class Spread:
    """One measure over many performances."""

    low: float
    """Of a hundred, the five lowest lie below."""
    middle: float
    high: float


def spread(measures: Sequence[Measures]) -> dict[str, Spread]:
    """Where nine of ten performances lie, measure by measure."""
    if not measures:
        raise CutawayError("There are no performances to measure.")
    found = {}
    for one in fields(Measures):
        low, middle, high = np.quantile([getattr(each, one.name) for each in measures], [0.05, 0.5, 0.95])
        found[one.name] = Spread(float(low), float(middle), float(high))
    return found


def within(measures: Sequence[Measures], reference: Mapping[str, Spread]) -> dict[str, float]:
    """The share of performances that lie where nine of ten of the reference do; a faithful model has about 0.9."""
    found = {}
    for name, one in reference.items():
        values = np.array([getattr(each, name) for each in measures])
        found[name] = float(((values >= one.low) & (values <= one.high)).mean())
    return found


def excerpts(performance: Performance, seconds: float) -> list[Performance]:
    """A performance in pieces as long as those it is compared with: density and repetition depend on the length."""
    count = int(performance.seconds // seconds)
    found = [performance.between(at * seconds, (at + 1) * seconds) for at in range(count)]
    return [one for one in found if len(one)] or [performance]
