"""Beam search finds the texts that transformers' beam search finds, with the same scores."""

import math

import pytest
import torch

from cutaway.errors import CutawayError

END = 319


def theirs(model, prompt, beams, length_penalty, max_tokens, end_bias):
    found = model.generate(
        torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt)), num_beams=beams, num_return_sequences=beams,
        length_penalty=length_penalty, max_new_tokens=max_tokens, do_sample=False, pad_token_id=END,
        return_dict_in_generate=True, output_scores=True,
        **({"sequence_bias": [[[END], end_bias]]} if end_bias else {}),
    )  # fmt: skip
    texts = [row[len(prompt) :] for row in found.sequences.tolist()]
    return [row[: row.index(END)] if END in row else row for row in texts], found.sequences_scores.tolist()


@pytest.mark.parametrize("beams", [2, 3, 5])
@pytest.mark.parametrize("length_penalty", [1.0, 0.0, 2.0, -1.0])
@pytest.mark.parametrize("end_bias", [0.0, 4.0])
def test_the_n_best_equal_transformers_with_their_scores(tiny_lm, twin, beams, length_penalty, end_bias):
    reference = twin(tiny_lm.model)
    for seed, max_tokens in [(0, 1), (1, 6), (2, 20), (3, 20)]:
        prompt = torch.randint(0, END, (3 + seed,), generator=torch.Generator().manual_seed(seed)).tolist()
        ours = tiny_lm.generate(
            prompt, beams=beams, best=beams, length_penalty=length_penalty, max_tokens=max_tokens,
            logit_bias={END: end_bias} if end_bias else {},
        )  # fmt: skip
        ids, scores = theirs(reference, prompt, beams, length_penalty, max_tokens, end_bias)
        assert [one.ids for one in ours] == ids
        assert [one.score for one in ours] == pytest.approx(scores, rel=1e-5, abs=1e-5)


def test_more_beams_never_find_a_less_likely_text_of_the_same_length(tiny_lm):
    # Not a law of beam search in general, but it holds from one beam (greedy) to very many on two tokens.
    settings = {"max_tokens": 2, "length_penalty": 0.0, "logit_bias": {END: -math.inf}}
    greedy = tiny_lm.generate("Once", beams=1, **settings)
    wide = tiny_lm.generate("Once", beams=200, **settings)
    assert greedy.ids == tiny_lm.generate("Once", top_k=1, max_tokens=2, logit_bias={END: -math.inf}).ids
    assert wide.score >= greedy.score
    logits = tiny_lm.logits("Once").log_softmax(-1)[-1]
    ids = tiny_lm.tokenizer.encode("Once")
    best = max(
        float(logits[first]) + float(tiny_lm.logits([*ids, first]).log_softmax(-1)[-1][:END].max())
        for first in range(END)
    )
    assert wide.score == pytest.approx(best, abs=1e-4)


def test_a_beam_says_why_it_ended_and_its_logprobs(tiny_lm):
    result = tiny_lm.generate("Once", beams=3, max_tokens=5, logit_bias={END: -math.inf})
    assert (result.reason, len(result.ids)) == ("length", 5)
    assert "5 tokens that were asked for" in result.explanation
    assert sum(result.logprobs) / 5 == pytest.approx(result.score, abs=1e-5)
    full = tiny_lm.generate([1] * 45, beams=3, logit_bias={END: -math.inf})
    assert "context of 48 tokens is full" in full.explanation
    assert tiny_lm.generate([1] * 48, beams=3).ids == []


def test_beams_stop_at_a_stop_string(tiny_lm):
    free = tiny_lm.generate("Once", beams=2, max_tokens=12)
    stop = free.text[2:4]
    result = tiny_lm.generate("Once", beams=2, max_tokens=12, stop=[stop])
    assert stop not in result.text
    assert result.reason in ("stop", "length")


def prompts_of(lengths, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(0, END, (length,), generator=generator).tolist() for length in lengths]


def test_prompts_searched_together_give_what_transformers_finds_for_each(tiny_lm, twin):
    reference, prompts = twin(tiny_lm.model), prompts_of([9, 2, 17, 5, 5, 30])
    ours = tiny_lm.generate(prompts, beams=3, best=3, max_tokens=15, length_penalty=2.0, logit_bias={END: 2.0})
    assert len({len(one.ids) for one in ours}) > 3  # the searches end one by one
    for number, prompt in enumerate(prompts):
        found = ours[3 * number : 3 * number + 3]
        ids, scores = theirs(reference, prompt, 3, 2.0, 15, 2.0)
        assert [one.ids for one in found] == ids
        assert [one.score for one in found] == pytest.approx(scores, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(
    "settings",
    [
        {"beams": 4, "best": 4, "logit_bias": {END: 3.0}},
        {"beams": 2, "max_tokens": 6, "repetition_penalty": 1.5, "length_penalty": 0.3},
        {"beams": 3, "stop": ["e"], "logit_bias": {END: 2.0}},
        {"beams": 100, "best": 2, "max_tokens": 3},
    ],
    ids=str,
)
def test_a_prompt_finds_the_same_in_company_as_alone(tiny_lm, settings):
    """More prompts than fit into a batch, of all lengths, some of them equal; one is empty, one leaves no room."""
    prompts = prompts_of([40, 1, 0, 48, 3, 47, 12, 12, 7, 25, 1, 33, 2], seed=1)
    prompts += [prompts[4], *prompts_of([5] * 6, seed=2)]
    together = tiny_lm.generate(prompts, **settings)
    alone = [one for prompt in prompts for one in tiny_lm.generate([prompt], **settings)]
    for found, expected in zip(together, alone, strict=True):
        assert (found.prompt_ids, found.ids, found.text) == (expected.prompt_ids, expected.ids, expected.text)
        assert (found.reason, found.explanation) == (expected.reason, expected.explanation)
        assert found.score == pytest.approx(expected.score, rel=1e-5, abs=1e-5)
        assert found.logprobs == pytest.approx(expected.logprobs, rel=1e-4, abs=1e-4)


def test_a_prompt_longer_than_the_context_is_an_error(tiny_lm):
    with pytest.raises(CutawayError, match="60 tokens long"):
        tiny_lm.generate([1] * 60, beams=2)
