"""The tree of what may come: each probability is that of the whole text read anew."""

from __future__ import annotations

import pytest

from cutaway.inspect.ahead import WIDTHS, ahead


def test_every_probability_is_that_of_the_text_read_anew(tiny_lm):
    ids = tiny_lm.ids("Once upon a time")
    ways = ahead(tiny_lm, ids)
    levels, count = [], 1
    for width in WIDTHS:
        count *= width
        levels.append(count)
    assert len(ways) == sum(levels)
    for way in ways:
        before, at = [], way
        while at.parent is not None:
            at = ways[at.parent]
            before.insert(0, at.token.id)
        best = tiny_lm.predict([*ids, *before], k=4)
        chance = next(one.probability for one in best if one.id == way.token.id)
        assert way.probability == pytest.approx(chance, rel=1e-3)
        assert way.path == pytest.approx(way.probability * (1 if way.parent is None else ways[way.parent].path))
    assert [one.token.id for one in ways[:4]] == [one.id for one in tiny_lm.predict(ids, k=4)]


def test_it_ends_with_the_context(tiny_lm):
    full = [1] * tiny_lm.config.context
    assert {one.parent for one in ahead(tiny_lm, full)} == {None}
    assert max(one.parent or 0 for one in ahead(tiny_lm, full[:-1])) < 4
