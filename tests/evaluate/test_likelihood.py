"""Scoring many rows at once gives what scoring each by itself, with transformers, gives."""

from __future__ import annotations

import random

import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.evaluate import likelihood
from cutaway.evaluate.likelihood import Row, score


def some_rows(count: int, longest: int, vocabulary: int) -> list[Row]:
    dice = random.Random(0)
    rows = []
    for _ in range(count):
        ids = [dice.randrange(vocabulary) for _ in range(dice.randint(2, longest))]
        rows.append(Row(ids, dice.randint(1, len(ids) - 1)))
    return rows


@pytest.mark.parametrize(("tokens", "scores"), [(4096, 256), (100, 7), (1, 1)])
def test_rows_of_any_length_score_as_alone_in_transformers_and_in_order(tiny, plain, monkeypatch, tokens, scores):
    monkeypatch.setattr(likelihood, "TOKENS_AT_ONCE", tokens)
    monkeypatch.setattr(likelihood, "SCORES_AT_ONCE", scores)
    rows = some_rows(24, tiny.config.context + 1, tiny.config.vocabulary)
    for row, found in zip(rows, score(tiny, rows), strict=True):
        logprobs, right = plain(row.ids, row.start)
        assert found.logprobs.tolist() == pytest.approx(logprobs, abs=1e-4)
        assert found.likeliest.tolist() == right
        assert found.likeliest_allowed == right[0]


def test_the_models_own_choice_is_found_likeliest(tiny, tiny_lm):
    result = tiny_lm.generate([1, 2, 3], top_k=1, max_tokens=8)
    [found] = score(tiny, [Row([1, 2, 3, *result.ids], start=3)])
    assert found.likeliest.all()
    assert found.logprobs.tolist() == pytest.approx(result.logprobs, abs=1e-4)


def test_a_barred_token_is_no_first_choice(tiny):
    with torch.no_grad():
        order = tiny(torch.tensor([[1, 2, 3]]))[0, -1].argsort(descending=True).tolist()
    rows = [Row([1, 2, 3, token], start=3) for token in order[:3]]
    assert [one.likeliest_allowed for one in score(tiny, rows)] == [True, False, False]
    assert [one.likeliest_allowed for one in score(tiny, rows, barred=order[:1])] == [False, True, False]
    assert [one.likeliest_allowed for one in score(tiny, rows, barred=order[:2])] == [False, False, True]
    assert [bool(one.likeliest.all()) for one in score(tiny, rows, barred=order[:2])] == [True, False, False]
    [last] = score(tiny, [Row([1, 2, 3, order[-1]], start=3)], barred=order[:-1])
    assert last.likeliest_allowed


def test_progress_ends_at_all_tokens(tiny, monkeypatch):
    monkeypatch.setattr(likelihood, "TOKENS_AT_ONCE", 40)
    heard: list[tuple[int, int]] = []
    rows = some_rows(8, 20, 320)
    score(tiny, rows, progress=lambda done, total: heard.append((done, total)))
    total = sum(len(row.ids) for row in rows)
    assert heard == sorted(heard)
    assert heard[-1] == (total, total)
    assert len(heard) > 1


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (Row([1], 1), "Nothing can be scored"),
        (Row([1, 2], 0), "Nothing can"),
        (Row([1] * 50, 1), "49 tokens do not fit"),
    ],
)
def test_rows_that_cannot_be_scored_are_refused(tiny, row, message):
    with pytest.raises(CutawayError, match=message):
        score(tiny, [row])
