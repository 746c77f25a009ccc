"""What turns things into tokens, texts or performances, keeps to one protocol: there and back, and in pieces."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutaway.codec import Codec
from cutaway.music import Events, Performance
from cutaway.text.tokenizer import Tokenizer

TEXT: Codec[str] = Tokenizer.load("gpt2")
MUSIC: Codec[Performance] = Events()
note = st.tuples(st.integers(0, 300), st.integers(0, 200), st.integers(58, 62), st.integers(0, 31))


def played(notes: list[tuple[int, int, int, int]]) -> Performance:
    """At whole steps and in the middle of a velocity's bin, so that nothing is rounded; no key goes down twice."""
    one_each = {pitch: (start, length, pitch, velocity) for start, length, pitch, velocity in notes}
    starts, lengths, pitches, velocities = np.array(list(one_each.values()), np.int64).reshape(-1, 4).T
    loud = np.minimum(127, velocities * 4 + 3)
    return Performance.of(starts * 0.01, (starts + lengths) * 0.01, pitches, loud)


THINGS = [(TEXT, st.text()), (MUSIC, st.lists(note, max_size=6).map(played))]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, str):
        return one == other
    columns = ("starts", "ends", "pitches", "velocities")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in columns)


@pytest.mark.parametrize(("codec", "things"), THINGS, ids=["text", "music"])
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_thing_comes_back_from_its_tokens(codec, things, data):
    thing = data.draw(things)
    ids = codec.encode(thing)
    assert all(0 <= token < len(codec) for token in ids) and codec.end not in ids
    assert same(codec.decode(ids), thing)


@pytest.mark.parametrize("codec", [TEXT, MUSIC], ids=["text", "music"])
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_the_pieces_of_a_stream_add_up_to_the_whole_whatever_the_tokens_are(codec, data):
    stream = codec.stream()
    for _ in range(2):  # the second time: finishing made it ready for something new
        ids = data.draw(st.lists(st.integers(0, len(codec) - 1), max_size=40))
        pieces = [*map(stream.add, ids), stream.finish()]
        assert same(functools.reduce(operator.add, pieces), codec.decode(ids))


@pytest.mark.parametrize("codec", [TEXT, MUSIC], ids=["text", "music"])
def test_a_token_that_there_is_not_is_refused(codec):
    from cutaway.errors import CutawayError

    for token in (-1, len(codec)):
        with pytest.raises(CutawayError, match="There is no"):
            codec.decode([token])
