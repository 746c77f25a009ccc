"""A word in two texts: its vectors, their cosines and neighbours, beside a computation written out."""

from __future__ import annotations

import pytest
import torch

import cutaway
from cutaway.errors import CutawayError
from cutaway.inspect.runs import run
from cutaway.inspect.senses import SENTENCES, layers_of, sentences
from cutaway.inspect.views import senses
from cutaway.language_model import LanguageModel
from cutaway.models.bert.model import Bert
from cutaway.models.bert.shape import Config
from cutaway.models.elmo.model import Elmo
from cutaway.models.elmo.shape import Shape
from cutaway.text.spelled_words import SpelledWords
from cutaway.text.wordpiece import WordPiece
from cutaway.words.included import static_vectors

PLAN, WOOD = "Let us stick to the plan.", "He found a stick in the wood."


@pytest.fixture(scope="module")
def builtin() -> LanguageModel:
    return cutaway.load()


@pytest.fixture(scope="module", params=["elmo", "bert"])
def other(request) -> LanguageModel:
    torch.manual_seed(1)
    texts = sentences()
    if request.param == "elmo":
        words = SpelledWords.learn(texts, 200)
        return LanguageModel(Elmo(Shape(words=200, width=8, cell_width=12, filters=((1, 4), (3, 8)))).eval(), words)  # type: ignore[arg-type]
    pieces = WordPiece.train(texts, 300)
    return LanguageModel(Bert(Config(vocabulary=len(pieces), width=16, heads=2, layers=2, context=64)).eval(), pieces)  # type: ignore[arg-type]


def test_the_two_senses_of_stick_have_neighbours_of_their_own_kind(builtin):
    found = senses(run(builtin, PLAN), other=WOOD, word="stick", layer=3)
    verb, noun = found.neighbours
    assert all(" to " in one.after[:4] or "with" in one.after[:6] for one in verb[:3] if one.word == "stick")
    assert {one.word for one in (*verb[:3], *noun[:3])} == {"stick"}
    assert not {one.after for one in verb} & {one.after for one in noun}
    assert found.cosines[-1] < found.cosines[0]  # the text makes them differ more and more
    assert [one.word for one in found.static_neighbours] == [word for word, _ in static_vectors().nearest("stick", 6)]


def test_the_numbers_are_those_of_the_trace(builtin):
    found = senses(run(builtin, PLAN), other=WOOD, word="stick", layer=2, k=4)
    one, two = builtin.trace(PLAN), builtin.trace(WOOD)
    [[left], [right]] = found.positions
    assert [
        builtin.tokenizer.decode([builtin.ids(text)[at]]).strip() for text, at in ((PLAN, left), (WOOD, right))
    ] == ["stick"] * 2
    for number, name in enumerate(found.layers):
        a, b = one[name][left], two[name][right]
        assert found.cosines[number] == pytest.approx(float(a @ b / a.norm() / b.norm()), abs=1e-5)
    torch.testing.assert_close(torch.from_numpy(found.vectors[0]), one["blocks.1.residual"][left])
    # The nearest, found by going through every word of the sentences that begins with a space.
    best = found.neighbours[1][0]
    vector, cosines = two["blocks.1.residual"][right], {}
    for text in sentences():
        ids, trace = builtin.ids(text), builtin.trace(text, keep="blocks.1.residual")["blocks.1.residual"]
        for at, token in enumerate(ids):
            if builtin.tokenizer.decode([token]) == " stick":
                cosines[text] = float(trace[at] @ vector / trace[at].norm() / vector.norm())
    assert best.word == "stick"
    assert best.before + best.word + best.after == max(cosines, key=cosines.__getitem__)
    assert best.cosine == pytest.approx(max(cosines.values()), abs=1e-4)


def test_it_is_the_same_code_for_other_kinds(other):
    found = senses(run(other, PLAN), other=WOOD, word="stick", k=3)
    assert found.layers == layers_of(other)
    one, two = other.trace(PLAN), other.trace(WOOD)
    for number, name in enumerate(found.layers):
        a, b = (trace[name][list(at)].mean(0) for trace, at in zip((one, two), found.positions, strict=True))
        assert found.cosines[number] == pytest.approx(float(a @ b / a.norm() / b.norm()), abs=1e-5)
    assert all(len(near) == 3 for near in found.neighbours)
    if "mixed" in found.layers:
        assert found.positions == ((3,), (4,))
        assert found.layers[-1] == "mixed"


def test_without_a_layer_it_is_the_mix_or_the_middle(builtin, other):
    assert senses(run(builtin, PLAN), other=WOOD, k=1).layers[3] == "blocks.2.residual"
    assert senses(run(builtin, PLAN), other=WOOD, k=1).layer == 3
    found = senses(run(other, PLAN), other=WOOD, word="stick", k=1)
    assert found.layers[found.layer] == ("mixed" if "mixed" in found.layers else "blocks.0.residual")


def test_without_a_word_it_is_the_longest_that_both_have(builtin):
    assert senses(run(builtin, "The bear likes honey"), other="He likes the bear", k=1).word == "likes"


def test_a_word_of_several_tokens_has_their_mean(builtin):
    text = "the robotically brave one"
    found = senses(run(builtin, text), other="so robotically brave", word="robotically", layer=0, k=1)
    assert len(found.positions[0]) > 1
    mean = builtin.trace(text)["residual.0"][list(found.positions[0])].mean(0)
    torch.testing.assert_close(torch.from_numpy(found.vectors[0]), mean)
    assert len(found.static) == 0
    assert found.static_neighbours == ()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"other": WOOD, "word": "plan"}, "stands in both"),
        ({"other": "nothing here", "word": ""}, "no word in common"),
        ({"other": WOOD, "word": "stick", "layer": 99}, "There is no layer 99"),
    ],
)
def test_what_cannot_be_compared_is_refused(builtin, given, says):
    with pytest.raises(CutawayError, match=says):
        senses(run(builtin, PLAN), **given)


def test_the_example_sentences_have_both_senses():
    assert SENTENCES.is_file()
    assert sum("stick to" in text or "stick with" in text for text in sentences()) >= 5
    assert sum(" stick." in text or "stick and" in text or "stick in" in text for text in sentences()) >= 3
