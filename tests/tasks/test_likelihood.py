"""Choice and entailment by a language model alone: its own log-probabilities, and examples that come out right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import cutaway
from cutaway.errors import CutawayError
from cutaway.tasks.likelihood import choice, entailment

MESSAGES = Path(__file__).resolve().parents[2] / "web" / "src" / "messages"


@pytest.fixture(scope="module")
def builtin():
    return cutaway.load()


def test_a_choice_has_the_log_probability_of_its_tokens(tiny_lm):
    found = choice(tiny_lm, "The dog ran.", ["It was fast.", "He slept."])
    for prompt, answer, logprob in zip(found.prompts, found.answers, found.logprobs, strict=True):
        ids = torch.tensor([[*prompt, *answer]])
        with torch.inference_mode():
            scores = tiny_lm.model(ids)[0].log_softmax(-1)
        by_hand = sum(float(scores[len(prompt) + i - 1, one]) for i, one in enumerate(answer))
        assert logprob == pytest.approx(by_hand, abs=1e-3)
    assert sum(found.probabilities) == pytest.approx(1)
    assert found.best == max(range(2), key=lambda i: found.probabilities[i])


def test_names_keep_their_capital_and_other_words_lose_it(tiny_lm):
    decode = tiny_lm.tokenizer.decode
    same = entailment(tiny_lm, "Tom was tired.", "Tom slept.")
    assert {decode(one) for one in same.answers} == {" Tom slept."}
    assert [decode(one) for one in same.prompts] == ["Tom was tired. So,", "Tom was tired. But"]
    assert {decode(one) for one in entailment(tiny_lm, "Tom was tired.", "He slept.").answers} == {" he slept."}


def test_too_long_is_said(tiny_lm):
    with pytest.raises(CutawayError, match="Shorten them"):
        choice(tiny_lm, "word " * 100, ["a", "b"])


@pytest.mark.parametrize("language", ["en", "zh-Hans", "ru"])
def test_the_explorers_examples_come_out_right_on_the_model_that_ships(builtin, language):
    said = json.loads((MESSAGES / language / "tasks.json").read_text())
    for n in (1, 2):
        context, *choices = said[f"example_choice_{n}"].split("\n")
        assert choice(builtin, context, choices).probabilities[0] > 0.9
    follows, contradicts = (entailment(builtin, *said[f"example_entailment_{n}"].split("\n")) for n in (1, 2))
    assert follows.labels[follows.best] == "follows" and contradicts.labels[contradicts.best] == "contradicts"
