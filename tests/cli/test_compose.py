"""`cutaway compose`, and `cutaway evaluate` on MIDI files."""

from __future__ import annotations

import json
import struct
import wave

import pytest

from cutaway.checkpoint import locate
from cutaway.music import Performance, read_midi, write_midi
from tests.music.conftest import make_pianist


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "pianist"
    make_pianist(spread=0.1).save(path)
    return path


def test_a_performance_is_written_played_and_drawn(cutaway, folder, tmp_path):
    ran = cutaway("compose", "-o", tmp_path / "out.mid", "--seconds", 2, "--seed", 1, "--wav", "--png", "-m", folder)
    assert ran.code == 0 and ran.out.split() == [str(tmp_path / f"out.{kind}") for kind in ("mid", "wav", "png")]
    assert "seed 1" in ran.err
    seconds = read_midi(tmp_path / "out.mid").seconds
    with wave.open(str(tmp_path / "out.wav")) as sound:
        assert sound.getnframes() / sound.getframerate() == pytest.approx(seconds + 1, abs=0.1)
    assert struct.unpack(">I", (tmp_path / "out.png").read_bytes()[16:20])[0] > 40 * seconds
    again = cutaway("compose", "-o", tmp_path / "again.mid", "--seconds", 2, "--seed", 1, "-m", folder)
    assert again.code == 0 and (tmp_path / "again.mid").read_bytes() == (tmp_path / "out.mid").read_bytes()


def test_several_at_once_as_json_and_measured_against_others(cutaway, folder, tmp_path, monkeypatch):
    (tmp_path / "some").mkdir()
    out = tmp_path / "some" / "out.mid"
    ran = cutaway(
        "compose", "-o", out, "--seconds", 2, "-n", 3, "--seed", 2, "--key", "C major", "-m", folder, "--json"
    )
    found = [json.loads(line) for line in ran.out.splitlines()]
    assert [one["midi"] for one in found] == [str(out.with_stem(f"out-{n}")) for n in (1, 2, 3)]
    assert all(one["notes"] and one["pitch_classes"][1] == 0 for one in found)
    (tmp_path / "some" / "bad.mid").write_text("hello")
    ran = cutaway("evaluate", "--on", tmp_path / "some", "--against", out.with_stem("out-1"), "-m", folder, "--json")
    assert ran.json["performances"] == 3 and ran.json["loss_per_note"] > ran.json["loss_per_event"] > 0
    assert set(ran.json["within"]) == set(ran.json["measures"]) and len(ran.json["refused"]) == 1
    monkeypatch.setattr(locate, "SHIPPED", tuple(name for name in locate.SHIPPED if name != "pianist"))
    ran = cutaway("evaluate", "--on", tmp_path / "some")
    assert ran.code == 0 and "density" in ran.out and "bad.mid is not a MIDI file" in ran.err
    assert "nats" not in ran.out  # no pianist was named, and none is there


def test_a_primer_and_a_melody_are_read_from_files(cutaway, folder, tmp_path):
    write_midi(Performance.of([0.0, 0.5], [0.4, 1.0], [60, 64], [71, 71]), tmp_path / "given.mid")
    for how in ("--primer", "--melody"):
        ran = cutaway(
            "compose", "-o", tmp_path / "out.mid", how, tmp_path / "given.mid", "--seconds", 1, "-s", 1, "-m", folder
        )
        assert ran.code == 0
        played = read_midi(tmp_path / "out.mid")
        assert {60, 64} <= set(played.pitches.tolist()) and len(played) > 2
    ran = cutaway("compose", "-o", tmp_path / "out.mid", "--primer", tmp_path / "none.mid", "-m", folder)
    assert ran.code == 2 and "none.mid" in ran.err


def test_mistakes_get_a_sentence(cutaway, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(locate, "SHIPPED", tuple(name for name in locate.SHIPPED if name != "pianist"))
    ran = cutaway("compose", "-o", tmp_path / "out.mid")
    assert ran.code == 2 and "No pianist is included yet" in ran.err and "--task performance" in ran.err
    for args, says in (
        (("-o", tmp_path / "out.txt"), "should end in .mid"),
        (("-o", tmp_path / "no" / "out.mid"), "There is no folder"),
        (("-o", tmp_path / "out.mid", "--key", "H moll"), "There is no key"),
        (("-o", tmp_path / "out.mid", "--seconds", 0), "lasts up to"),
        (("-o", tmp_path / "out.mid", "-n", 0), "1 or more"),
    ):
        ran = cutaway("compose", *args, "-m", folder)
        assert ran.code == 2 and says in ran.err, args
    assert not (tmp_path / "out.mid").exists()
    ran = cutaway("evaluate", "--on", "lambada", "--against", tmp_path)
    assert ran.code == 2 and "--against" in ran.err


def test_a_pianist_that_ships_is_used(cutaway, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(locate, "SHIPPED", tuple({*locate.SHIPPED, "pianist"}))
    monkeypatch.setattr(locate, "DATA", folder.parent)
    ran = cutaway("compose", "-o", tmp_path / "out.mid", "--seconds", 1, "--seed", 1, "--json")
    assert ran.code == 0 and ran.json["model"] == "pianist"
