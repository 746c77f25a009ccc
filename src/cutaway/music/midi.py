"""MIDI files in and out, through symusic: all formats, several tracks, tempo changes, pedal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cutaway.atomic import replacing
from cutaway.errors import CutawayError
from cutaway.music.performance import Array, Performance, sustained

PEDAL = 64
"""The controller that is the sustain pedal."""
LONGEST = 4 * 3600
"""Seconds: what claims to be longer is no performance but a damaged file, or a whole evening that should be cut."""
TICKS = 500
"""To a quarter note, of which there are two in a second: one tick is a millisecond."""


def library() -> Any:
    try:
        import symusic
    except ImportError:
        raise CutawayError("Music needs the symusic package: pip install 'cutaway[music]'", "no_music") from None
    return symusic


def read_midi(path: str | Path) -> Performance:
    """The performance in a MIDI file: the notes of all tracks but drums, the pedal worked into their lengths."""
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CutawayError(f"{path} cannot be read: {error.strerror or error}.") from None
    return parse_midi(data, str(path))


def parse_midi(data: bytes, source: str = "the MIDI file") -> Performance:
    """The same from a file's bytes; `source` is what to call it in errors."""
    if data[:4] not in (b"MThd", b"RIFF"):
        raise CutawayError(f"{source} is not a MIDI file: it does not begin with MThd.", "not_midi", name=source)
    midi = library()
    try:
        score = midi.Score.from_midi(data)
    except Exception as error:  # the library raises no class of its own
        raise damaged(source, str(error)) from None
    seconds = clock(score)
    tracks = [track for track in score.tracks if len(track.notes)]
    pitched = [track for track in tracks if not track.is_drum]
    if not pitched:
        if tracks:
            raise CutawayError(f"{source} has drums and nothing else.", "midi_drums", name=source)
        raise CutawayError(f"{source} has no notes.", "midi_empty", name=source)
    try:
        parts = [with_pedal(track, seconds) for track in pitched]
    except CutawayError as error:  # times so long that they turned negative, say
        raise damaged(source, str(error).rstrip(".")) from None
    whole = Performance.of(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("starts", "ends", "pitches", "velocities")
        )
    )
    if whole.seconds > LONGEST:
        raise CutawayError(
            f"{source} lasts {whole.seconds / 3600:,.1f} hours, and at most {LONGEST // 3600} are read. "
            "Cut it into pieces, or look whether its tempo is damaged.",
            "midi_long",
            name=source,
            most=LONGEST // 3600,
        )
    return whole


def damaged(source: str, why: str) -> CutawayError:
    return CutawayError(f"{source} is a damaged MIDI file ({why}).", "midi_damaged", name=source)


def clock(score: Any) -> Any:
    """A function from the file's ticks to seconds, through all its changes of tempo."""
    tempos = score.tempos.numpy()
    times, lengths = tempos["time"].astype(np.float64), tempos["mspq"].astype(np.float64)
    if not len(times) or times[0] > 0:
        times, lengths = np.append(0.0, times), np.append(500_000.0, lengths)
    a_tick = lengths / 1e6 / max(1, score.ticks_per_quarter)  # seconds
    before = np.append(0.0, np.cumsum(np.diff(times) * a_tick[:-1]))

    def seconds(ticks: Array) -> Array:
        at = np.searchsorted(times, ticks, side="right") - 1
        found: Array = before[at] + (ticks - times[at]) * a_tick[at]
        return found

    return seconds


def with_pedal(track: Any, seconds: Any) -> Performance:
    notes, controls = track.notes.numpy(), track.controls.numpy()
    starts = notes["time"].astype(np.int64)
    velocities = np.clip(notes["velocity"], 1, 127)
    ends = starts + np.maximum(notes["duration"], 0)
    played = Performance.of(seconds(starts), seconds(ends), notes["pitch"], velocities)
    pedal = controls["number"] == PEDAL
    order = np.argsort(controls["time"][pedal], kind="stable")
    return sustained(played, seconds(controls["time"][pedal])[order], controls["value"][pedal][order])


def midi_bytes(performance: Performance) -> bytes:
    """A MIDI file with one piano track; times to the millisecond."""
    symusic = library()
    score = symusic.Score(TICKS)
    track = symusic.Track("Piano", 0, False)
    starts = np.rint(performance.starts * 2 * TICKS).astype(np.int32)
    ends = np.rint(performance.ends * 2 * TICKS).astype(np.int32)
    track.notes = symusic.Note.from_numpy(
        starts,
        np.maximum(1, ends - starts),
        performance.pitches.astype(np.int8),
        performance.velocities.astype(np.int8),
    )
    score.tracks.append(track)
    score.tempos.append(symusic.Tempo(0, 120))
    data: bytes = score.dumps_midi()
    return data


def write_midi(performance: Performance, path: str | Path) -> None:
    """Write the performance as a MIDI file, whole or not at all."""
    import re

    path, data = Path(path), midi_bytes(performance)
    with replacing(path.parent, last=path.name, stale=re.compile(re.escape(path.name)), size=len(data)) as folder:
        (folder / path.name).write_bytes(data)
