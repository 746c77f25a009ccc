"""Performances become events and come back: no note lost, times within half a step, velocities within a bin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutaway.errors import CutawayError
from cutaway.music import Events, Performance
from cutaway.music.events import BIN, END, OFF, SHIFT, STEP, VELOCITY

EVENTS = Events()
notes = st.lists(
    st.tuples(st.floats(0, 20), st.floats(0, 5), st.integers(58, 64), st.integers(1, 127)), min_size=0, max_size=40
)


def performance(rows: list[tuple[float, float, int, int]]) -> Performance:
    starts, lengths, pitches, velocities = (list(column) for column in zip(*rows, strict=True)) if rows else ([],) * 4
    return Performance.of(starts, np.add(starts, lengths), pitches, velocities)


def by_pitch(played: Performance, times: str) -> tuple[np.ndarray, np.ndarray]:
    order = np.lexsort((getattr(played, times), played.pitches))
    return played.pitches[order], getattr(played, times)[order]


@settings(max_examples=300, deadline=None)
@given(notes)
def test_no_note_is_lost_and_none_moves_by_more_than_half_a_step(rows):
    played = performance(rows)
    back = EVENTS.decode(EVENTS.encode(played))
    assert len(back) == len(played)
    for times in ("starts", "ends"):
        (pitches, before), (same, after) = by_pitch(played, times), by_pitch(back, times)
        assert np.array_equal(pitches, same)
        assert np.abs(before - after).max(initial=0) <= STEP / 2 + 1e-9
    loud = [np.lexsort((p.velocities, np.rint(p.starts / STEP), p.pitches)) for p in (played, back)]
    assert np.abs(played.velocities[loud[0]] - back.velocities[loud[1]]).max(initial=0) <= BIN


@settings(max_examples=200, deadline=None)
@given(notes)
def test_events_come_back_as_they_were(rows):
    ids = EVENTS.encode(performance(rows))
    assert EVENTS.encode(EVENTS.decode(ids)) == ids


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, len(EVENTS) - 1), max_size=80))
def test_any_events_are_a_performance(ids):
    played = EVENTS.decode(ids)
    until = ids.index(END) if END in ids else len(ids)
    assert len(played) == sum(token < OFF for token in ids[:until])
    assert (played.ends >= played.starts).all()


def test_the_papers_example_reads_as_the_paper_has_it():
    """Three keys go down one after the other, then come up: the figure of the performance encoding."""
    played = Performance.of([0.0, 0.5, 1.0], [2.0, 2.0, 2.0], [60, 64, 67], [80, 80, 80])
    names = [EVENTS.name(token) for token in EVENTS.encode(played)]
    assert names == [
        "velocity 20 of 32", "note on 60", "shift 500 ms", "note on 64", "shift 500 ms", "note on 67",
        "shift 1000 ms", "note off 60", "note off 64", "note off 67",
    ]  # fmt: skip


def test_a_long_silence_is_seconds_and_a_rest():
    played = Performance.of([2.34], [2.5], [60], [1])
    assert EVENTS.encode(played) == [SHIFT + 99, SHIFT + 99, SHIFT + 33, VELOCITY, 60, SHIFT + 15, OFF + 60]


def test_the_first_key_to_go_down_is_the_first_to_come_up():
    back = EVENTS.decode([60, SHIFT + 9, 60, SHIFT + 9, OFF + 60, SHIFT + 9, OFF + 60])
    assert back.starts.tolist() == pytest.approx([0, 0.1])
    assert back.ends.tolist() == pytest.approx([0.2, 0.3])


@pytest.mark.parametrize("token", [-1, 389])
def test_there_are_389_events(token: int):
    assert len(EVENTS) == 389
    with pytest.raises(CutawayError, match="388"):
        EVENTS.decode([60, token])


@pytest.mark.parametrize(
    ("note", "says"),
    [((0, 1, 128, 60), "pitch"), ((0, 1, 60, 0), "velocity"), ((-1, 1, 60, 60), "start"), ((2, 1, 60, 60), "end")],
)
def test_what_no_piano_plays_is_refused(note: tuple[int, ...], says: str):
    with pytest.raises(CutawayError, match=says):
        Performance.of(*([value] for value in note))
