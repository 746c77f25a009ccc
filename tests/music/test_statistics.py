"""Performances in numbers, checked on some that were made to have them; folders read with their bad files named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cutaway.errors import CutawayError
from cutaway.music import Performance, read_folder, write_midi
from cutaway.music.statistics import excerpts, measure, pitch_classes, spread, within


def test_measures_are_what_they_say():
    starts = np.arange(40) * 0.25
    played = Performance.of(starts, starts + 0.5, [60, 64, 67, 72] * 10, [40, 80] * 20)
    found = measure(played)
    assert found.density == pytest.approx(40 / 10.25)
    assert found.together == pytest.approx(40 * 0.5 / 10.25)
    assert (found.length, found.loudness, found.dynamics) == (pytest.approx(0.5), 60, 20)
    assert found.repetition == pytest.approx(1 - 4 / 37)  # four phrases, over and over
    assert pitch_classes(played).tolist() == [0.5, 0, 0, 0, 0.25, 0, 0, 0.25, 0, 0, 0, 0]
    assert found.classes == pytest.approx(2**1.5)


def test_silence_is_not_sounding():
    found = measure(Performance.of([0.0, 10.0], [1.0, 11.0], [60, 62], [64, 64]))
    assert found.together == 1.0 and found.repetition == 0


def test_random_notes_repeat_nothing_and_have_every_class():
    chance = np.random.default_rng(0)
    found = measure(Performance.of(np.arange(500), np.arange(500) + 1, chance.integers(21, 109, 500), [64] * 500))
    assert found.repetition < 0.02 and found.classes > 11.5


def test_what_is_drawn_from_the_same_lies_within_nine_times_of_ten():
    chance = np.random.default_rng(1)

    def some(count: int, loud: int) -> list:
        rows = (chance.normal(loud, 10, 30).clip(1, 127) for _ in range(count))
        return [measure(Performance.of(np.arange(30), np.arange(30) + 1, [60] * 30, row)) for row in rows]

    reference = spread(some(400, 64))
    assert within(some(400, 64), reference)["loudness"] == pytest.approx(0.9, abs=0.05)
    assert within(some(50, 100), reference)["loudness"] == 0
    assert reference["loudness"].low < reference["loudness"].middle < reference["loudness"].high


def test_excerpts_are_as_long_as_asked():
    starts = np.arange(100) * 0.1
    cut = excerpts(Performance.of(starts, starts + 0.1, [60] * 100, [64] * 100), 3.0)
    assert [len(one) for one in cut] == [30, 30, 30] and all(one.starts[0] < 0.1 for one in cut)


def test_nothing_has_no_measures():
    with pytest.raises(CutawayError, match="no notes"):
        measure(Performance.of([], [], [], []))


def test_a_folder_goes_on_after_its_bad_files_and_names_them(tmp_path: Path, scale: Performance):
    (tmp_path / "deep").mkdir()
    write_midi(scale, tmp_path / "deep" / "good.mid")
    write_midi(scale, tmp_path / "b.MIDI")
    (tmp_path / "text.mid").write_text("hello")
    (tmp_path / "cut.mid").write_bytes((tmp_path / "b.MIDI").read_bytes()[:-9])
    (tmp_path / "readme.txt").write_text("not music")
    found = read_folder(tmp_path)
    assert [path.name for path in found.performances] == ["b.MIDI", "good.mid"]
    assert [any(name in one for one in found.refused) for name in ("text.mid", "cut.mid")] == [True, True]
    assert str(found).startswith("2 performances, 16 notes") and str(found).endswith("left out: 2")
    with pytest.raises(CutawayError, match="no MIDI file"):
        (tmp_path / "empty").mkdir()
        read_folder(tmp_path / "empty")
    with pytest.raises(CutawayError, match="There is no file"):
        read_folder(tmp_path / "nowhere")
