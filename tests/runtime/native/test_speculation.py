"""Guesses change the speed and nothing else."""

from __future__ import annotations

import pytest

from cutaway.language_model import LanguageModel
from cutaway.runtime.native import library
from cutaway.runtime.native.engine import Engine
from cutaway.runtime.native.pack import pack
from cutaway.runtime.native.speculation import LookUp, Pace

if library.load() is None:
    pytest.skip("the native engine is not built here: no C++ compiler", allow_module_level=True)

REPEATED = "the orders given it, the orders given it, the orders given it, "


@pytest.fixture(params=["look up", "small model", "the model itself"])
def guessing(request, tiny_lm, make):
    engine = Engine(pack(tiny_lm.model, "int8"))
    if request.param != "look up":
        small = tiny_lm.model if "itself" in request.param else make(vocabulary=320, context=48)
        engine.draft = Engine(pack(small, "int8"))
    return LanguageModel(engine, tiny_lm.tokenizer)


@pytest.fixture(scope="module")
def plain(tiny_lm):
    engine = Engine(pack(tiny_lm.model, "int8"))
    engine.look_up = False
    return LanguageModel(engine, tiny_lm.tokenizer)


@pytest.mark.parametrize(
    "settings",
    [{"top_k": 1}, {"top_k": 2}, {"temperature": 0.7}, {"samples": 2}, {"beams": 2}, {"overflow": "slide", "top_k": 3}],
    ids=str,
)
@pytest.mark.parametrize("prompt", ["Once", REPEATED])
def test_the_same_seed_writes_the_same_text(guessing, plain, settings, prompt):
    """Not only the same distribution: every draw meets the same scores, to the last bit."""
    for seed in range(3):
        settings = {"max_tokens": 60 if "overflow" in settings else 25, "seed": seed, **settings}
        ours, theirs = guessing.generate([prompt], **settings), plain.generate([prompt], **settings)
        assert [one.ids for one in ours] == [one.ids for one in theirs]
        assert [one.logprobs for one in ours] == [one.logprobs for one in theirs]


def test_right_guesses_save_calls(tiny_lm, monkeypatch):
    engine = Engine(pack(tiny_lm.model, "float32"))
    calls = []
    read = Engine.read
    monkeypatch.setattr(Engine, "read", lambda self, *given: calls.append(1) or read(self, *given))
    batch = engine.open()
    ids = [5, 9, 7, 11] * 11
    batch.add([ids[:12]])
    for token in ids[12:]:
        batch.step([token])
    assert len(calls) <= 1 + (len(ids) - 12) // 3


def test_what_followed_before_is_the_guess():
    look_up = LookUp()
    assert look_up.draft([1, 2, 3, 4], 3) == []
    assert look_up.draft([1, 2, 3, 4, 9, 1, 2, 3], 3) == [4, 9, 1]
    assert look_up.draft([1, 2, 3, 4, 9, 1, 2, 3, 5, 1, 2, 3], 1) == [5]


def test_wrong_guesses_become_rare():
    pace, guesses = Pace(), 0
    for _ in range(400):
        if pace.next():
            guesses += 1
            pace.learn(0, 3)
    assert guesses <= 12
