"""Which engine a model is loaded with, and that generation through it is the same."""

from __future__ import annotations

import pytest
import torch

import cutaway
from cutaway.errors import CutawayError
from cutaway.language_model import LanguageModel
from cutaway.models.architecture import count_parameters
from cutaway.runtime import choice
from cutaway.runtime.choice import SECOND_COPY, choose_weights
from cutaway.runtime.native import library
from cutaway.runtime.native.engine import Engine
from cutaway.runtime.native.pack import pack

if library.load() is None:
    pytest.skip("the native engine is not built here: no C++ compiler", allow_module_level=True)


def never_twice(ids, logits):
    logits[ids] = -float("inf")
    return logits


@pytest.fixture(scope="module")
def native(tiny_lm):
    return LanguageModel(tiny_lm.model, tiny_lm.tokenizer, "tiny", weights="float32")


@pytest.mark.parametrize(
    "settings",
    [
        {"top_k": 1}, {"seed": 4}, {"seed": 4, "samples": 3}, {"seed": 1, "top_p": 0.9, "repetition_penalty": 1.3},
        {"beams": 4, "best": 3}, {"seed": 2, "overflow": "slide", "max_tokens": 100}, {"temperature": 0},
        {"seed": 5, "logits_processors": never_twice}, {"beams": 3, "logits_processors": [never_twice]},
    ],
    ids=lambda given: " ".join(given),  # names only: a function's address is another in every process
)  # fmt: skip
def test_texts_are_those_that_torch_writes(tiny_lm, native, settings):
    settings = {"max_tokens": 30, **settings}
    prompts = ["Once upon a time", "A", "A robot must obey the orders given it"]
    ours, theirs = native.generate(prompts, **settings), tiny_lm.generate(prompts, **settings)
    assert isinstance(native.runtime, Engine)
    for one, other in zip(ours, theirs, strict=True):
        assert one.ids == other.ids
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)


def test_a_stream_gives_the_same_tokens(native, tiny_lm):
    ours, theirs = (list(lm.stream("Once", 20, seed=1).tokens()) for lm in (native, tiny_lm))
    assert [token.id for token in ours] == [token.id for token in theirs]
    assert [token.logprob for token in ours] == pytest.approx([token.logprob for token in theirs], abs=1e-4)


def test_a_stream_gives_the_same_text(native, tiny_lm):
    assert "".join(native.stream("Once", 20, seed=1)) == tiny_lm.generate("Once", 20, seed=1).text


def test_weights_that_were_trained_on_are_packed_again(make, tiny_lm):
    model = make(vocabulary=320)
    lm = LanguageModel(model, tiny_lm.tokenizer, weights="float32")
    before = lm.generate("Once", 10, top_k=1).logprobs
    with torch.no_grad():
        model.final_norm.weight.mul_(1.5)
    assert lm.generate("Once", 10, top_k=1).logprobs != before
    assert (
        lm.generate("Once", 10, top_k=1).ids
        == LanguageModel(model, tiny_lm.tokenizer).generate("Once", 10, top_k=1).ids
    )


def test_an_engine_alone_is_a_whole_language_model(tiny_lm):
    lm = LanguageModel(Engine(pack(tiny_lm.model, "int8")), tiny_lm.tokenizer)
    assert [one.id for one in lm.predict("Once upon a", 3)]
    assert lm.logits("Once").shape[-1] == 320
    assert lm.trace("Once upon", keep="blocks.0.attention.weights")["blocks.0.attention.weights"].shape[0] == 4


def test_the_built_in_model_loads_with_every_kind_of_weights():
    texts = {}
    for weights in ("float32", "bfloat16", "int8", "int4"):
        lm = cutaway.load(weights=weights)
        texts[weights] = lm.generate("Once upon a time", 12, top_k=1).ids
        assert isinstance(lm.runtime, Engine)
    torch_text = cutaway.load(engine="torch").generate("Once upon a time", 12, top_k=1).ids
    assert texts["float32"] == torch_text
    assert texts["int8"] == torch_text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("quick", None, "cpu", True), "no engine 'quick'"),
        (("auto", "int9", "cpu", True), "no weights 'int9'.*int8"),
        (("torch", "int8", "cpu", True), "need the native engine"),
        (("native", None, "cuda", True), "runs on the processor"),
        (("auto", "int8", "mps", True), "runs on the processor"),
        (("native", None, "cpu", False), "for torch"),
    ],
)
def test_what_cannot_be_had_together_is_refused(arguments, says):
    with pytest.raises(CutawayError, match=says):
        choose_weights(*arguments)


def test_left_to_itself_the_better_engine_writes(monkeypatch):
    assert choose_weights("auto", None, "cpu", True) == "float32"
    assert isinstance(cutaway.load().runtime, Engine)
    assert choose_weights("auto", None, "cpu", True, size=SECOND_COPY + 1) is None
    assert choose_weights("auto", None, "cuda", True) is None
    assert choose_weights("auto", None, "cpu", False) is None
    assert choose_weights("torch", None, "cpu", True) is None
    monkeypatch.setattr(choice, "load", lambda: None)  # no compiler was there when Cutaway was installed
    assert choose_weights("auto", None, "cpu", True) is None
    assert not isinstance(cutaway.load().runtime, Engine)


def test_the_weights_are_counted_from_the_shape(tiny_lm):
    assert count_parameters(tiny_lm.config) == sum(parameter.numel() for parameter in tiny_lm.model.parameters())


def test_what_the_engine_writes_by_itself_is_what_torch_would():
    by_itself, torchs = cutaway.load(), cutaway.load(engine="torch")
    for seed in range(3):
        one, other = (lm.generate("One day", max_tokens=60, seed=seed) for lm in (by_itself, torchs))
        assert one.ids == other.ids
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)
