"""Tables of what usually follows: made, stored, refused, and worth something."""

from __future__ import annotations

import pickle
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cutaway
from cutaway.errors import CutawayError
from cutaway.runtime.native import library
from cutaway.runtime.native.engine import Engine
from cutaway.runtime.native.ngrams import NGrams, beside, make_ngrams, text_of
from cutaway.runtime.native.reading_cost import PRESUMED, Cost
from cutaway.runtime.native.speculation import FirstOf, LookUp, Usual

if library.load() is None:
    pytest.skip("the native engine is not built here: no C++ compiler", allow_module_level=True)


@given(st.lists(st.integers(0, 5), max_size=120), st.integers(1, 3))
def test_a_guess_is_what_followed_most_often(ids, n):
    """As plain counting finds it, for the longest end of the text that was seen often enough."""
    table = make_ngrams(np.array(ids, np.uint64))
    followed = defaultdict(Counter)
    for order in (1, 2, 3):
        for at in range(len(ids) - order):
            followed[tuple(ids[at : at + order])][ids[at + order]] += 1
    for at in range(n, len(ids)):
        past = ids[max(0, at - 3) : at]
        token, chance = table.guess(past)
        usual = next((found for order in (3, 2, 1) if (found := followed[tuple(past[-order:])]).total() >= 3), None)
        if usual is None:
            assert chance == 0
        else:
            assert usual[token] == max(usual.values())
            assert chance == pytest.approx(usual[token] / usual.total(), abs=0.26)  # a shorter end may say nearly this


def test_a_table_holds_what_is_worth_most():
    rng = np.random.default_rng(0)
    often, seldom = [1, 2, 3, 4] * 50, [*rng.integers(5, 1000, 3000), *([7, 8, 9] * 3)]
    table = make_ngrams(np.array([*often, *seldom], np.uint64), slots=8)
    assert table.guess([1, 2, 3])[0] == 4
    assert (table.table > 0).sum() <= 0.7 * 8


def test_texts_are_apart():
    assert text_of([[1, 2], [3]], end=9).tolist() == [9, 1, 2, 9, 3]


def test_a_table_comes_back_from_its_file_and_from_a_copy(tmp_path):
    table = make_ngrams(np.array([1, 2, 3] * 20, np.uint64))
    table.save(tmp_path / "draft.npy")
    for again in (NGrams.load(tmp_path / "draft.npy", 4), pickle.loads(pickle.dumps(table))):
        assert (again.table == table.table).all() and again.guess([1, 2]) == table.guess([1, 2]) == (3, 1.0)
    with pytest.raises(CutawayError, match=r"tokens up to 3, and this model has 3"):
        NGrams.load(tmp_path / "draft.npy", 3)


@pytest.mark.parametrize("content", [b"", b"text", np.zeros(6), np.ones(8, np.uint64), np.zeros((2, 2), np.uint64)])
def test_what_is_no_table_is_refused(content, tmp_path):
    path = tmp_path / "draft.npy"
    path.write_bytes(content) if isinstance(content, bytes) else np.save(path, content)
    with pytest.raises(CutawayError, match=r"no table of n-grams"):
        NGrams.load(path, 10)


def test_a_model_with_a_table_writes_the_same_in_fewer_calls(tiny_lm, tmp_path, monkeypatch):
    folder = tmp_path / "model"
    tiny_lm.save(folder)
    settings = {"max_tokens": 30, "temperature": 0.3, "seed": 4}
    plain = cutaway.load(folder, weights="int8")
    written = [plain.generate("Once", **settings | {"seed": seed}) for seed in range(4)]
    assert plain.ngrams is None
    # A table that knows this text by heart: what it guesses is nearly always right.
    make_ngrams(text_of([one.ids for one in written] * 3, tiny_lm.config.end)).save(beside(folder))
    guessing = cutaway.load(folder, weights="int8")
    calls = []
    read = Engine.read
    monkeypatch.setattr(Engine, "read", lambda self, *given: calls.append(1) or read(self, *given))
    monkeypatch.setattr(Cost, "took", lambda self, tokens, seconds: None)  # what is worth it depends on no clock here
    for seed, before in enumerate(written):
        calls.clear()
        again = guessing.generate("Once", **settings | {"seed": seed})
        assert again.ids == before.ids and again.logprobs == before.logprobs
        assert len(calls) < 0.6 * len(before.ids)


def test_a_packed_file_has_its_table_next_to_it(tmp_path):
    (tmp_path / "m.cutaway").touch()
    assert beside(tmp_path / "m.cutaway") == tmp_path / "m.draft.npy"


def test_only_what_is_worth_its_reading_is_guessed():
    table, cost = make_ngrams(np.array([1, 2, 1, 3] * 30, np.uint64)), Cost()
    usual = Usual(table, cost)
    assert usual.draft([3, 1], 3) == [2, 1, 3]
    cost.one_more = 1.0
    assert usual.draft([3, 1], 3) == []
    cost.one_more = PRESUMED
    for _ in range(60):  # wrong every time: it is believed less and less
        usual.learn(0, len(usual.draft([3, 1], 3)))
    assert usual.draft([3, 1], 3) == []


def test_what_reading_costs_is_learned():
    cost = Cost()
    for _ in range(5):
        cost.took(1, 1.0), cost.took(3, 1.4), cost.took(99, 50.0)
    assert cost.one_more == pytest.approx(0.2)
    cost.took(1, 9.0)  # a machine has other things to do
    assert cost.one_more == pytest.approx(0.2)


def test_the_texts_own_past_is_asked_first():
    table = make_ngrams(np.array([4, 5] * 9, np.uint64))
    both = FirstOf([LookUp(), Usual(table, Cost())])
    assert both.draft([1, 2, 3, 4, 9, 1, 2, 3], 3) == [4, 9, 1]
    assert both.draft([7, 7, 4], 2) == [5, 4]
