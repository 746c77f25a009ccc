"""The small machines of the sister articles that ship: small, honest about their data, and doing what they are for."""

from __future__ import annotations

import json

import pytest

import cutaway
from cutaway.checkpoint.locate import locate
from cutaway.cli import run
from cutaway.inspect.pairs import pair_run, translation
from cutaway.inspect.runs import run as carried
from cutaway.inspect.senses import senses

LEARNED_FROM = {
    "rnn-plain": ("Tatoeba", "CC BY 2.0 FR"),
    "transformer": ("Tatoeba", "CC BY 2.0 FR"),
    "bert": ("stories15M", "MIT"),
    "elmo": ("Simple English Wikipedia", "CC BY-SA 3.0"),
}


@pytest.mark.parametrize("name", LEARNED_FROM)
def test_each_is_small_and_its_card_says_what_it_learned_from(name):
    folder = locate(name)
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 8_000_000
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert all(word in card for word in LEARNED_FROM[name]) and "{" not in card


@pytest.mark.parametrize("name", ["rnn-plain", "transformer"])
def test_both_translators_translate_a_sentence_they_know(name, capsys):
    lm = cutaway.load(name)
    found = translation(pair_run(lm, lm.pair("I am tired.")))
    assert found.ended and "fatigué" in found.text
    assert run(["translate", "I am tired.", "--model", name]) == 0
    assert "fatigué" in capsys.readouterr().out


def test_bert_puts_words_into_gaps_and_needs_no_model_to_be_named(capsys):
    assert run(["fill", "Once upon a [MASK], there was a little girl.", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["model"] == "bert" and said["gaps"][0]["predictions"][0]["text"] == "time"
    assert run(["embed", "A cat sat.", "A dog ran.", "--json"]) == 0
    vectors = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["model"] for one in vectors] == ["bert", "bert"] and len(vectors[0]["vector"]) == 192


def test_elmo_has_two_vectors_for_a_word_of_two_senses():
    lm = cutaway.load("elmo")
    found = senses(carried(lm, "Let us stick to the plan."), "He found a stick in the wood.", "stick")
    cosines = dict(zip(found.layers, map(float, found.cosines), strict=True))
    assert cosines["residual.0"] == pytest.approx(1, abs=1e-4)  # spelled alike
    assert min(cosines.values()) < 0.8
