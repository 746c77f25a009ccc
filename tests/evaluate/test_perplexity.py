"""Perplexity against the sliding window of Hugging Face's documentation, written out independently."""

from __future__ import annotations

import math

import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.evaluate.perplexity import cut, perplexity

TEXT = "Once upon a time there was a little fox who wanted to see what was on the other side of the hill. " * 4
OTHER = "A robot must obey the orders given it by human beings, é 日本."


@torch.no_grad()
def sliding_window(model, ids: list[int], max_length: int, stride: int) -> tuple[float, int]:
    """As in transformers' docs, "Perplexity of fixed-length models": summed loss, and how many tokens it is of."""
    encoded = torch.tensor([ids])
    seq_len = encoded.size(1)
    nll_sum, n_tokens, prev_end_loc = 0.0, 0, 0
    for begin_loc in range(0, seq_len, stride):
        end_loc = min(begin_loc + max_length, seq_len)
        trg_len = end_loc - prev_end_loc
        input_ids = encoded[:, begin_loc:end_loc]
        target_ids = input_ids.clone()
        target_ids[:, :-trg_len] = -100
        neg_log_likelihood = model(input_ids, labels=target_ids).loss
        num_valid_tokens = int((target_ids != -100).sum())
        num_loss_tokens = num_valid_tokens - (1 if begin_loc == 0 else 0)  # the very first has nothing before it
        nll_sum += neg_log_likelihood.item() * num_loss_tokens
        n_tokens += num_loss_tokens
        prev_end_loc = end_loc
        if end_loc == seq_len:
            break
    return nll_sum, n_tokens


@pytest.mark.parametrize(("window", "stride"), [(48, 24), (48, 7), (32, 31), (16, 1), (None, None)])
def test_the_sliding_window_of_the_documentation_gives_the_same(tiny_lm, there, window, stride):
    found = perplexity(tiny_lm, TEXT, window, stride)
    ids = [tiny_lm.config.end, *tiny_lm.tokenizer.encode(TEXT)]
    nats, tokens = sliding_window(there, ids, window or 48, stride or 24)
    assert found.tokens == tokens == len(ids) - 1
    assert found.nats_per_token == pytest.approx(nats / tokens, rel=1e-5)
    assert found.perplexity == pytest.approx(math.exp(nats / tokens), rel=1e-4)
    assert found.bits_per_byte == pytest.approx(nats / math.log(2) / len(TEXT.encode()), rel=1e-5)
    assert (found.window, found.stride) == (window or 48, stride or 24)


def test_without_overlap_every_token_is_still_predicted_once(tiny_lm, plain):
    ids = [tiny_lm.config.end, *tiny_lm.tokenizer.encode(TEXT)]
    found = perplexity(tiny_lm, TEXT, window=32, stride=32)
    nats = 0.0
    for first in range(1, len(ids), 32):
        first = first - 1 if first == 1 else first - 2  # from the second window on: the last token of the one before
        nats -= sum(plain(ids[first : first + 33 if first else 32], 1)[0])
    assert found.tokens == len(ids) - 1
    assert found.nats_per_token == pytest.approx(nats / found.tokens, rel=1e-5)


@pytest.mark.parametrize("length", [2, 3, 31, 32, 33, 63, 64, 65, 200])
@pytest.mark.parametrize(("window", "stride"), [(32, 16), (32, 32), (32, 1), (2, 1), (2, 2), (32, 31)])
def test_every_id_but_the_first_is_scored_once_and_no_window_is_too_long(length, window, stride):
    ids = list(range(length))
    rows = list(cut(ids, window, stride))
    assert [token for row in rows for token in row.ids[row.start :]] == ids[1:]
    assert all(len(row.ids) - 1 <= window for row in rows)
    assert all(row.start >= 1 for row in rows)
    least = min((row.start for row in rows[1:]), default=window)
    assert least >= max(1, window - stride)


def test_several_texts_are_measured_each_from_its_own_beginning(tiny_lm, plain):
    found = perplexity(tiny_lm, [TEXT[:60], OTHER])
    nats = 0.0
    for text in (TEXT[:60], OTHER):
        nats -= sum(plain([tiny_lm.config.end, *tiny_lm.tokenizer.encode(text)], 1)[0])
    assert found.documents == 2
    assert found.bytes == len((TEXT[:60] + OTHER).encode())
    assert found.nats_per_token * found.tokens == pytest.approx(nats, rel=1e-5)


def test_word_perplexity_is_over_the_words_given(tiny_lm):
    found = perplexity(tiny_lm, OTHER, words=10, detokenizer="the one of the test")
    assert found.word_perplexity == pytest.approx(math.exp(found.nats_per_token * found.tokens / 10))
    assert perplexity(tiny_lm, OTHER).word_perplexity is None


def test_how_it_was_got_is_said(tiny_lm):
    how = perplexity(tiny_lm, TEXT, 32, 8, words=10, detokenizer="the one of the test").how
    for part in (
        "windows of 32 tokens, 8 apart",
        "from 24 or more before it",
        "<|endoftext|>",
        "the one of the test",
        "10 words",
    ):
        assert part in how


@pytest.mark.parametrize(
    ("text", "window", "stride", "message"),
    [
        ("", None, None, "empty"),
        (["", ""], None, None, "empty"),
        (TEXT, 49, None, "between 2 and the model's 48"),
        (TEXT, 1, None, "between 2"),
        (TEXT, 32, 33, "between 1 and the window of 32"),
        (TEXT, 32, 0, "between 1"),
    ],
)
def test_what_cannot_be_measured_is_refused(tiny_lm, text, window, stride, message):
    with pytest.raises(CutawayError, match=message):
        perplexity(tiny_lm, text, window, stride)
