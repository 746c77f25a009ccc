"""What the contest says of a translation, held against the model itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cutaway
from cutaway.checkpoint.locate import DATA, locate
from cutaway.inspect.between import between
from cutaway.inspect.contest import Entry, entry, kind_of, names, words_of
from cutaway.inspect.pairs import attentions, pair_run
from cutaway.inspect.runs import run
from cutaway.tasks import load_task
from cutaway.tasks.answer import Writing, question, written
from tests.inspect.test_pairs import make

SOURCE = "The fox runs."


def entered(lm: cutaway.LanguageModel) -> tuple[list[int], list[int], Entry]:
    """A random model's translation: the source's ids, the target's, and what the contest says of them."""
    prompt = lm.pair(SOURCE)
    result = lm.generate(prompt, max_tokens=9, top_k=1)
    target = [*result.ids, *([lm.config.end] if result.reason == "end" else [])]
    return prompt, target, entry(lm, prompt, len(prompt) - 1, target, 0.5)


@pytest.mark.parametrize("name", ["plain", "attention", "pre", "post"])
def test_a_translations_probability_is_the_models_own_and_that_of_its_words(name):
    lm = make(name)
    prompt, target, found = entered(lm)
    assert found.logprob == pytest.approx(lm.score([*prompt, *target]).logprob, rel=1e-4)
    assert found.per_word == pytest.approx(found.logprob / len(found.words))
    end = 0.0
    if found.ended:
        end = found.logprob - lm.score([*prompt, *target[:-1]]).logprob
    assert sum(one.logprob for one in found.words) + end == pytest.approx(found.logprob, rel=1e-4)
    assert found.source == tuple(SOURCE.split()) and found.seconds == 0.5
    assert found.kind == {"pre": "transformer", "post": "transformer"}.get(name, name)
    assert "".join(one.text for one in found.words) == "".join(found.text.split())


@pytest.mark.parametrize("name", ["attention", "pre"])
def test_what_a_word_took_is_the_attention_of_its_tokens(name):
    lm = make(name)
    prompt, target, found = entered(lm)
    seen = pair_run(lm, [*prompt, *target])
    layers = [attentions(seen, "cross", layer).weights.mean(0) for layer in range(attentions(seen).layers)]
    own, sources = words_of(lm.tokenizer, target[: len(target) - found.ended]), words_of(lm.tokenizer, prompt[:-1])
    for look, table in ((found.mean, np.mean(layers, 0)), (found.last, layers[-1])):
        assert look is not None
        for row, word in enumerate(own):
            wanted = [table[list(word)].mean(0)[list(one)].sum() for one in sources]
            np.testing.assert_allclose(look.weights[row], wanted, atol=1e-5)
        np.testing.assert_allclose(look.weights.sum(1) + look.rest, 1, atol=1e-5)


def test_without_attention_there_is_nothing_to_show():
    _, _, found = entered(make("plain"))
    assert found.mean is None and found.last is None and found.words


@pytest.mark.skipif(not (DATA / "translator" / "task.json").is_file(), reason="no translator is included")
def test_a_decoder_alone_is_read_at_the_tokens_before_each():
    lm, task = cutaway.load("translator"), load_task(locate("translator"))
    prompt, _ = question(lm, task, "The black cat is under the table.")
    [result] = written(lm, task, [prompt], Writing(4))
    found = entry(lm, prompt, len(prompt) - 1, [*result.ids, lm.config.end], 0.0)
    assert found.ended and found.kind == "gpt2" and found.text == result.text.strip()
    assert found.text.split() == [one.text for one in found.words]
    assert sum(one.logprob for one in found.words) == pytest.approx(sum(result.logprobs), rel=1e-4)
    end = lm.logits([*prompt, *result.ids])[-1].log_softmax(-1)[lm.config.end]
    assert found.logprob == pytest.approx(sum(result.logprobs) + float(end), rel=1e-4)
    seen = run(lm, [*prompt, *result.ids])
    rows = range(len(prompt) - 1, len(prompt) - 1 + len(result.ids))
    tables = [between(seen, rows, range(len(prompt) - 1), layer) for layer in range(lm.config.layers)]
    words = words_of(lm.tokenizer, result.ids)
    assert found.mean is not None and found.last is not None
    for look, rest in ((found.mean, np.mean([one.rest for one in tables], 0)), (found.last, tables[-1].rest)):
        np.testing.assert_allclose(look.rest, [rest[list(word)].mean() for word in words], atol=1e-5)
        assert (look.rest > 0.01).any()


class Pieces:
    """A tokenizer whose tokens are these."""

    def __init__(self, *pieces: str | bytes):
        self.pieces = [one.encode() if isinstance(one, str) else one for one in pieces]

    def token_bytes(self, token: int) -> bytes:
        return self.pieces[token]


@pytest.mark.parametrize(("pieces", "wanted"), [
    (["Le", " ren", "ard", " court", "."], ["Le", " renard", " court."]),
    (["J", "'", "ai", " ", " ", " vu"], ["J'ai", "   vu"]),
    ([" ", "Le", " chat", " ", "\n"], [" Le", " chat \n"]),
    (["狐狸", "在", "跑", "。"], ["狐狸", "在", "跑", "。"]),
    (["狐", "狸".encode()[:1], "狸".encode()[1:]], ["狐", "狸"]),
    (["dé", "j", "à".encode()[:1], "à".encode()[1:]], ["déjà"]),
    ([" ", "  "], []),
    ([], []),
])  # fmt: skip
def test_a_word_is_made_of_whole_tokens_and_begins_with_a_space(pieces, wanted):
    tokenizer: Any = Pieces(*pieces)
    found = words_of(tokenizer, range(len(pieces)))
    assert [b"".join(tokenizer.pieces[at] for at in one).decode() for one in found] == wanted
    assert [at for one in found for at in one] == list(range(len(pieces)) if wanted else [])


def test_words_are_the_same_without_capitals_and_signs_and_twice_is_twice():
    assert names(["Le", "chat", "«", "Chat.", "le", "?"]) == ["le 1", "chat 1", "« 1", "chat 2", "le 2", "? 1"]
    assert names(["J'ai", "l'homme,"]) == ["j'ai 1", "l'homme 1"]


def test_a_kind_that_was_added_is_another_kind():
    class Shape:
        kind = "something-else"

    assert kind_of(Shape()) == "other"
    assert [kind_of(make(name).config) for name in ("plain", "attention", "pre")] == [
        "plain", "attention", "transformer",
    ]  # fmt: skip
