"""LAMBADA against a plain computation with transformers, one passage at a time."""

from __future__ import annotations

import copy
import json
import math
from itertools import islice

import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.evaluate.lambada import STOP_WORDS, lambada, stop_tokens
from cutaway.language_model import LanguageModel
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.text.tokenizer import Tokenizer


def wild(model: GPT) -> GPT:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.15)
    return model.eval()


PASSAGES = [
    "Once upon a time there was a little fox",
    "A robot must obey the orders given it by human beings",
    "the other side of the hill. He wanted to see\n\nthe robot",
    "a time, where such orders would conflict, there was a unicorn",
    "human beings given it by it",
]


@torch.no_grad()
def by_hand(lm: LanguageModel, there, passages: list[str]) -> dict[str, float]:
    """Accuracy and perplexity of last words and last tokens with transformers, the way the definitions read."""
    words, tokens, filtered, word_loss, token_loss = 0, 0, 0, 0.0, 0.0
    stop = [token for token in range(len(lm.tokenizer)) if lm.tokenizer.decode([token]).strip().lower() in STOP_WORDS]
    for passage in passages:
        context, word = passage[: passage.rindex(" ")], passage[passage.rindex(" ") :]
        before, after = lm.tokenizer.encode(context), lm.tokenizer.encode(word)
        ids = [*before, *after][-(lm.config.context + 1) :]
        logits = there(torch.tensor([ids[:-1]])).logits[0, -len(after) :].double()
        logprobs = logits.log_softmax(-1)[range(len(after)), after]
        right = (logits.argmax(-1) == torch.tensor(after)).tolist()
        words += all(right)
        tokens += right[-1]
        logits[0, stop] = -torch.inf
        filtered += int(logits[0].argmax()) == after[0] and all(right[1:])
        word_loss -= logprobs.sum().item()
        token_loss -= logprobs[-1].item()
    count = len(passages)
    return {
        "accuracy": words / count,
        "perplexity": math.exp(word_loss / count),
        "token_accuracy": tokens / count,
        "token_perplexity": math.exp(token_loss / count),
        "filtered_accuracy": filtered / count,
    }


def completed(lm: LanguageModel, passages: list[str]) -> list[str]:
    """The passages, and more of them that end in the words the model finds likeliest: something to get right."""
    own = []
    for text in passages:
        before = text.rpartition(" ")[0]
        logits = lm.logits(lm.tokenizer.encode(before)[-lm.config.context :])[-1]
        words = (lm.tokenizer.decode([token]) for token in logits.argsort(descending=True).tolist())
        likely = [word for word in islice(words, 30) if word[:1] == " " and word[1:].isalpha()]
        own += [before + word for word in likely[:2]]
    return [*passages, *own]


def test_the_numbers_are_those_of_a_plain_computation(tiny_lm, there):
    passages = completed(tiny_lm, PASSAGES)
    found = lambada(tiny_lm, passages)
    assert found.passages == len(passages)
    for name, value in by_hand(tiny_lm, there, passages).items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-4), name


def test_real_passages_with_gpt2s_tokens_give_the_same(shared_data, twin):
    torch.manual_seed(0)
    model = wild(GPT(Config(context=64, width=16, layers=2, heads=2)))
    lm = LanguageModel(model, Tokenizer.load("gpt2"))
    lines = (shared_data / "lambada/lambada_test.jsonl").read_text().splitlines()[:12]
    passages = completed(lm, [json.loads(line)["text"] for line in lines])
    found = lambada(lm, passages)
    assert found.shortened == sum(len(lm.tokenizer.encode(passage)) > 65 for passage in passages) > 0
    for name, value in by_hand(lm, twin(model), passages).items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-4), name


def test_the_filter_lets_the_next_best_word_win(tiny_lm):
    """A model that only ever wants to say "the", or else "orders"."""
    tokenizer = tiny_lm.tokenizer
    [the], [orders] = tokenizer.encode(" the"), tokenizer.encode(" orders")
    sure = copy.deepcopy(tiny_lm.model)
    with torch.no_grad():
        sure.final_norm.weight.zero_()
        sure.token_embedding.weight[the] = 3 * sure.final_norm.bias
        sure.token_embedding.weight[orders] = 2 * sure.final_norm.bias
    lm = LanguageModel(sure, tokenizer)
    found = lambada(lm, ["Once there was the", "Once there was orders"])
    assert (found.accuracy, found.filtered_accuracy) == (0.5, 0.5)
    assert lambada(lm, ["Once there was orders"]).filtered_accuracy == 1
    assert lambada(lm, ["Once there was the"]).filtered_accuracy == 0


def test_stop_words_are_found_among_gpt2s_tokens():
    tokenizer = Tokenizer.load("gpt2")
    barred = set(stop_tokens(tokenizer))
    assert {tokenizer.encode(word)[0] for word in (" the", "the", " The", " was", "I")} <= barred
    assert not {tokenizer.encode(word)[0] for word in (" fox", ".", "\n", " signs")} & barred


@pytest.mark.parametrize("passages", [[], ["word"], [""], ["a b", "  word "]])
def test_passages_without_a_last_word_are_refused(tiny_lm, passages):
    with pytest.raises(CutawayError, match=r"nothing to measure|no last word"):
        lambada(tiny_lm, passages)
