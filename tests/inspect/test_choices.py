"""How a token was chosen is what the sampling did: the same text, the same chances, and the die inside the piece."""

from __future__ import annotations

import pytest

from cutaway.decoding.sampling import Sampling, probabilities
from cutaway.errors import CutawayError
from cutaway.inspect.choices import choices

TEXT = "Once upon a time there was"


@pytest.mark.parametrize(
    "settings", [{}, {"top_k": None, "temperature": 1.7}, {"top_k": 9, "top_p": 0.6}, {"top_k": 1}, {"top_k": 320}]
)
def test_the_text_is_the_one_that_generate_writes(tiny_lm, settings):
    found = choices(tiny_lm, TEXT, 12, seed=5, **settings)
    written = tiny_lm.generate(TEXT, max_tokens=12, seed=5, **settings)
    assert found.result.ids == written.ids
    assert [step.chosen for step in found.steps][: len(written.ids)] == written.ids


def test_each_die_falls_into_the_piece_of_the_token_chosen(tiny_lm):
    for step in choices(tiny_lm, TEXT, 12, seed=2, temperature=1.3, top_p=0.9).steps:
        [(start, end)] = [(start, end) for number, start, end in step.line if number == step.chosen]
        assert start <= step.die < end


def test_the_chances_are_those_of_the_sampling_and_the_cut_is_named(tiny_lm):
    how = Sampling(temperature=0.8, top_k=6, top_p=0.7)
    step = choices(tiny_lm, TEXT, 1, k=20, seed=3, temperature=0.8, top_k=6, top_p=0.7).steps[0]
    logits = tiny_lm.logits(TEXT)[-1]
    wanted = probabilities(logits.numpy(), how)
    for one in step.candidates:
        assert one.chance == pytest.approx(float(wanted[one.id]), rel=1e-4, abs=1e-9)
        assert one.own == pytest.approx(float(logits.softmax(-1)[one.id]), rel=1e-4)
        assert one.warm == pytest.approx(float((logits / 0.8).softmax(-1)[one.id]), rel=1e-4)
    cuts = [one.cut for one in step.candidates if one.id != step.chosen]
    assert step.after_top_k == 6 and step.possible == int((wanted > 0).sum()) < 6
    assert set(cuts) >= {"top_k", "top_p"}
    assert sum(end - start for _, start, end in step.line) == pytest.approx(1)


def test_the_likeliest_is_taken_without_a_die(tiny_lm):
    steps = choices(tiny_lm, TEXT, 3, top_k=1).steps
    assert all(step.die is None and step.chosen == step.candidates[0].id for step in steps)


def test_other_settings_are_refused(tiny_lm):
    with pytest.raises(CutawayError, match="temperature, top-k, top-p"):
        choices(tiny_lm, TEXT, 3, repetition_penalty=1.2)
