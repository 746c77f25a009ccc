"""Writing gives the same text however it is done, always ends, and says why."""

import math

import numpy as np
import pytest
import torch

from cutaway.decoding.scheduler import ROWS_AT_ONCE
from cutaway.decoding.sequence import StopFilter
from cutaway.errors import CutawayError

PROMPTS = ["Once upon", "", "A robot must obey the orders", "x", "the other side of the hill, where such orders"]
NO_END = {319: -math.inf}


def plain_loop(lm, ids: list[int], count: int) -> list[int]:
    """Greedy writing as the article tells it: the whole text through the model, the highest score, once more."""
    ids, new = list(ids) or [lm.config.end], []
    with torch.no_grad():
        for _ in range(count):
            token = int(lm.model(torch.tensor([ids]))[0, -1].argmax())
            if token == lm.config.end:
                break
            ids.append(token)
            new.append(token)
    return new


@pytest.mark.parametrize("prompt", PROMPTS)
def test_cached_writing_equals_uncached(tiny_lm, prompt):
    ids = tiny_lm.tokenizer.encode(prompt)
    assert tiny_lm.generate(prompt, top_k=1, max_tokens=20).ids == plain_loop(tiny_lm, ids, 20)


@pytest.mark.parametrize("settings", [{"top_k": 1}, {"seed": 7}, {"seed": 7, "top_p": 0.9, "repetition_penalty": 1.2}])
def test_a_batch_of_unequal_prompts_equals_each_alone(tiny_lm, settings):
    together = tiny_lm.generate(PROMPTS, max_tokens=25, **settings)
    for prompt, one in zip(PROMPTS, together, strict=True):
        alone = tiny_lm.generate(prompt, max_tokens=25, **settings)
        assert one.ids == alone.ids
        assert (one.text, one.reason, one.explanation) == (alone.text, alone.reason, alone.explanation)
        assert one.logprobs == pytest.approx(alone.logprobs, abs=1e-4)


def test_rows_that_end_early_leave_and_the_others_go_on_undisturbed(tiny_lm):
    # The end token is made likely, so that rows leave the batch at many different steps.
    settings = {"seed": 5, "max_tokens": 30, "logit_bias": {319: 2.0}, "top_k": None}
    results = tiny_lm.generate(PROMPTS, samples=4, **settings)
    assert len({len(one.ids) for one in results}) > 4
    assert {one.reason for one in results} == {"end", "length"}
    for place, prompt in enumerate(PROMPTS):
        alone = [tiny_lm.generate(prompt, samples=4, **settings)[sample].ids for sample in range(4)]
        assert [one.ids for one in results[4 * place : 4 * place + 4]] == alone


def test_more_texts_than_fit_a_batch_come_back_in_order(tiny_lm):
    prompts = [f"robot {i}" for i in range(ROWS_AT_ONCE + 3)]
    results = tiny_lm.generate(prompts, top_k=1, max_tokens=2)
    assert [one.prompt_ids for one in results] == [tiny_lm.tokenizer.encode(prompt) for prompt in prompts]
    assert results[-1].ids == tiny_lm.generate(prompts[-1], top_k=1, max_tokens=2).ids


def test_the_same_seed_gives_the_same_text_and_another_seed_another(tiny_lm):
    first, again, other = (tiny_lm.generate("Once", seed=seed, max_tokens=20).ids for seed in (1, 1, 2))
    assert first == again != other


def test_without_a_seed_the_result_names_the_one_it_took(tiny_lm):
    free = tiny_lm.generate("Once", max_tokens=20)
    assert tiny_lm.generate("Once", max_tokens=20, seed=free.seed).ids == free.ids
    assert tiny_lm.generate("Once", max_tokens=20).seed != free.seed


def test_several_samples_differ_and_the_first_is_the_single_one(tiny_lm):
    results = tiny_lm.generate("Once", seed=1, samples=4, max_tokens=20)
    assert len({tuple(one.ids) for one in results}) == 4
    assert results[0].ids == tiny_lm.generate("Once", seed=1, max_tokens=20).ids
    assert [one.ids for one in tiny_lm.generate("Once", seed=1, samples=2, max_tokens=20)] == [
        one.ids for one in results[:2]
    ]


def test_samples_of_several_prompts_come_prompt_by_prompt(tiny_lm):
    results = tiny_lm.generate(["Once", "x"], seed=1, samples=2, max_tokens=6)
    assert [one.prompt_ids for one in results] == [
        tiny_lm.tokenizer.encode(text) for text in ("Once", "Once", "x", "x")
    ]


@pytest.mark.parametrize(
    "settings", [{"seed": 3}, {"top_k": 1}, {"seed": 4, "stop": (" ", "e")}, {"seed": 9, "stop": "the"}]
)
def test_streamed_text_equals_the_whole(tiny_lm, settings):
    for prompt in PROMPTS:
        stream = tiny_lm.stream(prompt, max_tokens=25, **settings)
        pieces = list(stream)
        whole = tiny_lm.generate(prompt, max_tokens=25, **settings)
        assert "".join(pieces) == whole.text == stream.result.text
        assert stream.result.ids == whole.ids
        assert stream.result.explanation == whole.explanation


def test_text_is_the_decoded_ids_also_when_they_end_in_half_a_character(tiny_lm):
    forced = dict.fromkeys(range(320), -math.inf)
    forced[tiny_lm.tokenizer.encode("é")[0]] = 0.0  # only the first byte of é may be written
    result = tiny_lm.generate("x", max_tokens=3, logit_bias=forced)
    assert result.text == tiny_lm.tokenizer.decode(result.ids)
    assert "�" in result.text
    assert "".join(tiny_lm.stream("x", max_tokens=3, logit_bias=forced)) == result.text


def test_it_stops_at_max_tokens(tiny_lm):
    result = tiny_lm.generate("Once", seed=1, max_tokens=7, logit_bias=NO_END)
    assert (len(result.ids), result.reason) == (7, "length")
    assert "7 tokens that were asked for" in result.explanation
    assert tiny_lm.generate("Once", max_tokens=0).text == ""


def test_it_stops_at_the_end_token_and_leaves_it_out(tiny_lm):
    result = tiny_lm.generate("Once", logit_bias={319: 1e9})
    assert (result.ids, result.text, result.reason) == ([], "", "end")


def test_it_stops_at_the_end_of_the_context(tiny_lm):
    result = tiny_lm.generate("Once", seed=1, logit_bias=NO_END)
    assert len(result.prompt_ids) + len(result.ids) == tiny_lm.config.context
    assert result.reason == "length"
    assert "context of 48 tokens is full" in result.explanation


def test_it_stops_at_a_stop_string_and_leaves_it_out(tiny_lm):
    free = tiny_lm.generate("Once", seed=1, max_tokens=30, logit_bias=NO_END).text
    stop = free[10:13]
    result = tiny_lm.generate("Once", seed=1, max_tokens=30, logit_bias=NO_END, stop=[stop])
    assert result.reason == "stop"
    assert result.text == free[: free.index(stop)]
    assert repr(stop) in result.explanation


class Letters:
    """A tokenizer whose tokens are letters, to try the filter letter by letter."""

    class stream:
        def add(self, token: int) -> str:
            return chr(token)

        def finish(self) -> str:
            return ""


@pytest.mark.parametrize(
    ("text", "stops", "shown", "found"),
    [
        ("one two three", ("two",), "one ", "two"),
        ("aab aaab", ("aaab",), "aab ", "aaab"),
        ("abcd", ("bcx", "cd"), "ab", "cd"),
        ("abc", ("abcd",), "abc", ""),
        ("xxabxabc", ("abc",), "xxabx", "abc"),
        ("abab", ("b", "aba"), "a", "b"),
    ],
)
def test_a_stop_string_never_shows_even_in_part(text, stops, shown, found):
    text_filter, out = StopFilter(Letters(), stops), ""
    for letter in text:
        out += text_filter.add(ord(letter))
        assert shown.startswith(out)
        if text_filter.found:
            break
    out += text_filter.finish()
    assert (out, text_filter.text, text_filter.found) == (shown, shown, found)


def test_a_sliding_window_goes_on_and_says_what_it_dropped(tiny_lm):
    result = tiny_lm.generate("Once", seed=1, max_tokens=100, overflow="slide", logit_bias=NO_END)
    assert len(result.ids) == 100
    assert result.dropped > 0
    # From its first slide on, it writes as if the kept part had been the prompt.
    at = tiny_lm.config.context - tiny_lm.config.context // 4  # what is kept
    greedy = tiny_lm.generate("Once", top_k=1, max_tokens=60, overflow="slide", logit_bias=NO_END)
    whole = [*greedy.prompt_ids, *greedy.ids]
    kept = whole[tiny_lm.config.context - at : tiny_lm.config.context]
    after = tiny_lm.generate(kept, top_k=1, max_tokens=5, logit_bias=NO_END).ids
    assert after == whole[tiny_lm.config.context : tiny_lm.config.context + 5]


def test_a_sliding_batch_equals_each_alone(tiny_lm):
    settings = {"seed": 2, "max_tokens": 70, "overflow": "slide", "logit_bias": NO_END}
    long = "the other side of the hill " * 20
    for prompt, one in zip(["x", long], tiny_lm.generate(["x", long], **settings), strict=True):
        alone = tiny_lm.generate(prompt, **settings)
        assert (one.ids, one.dropped) == (alone.ids, alone.dropped)


def test_a_prompt_longer_than_the_context_is_an_error_unless_it_may_slide(tiny_lm):
    with pytest.raises(CutawayError, match="60 tokens long and this model's context is 48"):
        tiny_lm.generate([1] * 60)
    assert tiny_lm.generate([1] * 60, overflow="slide", max_tokens=3, logit_bias=NO_END).dropped == 24
    assert tiny_lm.generate([1] * 48).reason == "length"


def test_logprobs_are_the_models_own(tiny_lm):
    result = tiny_lm.generate("Once", seed=1, temperature=0.5, top_k=5, repetition_penalty=1.3, max_tokens=10)
    whole = [*result.prompt_ids, *result.ids]
    logits = tiny_lm.logits(whole).log_softmax(-1)
    at = len(result.prompt_ids) - 1
    expected = [float(logits[at + step, token]) for step, token in enumerate(result.ids)]
    assert result.logprobs == pytest.approx(expected, abs=1e-4)


def test_greedy_equals_transformers_with_a_repetition_penalty(tiny_lm, twin):
    ids = tiny_lm.tokenizer.encode("A robot must")
    theirs = twin(tiny_lm.model).generate(
        torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)), do_sample=False, repetition_penalty=1.5,
        max_new_tokens=25, pad_token_id=0,
    )[0, len(ids) :].tolist()  # fmt: skip
    ours = tiny_lm.generate(ids, top_k=1, repetition_penalty=1.5, max_tokens=25).ids
    assert ours == [token for token in theirs if token != 319]


def test_penalties_and_bias_reach_every_row(tiny_lm):
    results = tiny_lm.generate(["x", "Once upon"], top_k=1, max_tokens=12, frequency_penalty=100.0, logit_bias=NO_END)
    assert all(len(set(one.ids)) == 12 for one in results)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"temperature": -0.1}, "0 .greedy. or above"),
        ({"max_tokens": -1}, "0 or more"),
        ({"max_tokens": [5]}, "setting max_tokens must be a whole number or None, not .5."),
        ({"max_tokens": "5"}, "setting max_tokens must be a whole number"),
        ({"max_tokens": 2.5}, "setting max_tokens must be a whole number"),
        ({"seed": "a"}, "setting seed must be a whole number"),
        ({"length_penalty": None}, "setting length_penalty must be a number"),
        ({"stop": 5}, "stop strings must be a text or a list of texts, not 5"),
        ({"stop": ["a", 5]}, "stop strings must be a text or a list of texts"),
        ({"samples": 0}, "samples must be 1 or more"),
        ({"overflow": "wrap"}, "'stop' or 'slide'"),
        ({"stop": [""]}, "stop string"),
        ({"best": 2}, "best"),
        ({"beams": 2, "samples": 2}, "neither samples"),
        ({"temprature": 1.0}, "Did you mean 'temperature'"),
    ],
)
def test_a_wrong_setting_is_refused(tiny_lm, settings, said):
    with pytest.raises(CutawayError, match=said):
        tiny_lm.generate("x", **settings)


def test_a_temperature_of_0_is_greedy_in_whatever_form(tiny_lm):
    wanted = [tiny_lm.generate(prompt, top_k=1, max_tokens=12).ids for prompt in PROMPTS]
    for settings in ({}, {"top_k": None}, {"top_p": 0.5, "seed": 9}):
        assert [one.ids for one in tiny_lm.generate(PROMPTS, temperature=0, max_tokens=12, **settings)] == wanted
    assert [tiny_lm.generate(prompt, temperature=0.0, max_tokens=12).ids for prompt in PROMPTS] == wanted
    assert "".join(tiny_lm.stream(PROMPTS[0], temperature=0, max_tokens=12)) == tiny_lm.tokenizer.decode(wanted[0])


def test_no_prompts_are_no_texts_and_prompts_may_come_from_anywhere(tiny_lm):
    assert tiny_lm.generate([]) == tiny_lm.generate(()) == tiny_lm.generate([], beams=2) == []
    wanted = tiny_lm.generate(PROMPTS, temperature=0, max_tokens=4)

    def same(found):
        return [one.ids for one in found] == [one.ids for one in wanted]

    assert same(tiny_lm.generate((prompt for prompt in PROMPTS), temperature=0, max_tokens=4))
    assert same(tiny_lm.generate(tuple(PROMPTS), temperature=0, max_tokens=4))
    assert same(tiny_lm.generate(dict(enumerate(PROMPTS)).values(), temperature=0, max_tokens=4))
    assert same(tiny_lm.generate([tiny_lm.ids(prompt) for prompt in PROMPTS], temperature=0, max_tokens=4))
    assert same(tiny_lm.generate([prompt.encode() for prompt in PROMPTS], temperature=0, max_tokens=4))
    arrays = [np.array(tiny_lm.ids(prompt), dtype=np.int64) for prompt in PROMPTS]
    assert same(tiny_lm.generate(arrays, temperature=0, max_tokens=4))
    assert tiny_lm.generate(torch.tensor([5, 6]), temperature=0, max_tokens=4).ids == (
        tiny_lm.generate([5, 6], temperature=0, max_tokens=4).ids
    )
    assert len(tiny_lm.generate(torch.tensor([[5, 6], [7, 8]]), max_tokens=1)) == 2


@pytest.mark.parametrize(
    "wrong", [None, 5, 2.5, [None], [1, "a"], ["a", 1.5], {"a": 1}, {}, {3}, [[1], [[2]]]], ids=repr
)
def test_what_is_no_prompt_gets_one_clear_sentence(tiny_lm, wrong):
    for ask in (tiny_lm.generate, tiny_lm.logits, tiny_lm.score, tiny_lm.embed):
        with pytest.raises(CutawayError, match="A prompt is a text or a list of token ids, not"):
            ask(wrong)


def test_a_processor_sees_what_was_read_and_decides_what_is_written(tiny_lm):
    even, seen = np.arange(320) % 2 == 0, []

    def odd_only(ids, logits):
        seen.append(ids)
        logits[even] = -np.inf
        return logits

    settings = {"max_tokens": 8, "seed": 4, "logits_processors": odd_only}
    together = tiny_lm.generate(PROMPTS, **settings)
    assert all(token % 2 for one in together for token in one.ids) and any(one.ids for one in together)
    assert seen[: len(PROMPTS)] == [tiny_lm.ids(prompt) or [tiny_lm.config.end] for prompt in PROMPTS]
    for prompt, one in zip(PROMPTS, together, strict=True):
        seen.clear()
        assert tiny_lm.generate(prompt, **settings).ids == one.ids
        begun = tiny_lm.ids(prompt) or [tiny_lm.config.end]
        assert seen[1:] == [[*begun, *one.ids[:count]] for count in range(1, len(seen))]
        assert "".join(tiny_lm.stream(prompt, **settings)) == one.text


def test_a_processor_is_the_bias_it_could_have_been_in_drawing_and_in_beams(tiny_lm):
    def lean(ids, logits):
        logits[40:60] += 2.5
        return logits

    bias = dict.fromkeys(range(40, 60), 2.5)
    for settings in ({"seed": 2}, {"temperature": 0}, {"beams": 4, "best": 3}):
        ours = tiny_lm.generate(["Once", "x"], max_tokens=8, logits_processors=[lean], **settings)
        theirs = tiny_lm.generate(["Once", "x"], max_tokens=8, logit_bias=bias, **settings)
        assert [one.ids for one in ours] == [one.ids for one in theirs]


def test_a_beam_search_never_extends_a_text_by_what_is_forbidden(tiny_lm):
    def only_these(ids, logits):
        kept = logits[[50, 60]].copy()
        logits[:] = -np.inf
        logits[[50, 60]] = kept
        return logits

    results = tiny_lm.generate("Once", beams=4, best=4, max_tokens=3, logits_processors=only_these)
    assert len(results) == 4
    assert all(set(one.ids) <= {50, 60} and math.isfinite(one.score) for one in results)


def test_a_stream_can_give_tokens_with_their_log_probabilities(tiny_lm):
    for settings in ({"seed": 3}, {"seed": 3, "stop": ("e",)}, {"seed": 5, "logit_bias": {319: 4.0}, "top_k": None}):
        stream = tiny_lm.stream("Once", max_tokens=25, **settings)
        tokens = list(stream.tokens())
        result = stream.result
        assert result == tiny_lm.generate("Once", max_tokens=25, **settings)
        assert "".join(token.text for token in tokens) == result.text
        ended = result.reason == "end"
        assert [token.id for token in tokens] == result.ids + [tiny_lm.config.end] * ended
        assert [token.logprob for token in tokens[: len(result.ids)]] == result.logprobs
        if ended:
            last = tiny_lm.logits([*result.prompt_ids, *result.ids])[-1].log_softmax(-1)
            assert tokens[-1].logprob == pytest.approx(float(last[319]), abs=1e-4)


def test_a_stream_that_is_closed_writes_no_more(tiny_lm):
    stream = tiny_lm.stream("Once", max_tokens=25, seed=3, logit_bias=NO_END)
    first = next(stream.tokens())
    stream.close()
    assert list(stream.tokens()) == []
    assert (stream.result.ids, stream.result.reason) == ([first.id], "interrupted")
