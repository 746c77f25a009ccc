"""A watched generation: the same text, every step kept; and what the cache saved, counted."""

from __future__ import annotations

import json

import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.inspect.cache import cache, multiplications
from cutaway.inspect.generation import generation
from cutaway.language_model import LanguageModel
from cutaway.models.architecture import places
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config


def test_every_step_is_kept_and_together_they_are_the_trace_of_the_whole(tiny_lm):
    found = generation(tiny_lm, "Once upon a", 7, seed=3)
    plain = tiny_lm.generate("Once upon a", 7, seed=3)
    assert (found.result.text, found.result.ids, found.result.explanation) == (plain.text, plain.ids, plain.explanation)
    assert found.result.logprobs == pytest.approx(plain.logprobs, abs=1e-4)
    ids = [*plain.prompt_ids, *plain.ids[:-1]]  # the last token is written, not read
    trace = tiny_lm.trace(ids)
    assert len(found.steps) == 7
    for name in places(tiny_lm.config):
        if name == "logits":
            torch.testing.assert_close(found.whole(name), trace[name][-7:], rtol=1e-4, atol=1e-4)
        elif not name.endswith((".scores", ".masked")):
            torch.testing.assert_close(found.whole(name), trace[name], rtol=1e-4, atol=1e-4)
    scores = found.whole("blocks.1.attention.scores")
    made = ~scores.isnan()
    torch.testing.assert_close(scores[made], trace["blocks.1.attention.scores"][made], rtol=1e-4, atol=1e-4)
    assert (found.whole("blocks.1.attention.masked").softmax(-1).sum(-1) - 1).abs().max() < 1e-5


def test_keep_filters_by_name(tiny_lm):
    found = generation(tiny_lm, "Once", 3, keep=["blocks.*.mlp.output"], top_k=1)
    assert all(list(step) == [f"blocks.{layer}.mlp.output" for layer in range(3)] for step in found.steps)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"overflow": "slide"}, "slide"), ({"samples": 2}, "Only one"), ({"beams": 2}, "view of their own"),
        ({"keep": "blocks.9.*"}, "blocks.9"), ({"top_q": 1}, "top_q"),
    ],
)  # fmt: skip
def test_what_cannot_be_watched_is_refused(tiny_lm, settings, said):
    with pytest.raises(CutawayError, match=said):
        generation(tiny_lm, "Once", 3, **settings)


def test_multiplications_equal_a_count_by_hand():
    config = Config(vocabulary=11, context=9, width=4, layers=2, heads=2, mlp_width=6)
    # One block, 3 new tokens after 2: q, k, v 3 x (4 x 12); scores and sums 2 x (3 x 5 x 4); projection 3 x (4 x 4);
    # the MLP 3 x (4 x 6) there and back. Then one vector against 11 tokens.
    assert multiplications(config, read=3, reused=2) == 2 * (144 + 120 + 48 + 72 + 72) + 44


def test_multiplications_equal_those_torch_counts(tiny_lm):
    from torch.utils.flop_counter import FlopCounterMode

    from cutaway.parts.trace import Trace

    model, ids = tiny_lm.model, torch.tensor([[5, 6, 7, 8, 9]])
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model.score(model.read(ids, trace=Trace(()))[:, -1])
    assert counter.get_total_flops() == 2 * multiplications(tiny_lm.config, 5)


def test_each_step_reads_one_token_and_reuses_the_rest(tiny_lm):
    prompt = tiny_lm.ids("Once upon a")
    found = cache(tiny_lm, prompt, 5, top_k=1)
    assert [step.read for step in found.steps] == [len(prompt), 1, 1, 1, 1]
    assert [step.reused for step in found.steps] == [0, *range(len(prompt), len(prompt) + 4)]
    assert found.per_token_bytes == 2 * 3 * 48 * 4  # a key and a value, three layers, 48 wide, four bytes
    for step in found.steps:
        assert step.bytes_reused == step.reused * found.per_token_bytes
        assert step.bytes_written == step.read * found.per_token_bytes
        assert step.multiplications == multiplications(tiny_lm.config, step.read, step.reused)
        assert step.without == multiplications(tiny_lm.config, step.read + step.reused)
    assert [step.token.id for step in found.steps] == tiny_lm.generate(prompt, 5, top_k=1).ids
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["total"]["multiplications"] == sum(step["multiplications"] for step in told["steps"])
    assert told["total"]["without"] > told["total"]["multiplications"]


def test_a_text_that_ends_itself_has_a_last_step_without_a_token(tiny_lm):
    found = cache(tiny_lm, "Once", 5, logit_bias={tiny_lm.config.end: 1e4})
    assert len(found.steps) == 1 and found.steps[0].token is None
    assert found.to_dict()["steps"][0]["token"] is None


def test_a_sliding_window_is_read_anew(tiny_lm):
    torch.manual_seed(2)
    lm = LanguageModel(GPT(Config(320, context=8, width=16, layers=1, heads=2)), tiny_lm.tokenizer)
    end = {lm.config.end: float("-inf")}
    found = cache(lm, [1, 2, 3, 4, 5, 6, 7], 4, overflow="slide", logit_bias=end)
    assert [(step.read, step.reused) for step in found.steps] == [(7, 0), (6, 0), (1, 6), (6, 0)]


def test_an_empty_prompt_is_refused(tiny_lm):
    with pytest.raises(CutawayError, match="no text"):
        cache(tiny_lm, "")
