"""Where the notes stand among the events: the same notes that decoding gives, whatever the events."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cutaway.music import Events
from cutaway.music.events import END, OFF
from cutaway.music.performance import Performance
from cutaway.music.places import placed


@given(st.lists(st.one_of(st.integers(58, 62), st.integers(186, 190), st.integers(0, END - 1)), max_size=60))
def test_the_notes_are_those_that_decoding_gives_and_each_event_belongs_to_its_note(ids):
    found = placed(ids)
    decoded = Events().decode(ids)
    same = Performance.of(found.starts, found.ends, found.pitches, found.velocities)
    for name in ("starts", "ends", "pitches", "velocities"):
        assert np.array_equal(getattr(same, name), getattr(decoded, name)), name
    for note, (on, off, pitch) in enumerate(zip(found.on, found.off, found.pitches, strict=True)):
        assert ids[on] == pitch and found.owners()[on] == note
        if off >= 0:
            assert ids[off] == OFF + pitch and off > on and found.owners()[off] == note
    assert np.count_nonzero(found.owners() >= 0) == len(found.on) + np.count_nonzero(found.off >= 0)
    begun = placed([END, *ids])  # as a model reads it
    assert np.array_equal(begun.on, found.on + 1) and np.array_equal(begun.starts, found.starts)
