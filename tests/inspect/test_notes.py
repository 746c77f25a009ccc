"""What notes attend to: the weights of their events, added up by hand."""

from __future__ import annotations

import pytest

from cutaway.errors import CutawayError
from cutaway.inspect.notes import notes
from cutaway.inspect.runs import run
from cutaway.music.events import END, OFF, SHIFT
from tests.music.conftest import make_pianist

LONG = SHIFT + 20
IDS = [END, 60, LONG, 64, LONG, OFF + 60, 67, LONG, OFF + 64, OFF + 67]
ENDS = {1: 5, 3: 8, 6: 9}
"""Where the note that begins there ends."""


def test_a_note_gets_what_its_beginning_and_its_end_get():
    carried = run(make_pianist(3), IDS)
    weights = carried["blocks.1.attention.weights"]  # [head, query, key]
    found = notes(carried, 1, k=2)
    assert found.notes == (1, 3, 6)
    for head in range(2):
        wanted = {
            to: float(weights[head, 6, on] + weights[head, 6, ENDS[on]] * (ENDS[on] < 6)) for to, on in ((0, 1), (1, 3))
        }
        order = sorted(wanted, key=wanted.get, reverse=True)
        assert found.attended[2, head].tolist() == order
        assert found.weights[2, head].tolist() == pytest.approx([wanted[one] for one in order], abs=1e-6)
        assert found.rest[2, head] == pytest.approx(1 - sum(wanted.values()), abs=1e-6)
        assert found.attended[0, head].tolist() == [-1, -1] and found.rest[0, head] == pytest.approx(
            1
        )  # the first note


def test_a_model_of_texts_has_no_notes(tiny_lm):
    with pytest.raises(CutawayError, match="reads text"):
        notes(run(tiny_lm, "Once upon"))
