"""The same music in another key and at another tempo, as tokens: what the performance itself would give."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutaway.music import Events, Performance
from cutaway.music.augment import stretched, transposed, varied
from cutaway.music.events import encode

note = st.tuples(st.integers(0, 900), st.integers(1, 300), st.integers(30, 90), st.integers(0, 31))


def performance(notes: list[tuple[int, int, int, int]]) -> Performance:
    one_each = {pitch: (start, length, pitch, velocity) for start, length, pitch, velocity in notes}
    starts, lengths, pitches, velocities = np.array(list(one_each.values())).T
    return Performance.of(starts * 0.01, (starts + lengths) * 0.01, pitches, velocities * 4 + 3 - (velocities == 31))


@settings(max_examples=60, deadline=None)
@given(st.lists(note, min_size=1, max_size=8).map(performance), st.integers(-12, 12))
def test_transposed_events_are_those_of_the_transposed_performance(played, steps):
    assert np.array_equal(transposed(encode(played), steps), encode(played.transposed(steps)))


@settings(max_examples=60, deadline=None)
@given(st.lists(note, min_size=1, max_size=8).map(performance), st.floats(0.8, 1.25))
def test_stretched_events_stand_where_those_of_the_stretched_performance_do(played, factor):
    found, wanted = Events().decode(stretched(encode(played), factor)), played.stretched(factor)
    assert len(found) == len(wanted)
    for ours, theirs in ((found.starts, wanted.starts), (found.ends, wanted.ends)):
        assert np.abs(np.sort(ours) - np.sort(theirs)).max() <= 0.005 + 1e-9


def test_at_the_edge_of_the_keyboard_all_move_less():
    low = encode(Performance.of([0.0, 0.0], [1.0, 1.0], [2, 50], [80, 80]))
    assert sorted(Events().decode(transposed(low, -5)).pitches.tolist()) == [0, 48]


def test_a_window_is_varied_by_its_number_alone_and_stays_as_long_at_most():
    chance = np.random.default_rng(0)
    ids = chance.integers(0, 389, 200)
    one = varied(ids, 3, 0.05, np.random.default_rng(7))
    assert np.array_equal(one, varied(ids, 3, 0.05, np.random.default_rng(7)))
    assert not np.array_equal(one, varied(ids, 3, 0.05, np.random.default_rng(8))) and len(one) <= 200
    assert np.array_equal(varied(ids, 0, 0.0, np.random.default_rng(1)), ids)


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_time_at_the_end_of_a_window_is_kept(factor):
    ids = np.array([60, 256 + 99, 256 + 49])  # a key goes down, and a second and a half pass
    assert stretched(ids, factor).tolist() == ([60, 256 + 74] if factor == 0.5 else [60, 355, 355, 355])
