"""MIDI files in and out: what two other parsers read is what we read; pedal, tempo and damage."""

from __future__ import annotations

import contextlib
import io
import tarfile
from pathlib import Path

import mido
import numpy as np
import pretty_midi
import pytest

from cutaway.errors import CutawayError
from cutaway.music import Events, Performance, read_midi, write_midi
from cutaway.music.midi import midi_bytes, parse_midi


def midi(*tracks: list[mido.Message | mido.MetaMessage], ticks: int = 480, kind: int = 1) -> bytes:
    file = mido.MidiFile(type=kind, ticks_per_beat=ticks)
    for messages in tracks:
        file.tracks.append(mido.MidiTrack(messages))
    data = io.BytesIO()
    file.save(file=data)
    return data.getvalue()


def on(note: int, time: int = 0, velocity: int = 64, channel: int = 0) -> mido.Message:
    return mido.Message("note_on", note=note, time=time, velocity=velocity, channel=channel)


def off(note: int, time: int = 0, channel: int = 0) -> mido.Message:
    return mido.Message("note_off", note=note, time=time, channel=channel)


def pedal(value: int, time: int = 0) -> mido.Message:
    return mido.Message("control_change", control=64, value=value, time=time)


def tempo(microseconds: int, time: int = 0) -> mido.MetaMessage:
    return mido.MetaMessage("set_tempo", tempo=microseconds, time=time)


def rows(played: Performance) -> list[tuple[int, float, float]]:
    return [
        (int(p), round(float(s), 4), round(float(e), 4))
        for p, s, e in zip(played.pitches, played.starts, played.ends, strict=True)
    ]


def test_seconds_follow_every_change_of_tempo():
    data = midi(
        [tempo(500_000), tempo(1_000_000, 480), tempo(250_000, 480)], [on(60), off(60, 1440), on(62), off(62, 480)]
    )
    assert rows(parse_midi(data)) == [(60, 0.0, 1.75), (62, 1.75, 2.0)]


def test_tracks_sound_together_and_drums_do_not():
    drums = [on(36, channel=9), off(36, 480, channel=9)]
    assert rows(parse_midi(midi([on(60), off(60, 960)], [on(67, 480), off(67, 480)], drums))) == [
        (60, 0.0, 1.0),
        (67, 0.5, 1.0),
    ]


def test_the_pedal_holds_a_note_until_it_comes_up_or_the_key_is_struck_again():
    data = midi([pedal(127), on(60), off(60, 480), on(64), off(64, 240), on(60, 240), off(60, 240), pedal(0, 720)])
    assert rows(parse_midi(data)) == [(60, 0.0, 1.0), (64, 0.5, 2.0), (60, 1.0, 2.0)]


def test_a_pedal_that_never_comes_up_holds_until_the_last_note_has_ended():
    data = midi([pedal(127), on(60), off(60, 480), on(64), off(64, 960)])
    assert rows(parse_midi(data)) == [(60, 0.0, 1.5), (64, 0.5, 1.5)]


def test_a_half_pedal_below_the_middle_holds_nothing():
    assert rows(parse_midi(midi([pedal(63), on(60), off(60, 480), pedal(0, 480)]))) == [(60, 0.0, 0.5)]


def test_format_0_running_status_and_note_ons_that_mean_off_are_read():
    track = bytes([0, 0x90, 60, 64, 0x83, 0x60, 60, 0, 0, 62, 64, 0x83, 0x60, 62, 0, 0, 0xFF, 0x2F, 0])
    head = b"MThd" + (6).to_bytes(4, "big") + b"\0\0\0\1\1\xe0"
    data = head + b"MTrk" + len(track).to_bytes(4, "big") + track
    assert rows(parse_midi(data)) == [(60, 0.0, 0.5), (62, 0.5, 1.0)]


def test_what_is_written_is_what_two_other_parsers_read(tmp_path: Path):
    chance = np.random.default_rng(0)
    starts = np.arange(200) * 0.15 + chance.uniform(0, 0.1, 200)  # 88 keys in turn: none is struck while it is down
    lengths, velocities = chance.uniform(0.02, 2, 200), chance.integers(1, 128, 200)
    played = Performance.of(starts, starts + lengths, np.arange(200) * 7 % 88 + 21, velocities)
    events = Events()
    ids = events.encode(played)
    write_midi(events.decode(ids), tmp_path / "out.mid")
    assert events.encode(read_midi(tmp_path / "out.mid")) == ids

    ours = read_midi(tmp_path / "out.mid")
    theirs = pretty_midi.PrettyMIDI(str(tmp_path / "out.mid")).instruments[0].notes
    key = lambda note: (round(note[1], 3), note[0])  # noqa: E731
    expected = sorted(((n.pitch, n.start, n.end, n.velocity) for n in theirs), key=key)
    assert np.allclose(expected, np.stack([ours.pitches, ours.starts, ours.ends, ours.velocities], 1), atol=1e-3)
    downs = [m for m in mido.MidiFile(tmp_path / "out.mid") if m.type == "note_on" and m.velocity]
    assert sorted(m.note for m in downs) == sorted(ours.pitches.tolist())


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not a MIDI file"),
        (b"Dear diary, today I did not practise.", "not a MIDI file"),
        (midi([on(60), off(60, 480)])[:-8], "damaged"),
        (b"MThd" + b"\0" * 30, "damaged|no notes"),
        (midi([tempo(500_000)]), "no notes"),
        (midi([on(36, channel=9), off(36, 480, channel=9)]), "drums"),
        (midi([tempo(16_000_000), on(60), off(60, 480 * 2300)]), "hours"),
        (midi([one for _ in range(12) for one in (on(60, 0x0FFFFFFF), off(60, 16))]), "damaged.*start"),
        (b"MThd\0\0\0\6\0\0\0\1\1\xe0MTrk\0\0\0\x10\0\x90<@\xff\xff\xff\xff\x7f\x80<@\0\xff/\0", "damaged"),
    ],
    ids=[
        "empty",
        "text",
        "cut off",
        "zeros",
        "no notes",
        "drums only",
        "ten hours",
        "negative times",
        "negative delta",
    ],
)
def test_a_bad_file_is_named(data: bytes, says: str, tmp_path: Path):
    path = tmp_path / "bad.mid"
    path.write_bytes(data)
    with pytest.raises(CutawayError, match=says) as caught:
        read_midi(path)
    assert str(path) in str(caught.value)


def test_no_damage_ends_in_anything_but_notes_or_a_sentence():
    whole = midi([tempo(500_000), on(60), pedal(127, 10), off(60, 480), on(62, 3), off(62, 70)], [on(70), off(70, 99)])
    chance = np.random.default_rng(1)
    for _ in range(500):
        data = bytearray(whole)
        for place in chance.integers(14, len(data), 3):
            data[place] = chance.integers(256)
        with contextlib.suppress(CutawayError):
            parse_midi(bytes(data[: int(chance.integers(14, len(data) + 1))]))


GIANT, ASAP = "giantmidi_piano/giantmidi_piano_56.tar.xz", "asap_performances/asap_performances_midi.tar.xz"


@pytest.mark.parametrize(
    ("name", "every"),
    [(GIANT, 15), pytest.param(GIANT, 1, marks=pytest.mark.slow), pytest.param(ASAP, 1, marks=pytest.mark.slow)],
)
def test_real_performances_come_back(name: str, every: int, shared_data: Path):
    archive = shared_data / name
    if not archive.is_file():
        pytest.skip(f"{archive} is not here")
    events = Events()
    with tarfile.open(archive) as files:
        members = [member for member in files if member.name.endswith(".mid")]
        for member in members[::every]:
            played = parse_midi(files.extractfile(member).read(), member.name)
            ids = events.encode(played)
            back = events.decode(ids)
            assert len(back) == len(played)
            assert np.abs(np.sort(back.starts) - np.sort(played.starts)).max() <= 0.005 + 1e-9
            order = np.lexsort((played.pitches, np.rint(played.starts / 0.01)))
            found = np.lexsort((back.pitches, np.rint(back.starts / 0.01)))
            assert np.array_equal(played.pitches[order], back.pitches[found])
            assert events.encode(parse_midi(midi_bytes(back))) == ids


def test_nothing_half_written_is_left(tmp_path: Path):
    (tmp_path / "file.txt").write_text("")
    with pytest.raises(CutawayError, match="unchanged"):
        write_midi(Performance.of([0], [1], [60], [64]), tmp_path / "file.txt" / "out.mid")
    assert [path.name for path in tmp_path.iterdir()] == ["file.txt"]
