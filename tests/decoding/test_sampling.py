"""Each step from logits to a choice means what it means in transformers, and the choice follows the probabilities."""

import math

import numpy as np
import pytest
import torch
from transformers.generation import logits_process as theirs

from cutaway.decoding.sampling import (
    Sampling,
    adjust,
    choose,
    draw,
    keep_min_p,
    keep_top_k,
    keep_top_p,
    likeliest,
    penalize_written,
    probabilities,
)
from cutaway.errors import CutawayError


def for_them(rows: int = 4, vocabulary: int = 50, seed: int = 0) -> torch.Tensor:
    return torch.randn(rows, vocabulary, generator=torch.Generator().manual_seed(seed)) * 3


def some_logits(rows: int = 4, vocabulary: int = 50, seed: int = 0) -> np.ndarray:
    return for_them(rows, vocabulary, seed).numpy()


def equal(ours: np.ndarray, reference: torch.Tensor) -> bool:
    return torch.equal(torch.from_numpy(ours), reference)


@pytest.mark.parametrize("k", [1, 5, 49, 50, 1_000])
def test_top_k_equals_transformers(k):
    assert equal(keep_top_k(some_logits(), k), theirs.TopKLogitsWarper(k)(None, for_them()))


@pytest.mark.parametrize("p", [1e-6, 0.1, 0.5, 0.9, 0.999])
def test_top_p_equals_transformers(p):
    assert equal(keep_top_p(some_logits(), p), theirs.TopPLogitsWarper(p)(None, for_them()))


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_top_p_keeps_as_many_as_transformers_of_tokens_that_are_level(p):
    """As those of a bfloat16 model often are; which of them it keeps, its sort decides. Most are level after top-k."""
    level = (for_them(vocabulary=5_000) * 4).round() / 4
    for given in (level, torch.from_numpy(keep_top_k(level.numpy(), 40))):
        ours, reference = keep_top_p(given.numpy(), p), theirs.TopPLogitsWarper(p)(None, given)
        assert equal(np.sort(ours), reference.sort().values)


def test_the_likeliest_come_in_order_and_the_first_of_equals_first():
    scores = np.array([[1.0, 3.0, 2.0, 3.0, 3.0], [5.0, 4.0, 3.0, 2.0, 1.0]], dtype=np.float32)
    assert likeliest(scores, 4).tolist() == [[1, 3, 4, 2], [0, 1, 2, 3]]
    assert likeliest(scores, 9).shape == (2, 5)


@pytest.mark.parametrize("k", [1, 5, 20, 79])
@pytest.mark.parametrize("round_to", [1e-6, 0.5, 100.0])
def test_of_many_the_likeliest_are_those_of_a_whole_sort(k, round_to):
    """As many as a vocabulary has, no multiple of anything, with ever more equals among them, and some forbidden."""
    for scores in np.round(some_logits(3, 5_077) / round_to).astype(np.float32):
        scores[::7] = -np.inf
        assert likeliest(scores, k).tolist() == np.argsort(-scores, kind="stable")[:k].tolist()
    scores[11] = np.nan
    assert likeliest(scores, k).shape == (k,)


@pytest.mark.parametrize("share", [0.01, 0.3, 1.0])
def test_min_p_equals_transformers(share):
    assert equal(keep_min_p(some_logits(), share), theirs.MinPLogitsWarper(share)(None, for_them()))


@pytest.mark.parametrize("penalty", [0.5, 1.3])
def test_repetition_penalty_equals_transformers_and_counts_the_prompt(penalty):
    prompts, written = [[1, 2, 2], [4, 9, 9]], [[3], [4]]
    ids = torch.tensor([[1, 2, 2, 3], [4, 9, 9, 4]])
    settings = Sampling(repetition_penalty=penalty)
    ours = [adjust(*given) for given in zip(some_logits(2), [settings] * 2, prompts, written, strict=True)]
    assert equal(np.stack(ours), theirs.RepetitionPenaltyLogitsProcessor(penalty)(ids, for_them(2)))


def test_bias_equals_transformers_and_minus_infinity_forbids():
    ours = adjust(some_logits(1)[0], Sampling(logit_bias={3: 2.5, 7: -1.0}), [0], [])
    reference = theirs.SequenceBiasLogitsProcessor([[[3], 2.5], [[7], -1.0]])(torch.tensor([[0]]), for_them(1))
    assert torch.allclose(torch.from_numpy(ours), reference[0])
    forbidden = adjust(some_logits(1)[0], Sampling(logit_bias={3: -math.inf}), [0], [])
    assert probabilities(forbidden, Sampling(top_k=None))[3] == 0


def test_all_steps_together_equal_transformers_in_its_order():
    how = Sampling(temperature=0.7, top_k=20, top_p=0.9, min_p=0.02, repetition_penalty=1.2)
    ids = torch.tensor([[1, 2, 3]] * 4)
    expected = for_them()
    for step in (
        theirs.RepetitionPenaltyLogitsProcessor(1.2), theirs.TemperatureLogitsWarper(0.7), theirs.TopKLogitsWarper(20),
        theirs.TopPLogitsWarper(0.9), theirs.MinPLogitsWarper(0.02),
    ):  # fmt: skip
        expected = step(ids, expected)
    ours = probabilities(np.stack([adjust(row, how, [1, 2], [3]) for row in some_logits()]), how)
    assert torch.allclose(torch.from_numpy(ours), expected.softmax(-1), atol=1e-7)
    assert ((ours > 0).sum(-1) < 20).any()  # top-p or min-p did something beyond top-k


def test_presence_is_taken_once_and_frequency_each_time():
    logits = np.zeros(6, dtype=np.float32)
    assert penalize_written(logits, [2, 2, 2, 5], 0.5, 0.25).tolist() == [0, 0, -1.25, 0, 0, -0.75]


def test_greedy_takes_the_first_of_the_highest_even_when_several_are_level():
    logits = np.array([0.0, 2.0, 2.0, 1.0], dtype=np.float32)
    assert choose(logits, Sampling(top_k=1), 0.999) == 1


def test_drawn_tokens_follow_the_probabilities():
    chances = np.array([0.5, 0.0, 0.3, 0.2], dtype=np.float32)
    counts = np.bincount([draw(chances, (number + 0.5) / 10_000) for number in range(10_000)], minlength=4)
    assert counts.tolist() == [5_000, 0, 3_000, 2_000]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "given",
    [{}, {"top_k": 40}, {"top_k": 40, "top_p": 0.9}, {"top_p": 0.95}, {"top_p": 0.3, "min_p": 0.01}, {"min_p": 0.05}],
    ids=repr,
)
def test_a_choice_is_the_place_on_the_line_that_all_probabilities_of_the_vocabulary_divide(given, seed):
    """Whatever is left out early: the token is the one that the whole distribution, step by step, gives."""
    [logits] = some_logits(1, 20_011, seed)
    settings = Sampling(**{"top_k": None, "temperature": 0.8, **given})
    line = probabilities(logits, settings).astype(np.float64).cumsum()
    for uniform in np.random.default_rng(seed).random(40):
        token = int(np.searchsorted(line, uniform * line[-1], side="right"))
        assert choose(logits, settings, float(uniform)) == token


def test_a_number_at_either_end_never_gives_an_impossible_token():
    chances = np.array([0.0, 1e-12, 1 - 1e-12, 0.0], dtype=np.float32)
    assert {draw(chances, 0.0), draw(chances, 1 - 2**-53)} <= {1, 2}
    wide = np.zeros(1_000, dtype=np.float32)
    wide[[300, 700]] = 1e-3, 1 - 1e-3
    assert draw(wide, 0.0) == 300 and draw(wide, 1 - 2**-53) == 700 and draw(wide, 1.0) == 700


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"temperature": -1.0}, "temperature must be 0 .greedy. or above, not -1.0"),
        ({"temperature": math.nan}, "temperature must be 0"),
        ({"temperature": math.inf}, "temperature must be 0"),
        ({"temperature": [0.7]}, "setting temperature must be a number, not .0.7."),
        ({"temperature": True}, "temperature must be a number"),
        ({"temperature": None}, "temperature must be a number, not None"),
        ({"top_k": 2.5}, "setting top_k must be a whole number or None, not 2.5"),
        ({"top_p": "0.9"}, "setting top_p must be a number or None"),
        ({"logit_bias": [3]}, "logit bias must be a dict"),
        ({"logit_bias": {"3": 1.0}}, "token of a logit bias must be an id"),
        ({"logit_bias": {3: "1"}}, "logit bias of token 3 must be a number"),
        ({"logits_processors": 5}, "logits processors must be a function or a list of functions, not 5"),
        ({"logits_processors": [len, None]}, "logits processors must be a function or a list"),
        ({"top_k": 0}, "top-k must be 1 or more"),
        ({"top_p": 0.0}, "top-p must be above 0"),
        ({"top_p": 1.5}, "top-p must be above 0 and at most 1"),
        ({"min_p": -0.1}, "min-p must be between 0 and 1"),
        ({"repetition_penalty": 0.0}, "repetition penalty must be above 0"),
        ({"frequency_penalty": math.nan}, "frequency penalty"),
        ({"logit_bias": {3: math.nan}}, "logit bias of token 3"),
    ],
)
def test_an_impossible_setting_is_refused_with_its_rule(given, said):
    with pytest.raises(CutawayError, match=said):
        Sampling(**given)


def test_a_bias_for_a_token_that_does_not_exist_is_refused():
    with pytest.raises(CutawayError, match="not in the vocabulary of 50"):
        adjust(some_logits(1)[0], Sampling(logit_bias={50: 1.0}), [], [])


@pytest.mark.parametrize("temperature", [0, 0.0, 1e-9, 1e-50])
def test_a_temperature_of_nothing_is_greedy_and_never_divides_by_zero(temperature):
    logits = some_logits(3)
    how = Sampling(temperature=temperature, top_k=None, top_p=0.5)
    chances = probabilities(logits, how)
    assert how.greedy
    assert [choose(row, how, 0.9) for row in logits] == logits.argmax(-1).tolist()
    assert chances.argmax(-1).tolist() == logits.argmax(-1).tolist()
    assert sorted(set(chances.ravel().tolist())) == [0.0, 1.0]


def test_of_two_equal_tokens_a_temperature_of_0_takes_the_first():
    logits = np.array([[1.0, 3.0, 3.0, 2.0]], dtype=np.float32)
    assert probabilities(logits, Sampling(temperature=0)).tolist() == [[0.0, 1.0, 0.0, 0.0]]


def test_processors_run_in_order_after_bias_and_penalties_each_on_a_row_of_its_own():
    seen = []

    def halve(ids, logits):
        seen.append((ids, logits.copy()))
        logits[:] /= 2  # in place, too
        return logits

    logits = some_logits(2)
    untouched = logits.copy()
    how = Sampling(logits_processors=[halve, lambda ids, row: row + len(ids)], logit_bias={7: 3.0})
    texts = (([1], [4]), ([2, 3], [5, 6]))
    found = np.stack([adjust(row, how, *text) for row, text in zip(logits, texts, strict=True)])
    assert (logits == untouched).all()
    assert [ids for ids, _ in seen] == [[1, 4], [2, 3, 5, 6]]
    biased = np.stack([adjust(row, Sampling(logit_bias={7: 3.0}), [], []) for row in logits])
    assert all((row == expected).all() for (_, row), expected in zip(seen, biased, strict=True))
    assert found == pytest.approx(biased / 2 + np.array([[2.0], [4.0]]))
    assert found.dtype == np.float32


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda ids, logits: None, "must give back an array of .50. logits, not None"),
        (lambda ids, logits: logits[:10], "not an array of .10."),
        (lambda ids, logits: logits * np.nan, "highest logit is nan"),
        (lambda ids, logits: logits - np.inf, "highest logit is -inf"),
        (lambda ids, logits: logits + np.inf, "highest logit is inf"),
    ],
)
def test_a_processor_that_leaves_nothing_to_choose_from_is_named(wrong, said):
    with pytest.raises(CutawayError, match=f"logits processor <lambda> .*{said}"):
        adjust(some_logits(1)[0], Sampling(logits_processors=wrong), [], [])
