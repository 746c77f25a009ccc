"""A piano of our own: a performance as sound, by adding up sines. numpy is all it needs.

A string sounds in partials that are a little sharper the higher they are (it is stiff), each dying away in its own
time, the high ones first, in two stages; the hammer's blow adds a short thud. Harder blows bring out the high partials.
When the key comes up, the damper ends the note in a moment (the pedal is in the lengths of the notes already).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np

from cutaway.atomic import replacing
from cutaway.music.performance import Array, Performance

RATE = 44_100
"""Samples in a second."""
PARTIALS = 16
RELEASE = 0.12
"""Seconds in which the damper quietens a string."""
TAIL = 1.0
"""Seconds of silence-to-be after the last note."""
QUIET = 6.9
"""Nepers (60 dB) after which a note is not heard any more."""
LOUDEST = 0.89
"""Of full scale: -1 dB."""
CLICKLESS = 0.002
"""Seconds in which a note comes up from nothing."""


def frequency(pitch: int) -> float:
    """Hertz, A above middle C (69) being 440."""
    return float(440.0 * 2 ** ((pitch - 69) / 12))


def decay(pitch: int) -> float:
    """Seconds in which the first partial falls by 60 dB: long in the bass, short at the top."""
    return float(np.clip(14 * 2 ** (-(pitch - 21) / 22), 0.5, 14))


def tone(pitch: int, hard: bool, seconds: float) -> Array:
    """One struck string, soft or hard, undamped. [sample]"""
    time = np.arange(int(seconds * RATE), dtype=np.float32) / RATE
    base, long = frequency(pitch), decay(pitch)
    stiffness = 7e-5 * 2 ** ((pitch - 40) / 12)
    found = np.zeros(len(time), np.float32)
    slope = 0.62 if hard else 1.15
    for n in range(1, PARTIALS + 1):
        sharp = base * n * float(np.sqrt(1 + stiffness * n * n))
        if sharp > 0.45 * RATE:
            break
        weight = n**-slope * (0.6 if n == 7 else 1.0)  # the hammer strikes near where the seventh has a node
        fall = QUIET / long * (1 + 0.25 * (n - 1))
        envelope = 0.7 * np.exp(-2.4 * fall * time) + 0.3 * np.exp(-0.7 * fall * time)
        # Two or three strings that are not quite in tune with each other: the sound lives.
        beat = 1 + 0.08 * np.cos(np.float32(2 * np.pi * (0.35 + 0.11 * n)) * time)
        found += np.float32(weight) * envelope * beat * np.sin(np.float32(2 * np.pi * sharp) * time + np.float32(n))
    thud = np.random.default_rng(pitch).standard_normal(min(len(time), RATE // 20)).astype(np.float32)
    smooth = np.convolve(thud, np.hanning(33).astype(np.float32) / 16, "same") if len(thud) > 33 else thud
    found[: len(thud)] += (0.25 if hard else 0.08) * smooth * np.exp(-90 * time[: len(thud)])
    rise = min(len(time), int(CLICKLESS * RATE))
    found[:rise] *= np.linspace(0, 1, rise, dtype=np.float32)
    return found / np.float32(sum(n**-slope for n in range(1, PARTIALS + 1)))


def synthesize(performance: Performance, progress: Callable[[int, int], None] | None = None) -> Array:
    """The performance in two channels, float32 from -1 to 1, low notes on the left. [sample, channel]"""
    total = int((performance.seconds + TAIL) * RATE) + 1
    sound = np.zeros((total, 2), np.float32)
    for done, pitch in enumerate(pitches := np.unique(performance.pitches).tolist()):
        mine = performance.pitches == pitch
        starts, ends, velocities = (one[mine] for one in (performance.starts, performance.ends, performance.velocities))
        most = min(decay(pitch), float((ends - starts).max()) + RELEASE)
        soft, hard = (tone(pitch, kind, most) for kind in (False, True))
        right = np.float32(np.clip(0.5 + (pitch - 64) / 120, 0.2, 0.8))
        sides = np.sqrt(np.array([1 - right, right], np.float32))
        for start, end, velocity in zip(starts.tolist(), ends.tolist(), velocities.tolist(), strict=True):
            first, blow = int(start * RATE), velocity / 127
            count = min(len(soft), total - first, int((end - start + RELEASE) * RATE) + 1)
            note = (blow**1.6) * ((1 - blow) * soft[:count] + blow * hard[:count])
            damped = min(count, int((end - start) * RATE))
            note[damped:] *= np.linspace(1, 0, count - damped, dtype=np.float32) ** 2
            sound[first : first + count] += note[:, None] * sides
        if progress is not None:
            progress(done + 1, len(pitches))
    return level(sound)


def level(sound: Array) -> Array:
    """As loud as can be without clipping: one factor for all of it, so that loud stays loud beside soft."""
    peak = float(np.abs(sound).max(initial=0.0))
    return sound if not peak else sound * np.float32(LOUDEST / peak)


def wav_bytes(sound: Array) -> bytes:
    """A WAV file of 16 bits a sample."""
    channels = sound.shape[1]
    data = np.rint(np.clip(sound, -1, 1) * 32767).astype("<i2").tobytes()
    size = 2 * channels
    head = struct.pack("<4sIHHIIHH4sI", b"fmt ", 16, 1, channels, RATE, RATE * size, size, 16, b"data", len(data))
    return b"RIFF" + struct.pack("<I", 4 + len(head) + len(data)) + b"WAVE" + head + data


def write_file(data: bytes, path: Path) -> None:
    """Whole, or not at all."""
    stale = re.compile(re.escape(path.name))
    with replacing(path.parent, last=path.name, stale=stale, size=len(data)) as folder:
        (folder / path.name).write_bytes(data)


def write_wav(performance: Performance, path: str | Path, progress: Callable[[int, int], None] | None = None) -> None:
    """Play the performance into a WAV file."""
    write_file(wav_bytes(synthesize(performance, progress)), Path(path))
