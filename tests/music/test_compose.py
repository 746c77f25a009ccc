"""Whatever a model would rather write, what comes out can be played; primer, key and melody are kept to."""

from __future__ import annotations

import io

import mido
import numpy as np
import pretty_midi
import pytest

from cutaway.errors import CutawayError
from cutaway.music import Events, Performance
from cutaway.music.compose import compose
from cutaway.music.events import END, OFF, SHIFT, VELOCITY
from cutaway.music.midi import midi_bytes
from cutaway.music.rules import Rules, key_notes
from tests.music.conftest import make_pianist


def check_playable(ids: list[int]) -> None:
    """Each note-off has its note-on, none hangs, no key goes down twice, and no note takes no time."""
    down: dict[int, int] = {}
    now = 0
    for token in ids:
        if token < OFF:
            assert token not in down
            down[token] = now
        elif token < SHIFT:
            assert now > down.pop(token - OFF)
        elif token < VELOCITY:
            now += token - SHIFT + 1
        assert token != END
    assert not down


def notes(performance: Performance) -> list[tuple[int, int, int, int]]:
    columns = (performance.starts, performance.ends)
    times = (np.rint(one * 1000).astype(int).tolist() for one in columns)
    return sorted(zip(*times, performance.pitches.tolist(), performance.velocities.tolist(), strict=True))


def read_by_mido(data: bytes) -> list[tuple[int, int, int, int]]:
    now, down, found = 0.0, {}, []
    for message in mido.MidiFile(file=io.BytesIO(data)):
        now += message.time
        if message.type == "note_on" and message.velocity:
            assert message.note not in down
            down[message.note] = (now, message.velocity)
        elif message.type in ("note_on", "note_off"):
            start, velocity = down.pop(message.note)
            found.append((round(start * 1000), round(now * 1000), message.note, velocity))
    assert not down
    return sorted(found)


def read_by_pretty_midi(data: bytes) -> list[tuple[int, int, int, int]]:
    [track] = pretty_midi.PrettyMIDI(io.BytesIO(data)).instruments
    return sorted((round(n.start * 1000), round(n.end * 1000), n.pitch, n.velocity) for n in track.notes)


def test_every_one_of_two_hundred_is_read_alike_by_two_other_parsers():
    for seed, spread in ((0, 0.05), (1, 0.6), (2, 2.0), (3, 8.0)):  # from uniform to a mania
        lm = make_pianist(seed, spread)
        for one in compose(lm, seconds=3, seed=seed, samples=50):
            check_playable(one.ids)
            assert 1 < one.performance.seconds <= 3 + 1 + 2 + 0.01
            data = midi_bytes(one.performance)
            assert read_by_mido(data) == read_by_pretty_midi(data) == notes(one.performance)


def test_what_one_becomes_depends_on_seed_and_number_alone(pianist):
    several = compose(pianist, seconds=4, seed=5, samples=3)
    alone = compose(pianist, seconds=4, seed=5)
    assert several[0].ids == alone[0].ids
    assert len({tuple(one.ids) for one in several}) == 3
    assert compose(pianist, seconds=4, seed=6)[0].ids != alone[0].ids


def test_torch_and_the_engine_keep_to_the_same_rules(pianist):
    import cutaway

    torch_lm = cutaway.LanguageModel(pianist.model, pianist.tokenizer)
    [one] = compose(torch_lm, seconds=2, seed=1)
    check_playable(one.ids)


def test_longer_than_the_context_goes_on(pianist):
    [one] = compose(pianist, seconds=60, seed=2)
    assert len(one.ids) > 3 * pianist.config.context and one.dropped > pianist.config.context
    check_playable(one.ids)
    assert one.performance.seconds > 60
    gaps = np.diff(np.sort(one.performance.starts))
    assert gaps.max() <= 6 + 1e-6  # while others sound; 4 in silence
    assert one.performance.starts.min() <= 0.5 + 1e-6  # and it begins at once


def test_a_primer_is_played_first_and_unchanged(pianist, scale):
    [one] = compose(pianist, seconds=3, seed=1, primer=scale)
    first = one.performance.between(0, scale.seconds - 0.01)
    assert notes(first) == notes(Events().decode(Events().encode(scale)))
    assert one.performance.seconds > scale.seconds + 1


@pytest.mark.parametrize(
    ("key", "classes"),
    [
        ("C major", {0, 2, 4, 5, 7, 9, 11}),
        ("A minor", {9, 11, 0, 2, 4, 5, 7, 8}),
        ("F#", {6, 8, 10, 11, 1, 3, 5}),
        ("Bbm", {10, 0, 1, 3, 5, 6, 8, 9}),
    ],
)
def test_a_key_is_kept_to(pianist, key, classes):
    assert key_notes(key) == classes
    [one] = compose(pianist, seconds=5, seed=3, key=key)
    assert len(one.performance) and set((one.performance.pitches % 12).tolist()) <= classes


@pytest.mark.parametrize("key", ["", "X major", "C dorian", "C major seventh", "###"])
def test_a_key_that_there_is_not_is_refused(key):
    with pytest.raises(CutawayError, match="There is no key"):
        key_notes(key)


def test_a_melody_is_heard_note_for_note_with_others_around_it(pianist, scale):
    melody = scale + Performance.of(
        [1.0, 1.2, 1.2], [1.3, 1.4, 1.2], [72, 72, 40], [90, 90, 20]
    )  # struck again; no time
    for seed in range(2):
        [one] = compose(pianist, seed=seed, melody=melody)
        check_playable(one.ids)
        played = set(notes(one.performance))
        for start, end, pitch, velocity in notes(Events().decode(Events().encode(melody))):
            end = {(1000, 72): 1200, (1200, 40): 1210}.get((start, pitch), end)
            assert (start, end, pitch, velocity) in played, seed
        assert len(played) > len(melody)


def test_rules_leave_something_to_do_whatever_was_drawn():
    """The likeliest worst case: uniform chances, no model. Something is allowed at every step, until the end."""
    chance = np.random.default_rng(0)
    for _ in range(30):
        rules, ids = Rules(steps=200, prompt=1), [END]
        while True:
            logits = rules(
                ids, np.where(chance.random(389) < 0.05, chance.normal(size=389), -np.inf).astype(np.float32)
            )
            assert np.isfinite(logits).any()
            ids.append(int(logits.argmax()))
            if ids[-1] == END:
                break
        check_playable(ids[1:-1])


def test_what_cannot_be_composed_is_refused(pianist, tiny_lm):
    with pytest.raises(CutawayError, match="writes text"):
        compose(tiny_lm)
    for seconds in (0, -1, 1e6):
        with pytest.raises(CutawayError, match="lasts up to"):
            compose(pianist, seconds=seconds)
    with pytest.raises(CutawayError, match="1 or more"):
        compose(pianist, samples=0)


def test_events_can_be_gone_on_from_in_the_middle_of_a_note(pianist, scale):
    """The key that is down is the model's to let go; the events given stay as they were."""
    ids = Events().encode(scale)
    cut = ids.index(64) + 1  # its third note has just begun
    [found] = compose(pianist, 3, seed=2, primer=ids[:cut])
    check_playable([*ids[:cut], *found.ids])
    assert notes(found.performance)[:2] == notes(Events().decode(ids))[:2]
