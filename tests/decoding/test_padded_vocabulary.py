"""A model with more scores than its tokenizer has tokens (a padded vocabulary) never writes what is no token."""

import math

import numpy as np
import pytest
import torch

import cutaway
from cutaway.errors import CutawayError
from cutaway.inspect.change import AblateHead, changed
from cutaway.inspect.choices import choices
from cutaway.inspect.facts import facts
from cutaway.inspect.lens import lens
from cutaway.inspect.neurons import neuron
from cutaway.inspect.path import attribution
from cutaway.inspect.run import run
from cutaway.inspect.saliency import saliency
from cutaway.language_model import LanguageModel
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.runtime.native import library
from cutaway.runtime.native.engine import Engine
from cutaway.runtime.native.pack import pack

TOKENS = 320


@pytest.fixture(scope="module")
def padded(tiny_lm):
    """A model of 384 scores whose 64 last entries, no tokens, are far the likeliest everywhere."""
    torch.manual_seed(3)
    model = GPT(Config(vocabulary=384, context=48, width=48, layers=2, heads=4, end_token=TOKENS - 1)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.15)
        model.final_norm.bias[0] = 10.0
        model.token_embedding.weight[TOKENS:, 0] = 2.0
    lm = LanguageModel(model, tiny_lm.tokenizer, "padded")
    assert int(lm.logits("Once")[-1].argmax()) >= TOKENS
    return lm


@pytest.fixture(params=["torch", "native"])
def either(request, padded):
    """The same model, written by either engine."""
    if request.param == "torch":
        return padded
    if library.load() is None:
        pytest.skip("the native engine is not built here: no C++ compiler")
    return LanguageModel(Engine(pack(padded.model, "float32")), padded.tokenizer, "padded")


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": 0},
        {"top_k": 1, "repetition_penalty": 1.5},
        {"seed": 1, "top_k": None},
        {"seed": 1, "top_k": 40, "top_p": 0.9, "min_p": 0.01},
        {"seed": 2, "samples": 3, "temperature": 3.0, "top_k": None},
        {"beams": 4, "best": 4},
        {"beams": 200, "best": 200, "max_tokens": 2},
    ],
    ids=str,
)
def test_only_tokens_are_written(either, settings):
    results = either.generate(["Once", "A robot must"], **{"max_tokens": 12, **settings})
    for one in results:
        assert all(token < TOKENS for token in one.ids) and all(map(math.isfinite, one.logprobs))
        assert one.text == either.tokenizer.decode(one.ids)
    assert sum(len(one.ids) for one in results) > 4


def test_the_log_probabilities_stay_the_models_own(padded):
    result = padded.generate("Once", max_tokens=6, seed=1)
    whole = padded.logits([*result.prompt_ids, *result.ids]).log_softmax(-1)
    expected = [float(whole[len(result.prompt_ids) - 1 + at, token]) for at, token in enumerate(result.ids)]
    assert result.logprobs == pytest.approx(expected, abs=1e-4)


def test_only_tokens_are_predicted_and_listed_as_alternatives(either):
    found = either.predict("Once", k=1_000)
    assert len(found) == TOKENS and max(one.id for one in found) < TOKENS
    assert sum(one.probability for one in found) < 0.5  # the rest is on what is no token
    for token in either.score("Once upon", k=5).tokens:
        assert all(one.id < TOKENS for one in token.alternatives)


def test_how_a_token_was_chosen_shows_only_tokens(padded):
    found = choices(padded, "Once", 6, seed=4, top_k=None)
    assert found.result.ids == padded.generate("Once", max_tokens=6, seed=4, top_k=None).ids
    for step in found.steps:
        assert step.possible <= TOKENS and all(one.id < TOKENS for one in step.candidates)
        [(start, end)] = [(start, end) for number, start, end in step.line if number == step.chosen]
        assert start <= step.die < end


def test_a_bias_for_what_is_no_token_is_refused(padded):
    with pytest.raises(CutawayError, match="names token 330: there are 320 tokens"):
        padded.generate("Once", logit_bias={330: 5.0})


def test_where_the_end_was_taken_for_the_last_entry_it_is_the_tokenizers(padded, tmp_path):
    model = GPT(Config(vocabulary=384, context=48, width=48, layers=1, heads=4))
    assert model.config.end == 383
    LanguageModel(model, padded.tokenizer).save(tmp_path / "model")
    assert cutaway.load(tmp_path / "model").config.end == TOKENS - 1
    assert np.isfinite(cutaway.load(tmp_path / "model").generate("", max_tokens=3, seed=1).logprobs).all()


def test_whoever_looks_inside_is_shown_only_tokens(padded):
    seen = run(padded, "Once upon a")
    after = run(padded, "Once upon a", changes=[AblateHead(0, 0)])
    best = padded.predict("Once upon a", k=1)[0].id
    assert seen.next(-1) == attribution(seen).token.id == saliency(seen).targets[0].token.id == best
    looked = lens(seen, k=TOKENS)
    assert looked.top.max() < TOKENS and looked.chosen[-1].id == best and looked.rank[-1, -1] == 1
    moved = changed(seen, after, k=TOKENS)
    assert moved.before[0].token.id == best
    assert all(one.token.id < TOKENS for one in (*moved.before, *moved.after, *moved.moved))
    assert all(token.id < TOKENS for token, _ in neuron(seen, 0, 3).writes)
    first = padded.predict([padded.config.end], k=1)[0].id
    assert padded.score([first]).tokens[0].rank == 1
    said = facts(seen, {kind: {"of": kind} for kind in ("next", "branches", "temperatures", "missed")})
    assert all([token.id for token in fact["token"].value] == [best] for fact in said.values())
