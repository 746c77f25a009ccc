"""The recurrent translator that ships: small, says what it learned from, and turns words round as its page shows."""

from __future__ import annotations

import pytest

import cutaway
from cutaway.checkpoint.locate import locate
from cutaway.cli import run
from cutaway.inspect.pairs import attentions, pair_run, translation


@pytest.fixture(scope="module")
def lm() -> cutaway.LanguageModel:
    return cutaway.load("rnn")


def test_it_is_small_and_its_card_says_what_it_learned_from():
    folder = locate("rnn")
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 8_000_000
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "Tatoeba" in card and "CC BY 2.0 FR" in card and "{" not in card


def test_it_translates_and_turns_the_adjective_round(lm, capsys):
    found = translation(pair_run(lm, lm.pair("She bought a red car.")))
    assert found.text == "Elle a acheté une voiture rouge." and found.ended
    seen = attentions(pair_run(lm, lm.pair("She bought a red car.", found.text)))
    words = [one.text for one in found.target]
    looked = {word: seen.keys[int(seen.weights[0, row].argmax())].text for row, word in enumerate(words)}
    assert looked[" voiture"] == " car" and looked[" rouge"] == " red"
    assert run(["translate", "She bought a red car.", "--model", "rnn"]) == 0
    assert capsys.readouterr().out.strip() == found.text
