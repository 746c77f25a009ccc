"""The pianist that ships: small enough, with its card and licence; what it composes is valid for other programs."""

from __future__ import annotations

import json

import pytest

import cutaway
from cutaway.checkpoint.locate import SHIPPED, locate
from cutaway.music.compose import compose
from cutaway.music.midi import midi_bytes
from tests.music.test_compose import check_playable, notes, read_by_mido, read_by_pretty_midi

pytestmark = pytest.mark.skipif("pianist" not in SHIPPED, reason="no pianist is included yet")
SEVERAL = 20


@pytest.fixture(scope="module")
def shipped() -> cutaway.LanguageModel:
    return cutaway.load("pianist")


def composed(lm: cutaway.LanguageModel, count: int, seconds: float, seed: int) -> None:
    """Compose so many; each is a performance that can be played, and that two other programs read as it was written."""
    for one in compose(lm, seconds, seed, count):
        check_playable(one.ids)
        data = midi_bytes(one.performance)
        assert read_by_mido(data) == read_by_pretty_midi(data) == notes(one.performance)


def test_it_is_small_says_where_it_comes_from_and_plays(shipped):
    folder = locate("pianist")
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 16_000_000
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "CC BY 4.0" in card and "GiantMIDI-Piano" in card and "{" not in card
    assert json.loads((folder / "task.json").read_text())["name"] == "performance" and (folder / "loss.svg").is_file()
    assert shipped.config.relative
    composed(shipped, 2, 3, seed=1)


@pytest.mark.slow
def test_200_from_nothing_are_valid_and_read_alike_by_other_programs(shipped):
    for seed in range(200 // SEVERAL):
        composed(shipped, SEVERAL, 10, seed)
