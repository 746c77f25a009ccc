"""The front door: what other people's code relies on."""

import subprocess
import sys

import numpy as np
import pytest
import torch

import cutaway
from cutaway.errors import CutawayError


def test_logits_are_a_row_for_every_token(tiny_lm):
    ids = tiny_lm.tokenizer.encode("A robot must obey")
    logits = tiny_lm.logits("A robot must obey")
    assert logits.shape == (len(ids), 320)
    assert torch.equal(logits, tiny_lm.logits(ids))
    assert torch.allclose(logits, tiny_lm.model(torch.tensor([ids]))[0], atol=1e-6)


def test_an_empty_text_is_read_as_the_end_token(tiny_lm):
    assert torch.equal(tiny_lm.logits(""), tiny_lm.logits([319]))
    assert tiny_lm.predict("") == tiny_lm.predict([319])


def test_predict_gives_the_likeliest_first_with_their_probabilities(tiny_lm):
    predictions = tiny_lm.predict("A robot must", k=10)
    chances = tiny_lm.logits("A robot must")[-1].softmax(-1)
    assert [one.id for one in predictions] == chances.topk(10).indices.tolist()
    assert [one.probability for one in predictions] == pytest.approx(chances.topk(10).values.tolist(), rel=1e-5)
    assert [one.text for one in predictions] == [tiny_lm.tokenizer.decode([one.id]) for one in predictions]
    assert sum(one.probability for one in tiny_lm.predict("A robot must", k=1_000)) == pytest.approx(1)


def test_a_trace_of_a_text_has_no_batch_dimension(tiny_lm):
    trace = tiny_lm.trace("A robot must obey", keep=["blocks.*.attention.weights", "logits"])
    count = len(tiny_lm.tokenizer.encode("A robot must obey"))
    assert trace["blocks.2.attention.weights"].shape == (4, count, count)
    assert torch.allclose(trace["logits"], tiny_lm.logits("A robot must obey"), atol=1e-5)
    assert "blocks.2.attention.scores" not in trace


def test_saved_and_loaded_it_is_the_same(tiny_lm, tmp_path):
    tiny_lm.save(tmp_path / "model")
    again = cutaway.load(tmp_path / "model")
    assert torch.equal(again.logits("Once upon a time"), tiny_lm.logits("Once upon a time"))
    assert again.tokenizer.encode("Once upon a time") == tiny_lm.tokenizer.encode("Once upon a time")
    assert again.config == tiny_lm.config


@pytest.mark.parametrize("dtype", ["bfloat16", torch.bfloat16])
def test_a_model_loads_in_another_number_type_and_stays_near(tiny_lm, tmp_path, dtype):
    tiny_lm.save(tmp_path / "model")
    small = cutaway.load(tmp_path / "model", dtype=dtype)
    assert small.model.token_embedding.weight.dtype == torch.bfloat16
    assert (small.logits("Once upon") - tiny_lm.logits("Once upon")).abs().mean() < 0.1
    assert small.generate("Once", max_tokens=5, seed=1).ids


def test_the_builtin_model_is_the_default_and_writes_words():
    lm = cutaway.load()
    assert lm.name == "builtin"
    text = lm.generate("Once upon a time", max_tokens=20, seed=1).text
    assert len(text.split()) >= 8
    assert lm.predict("Once upon a")[0].text == " time"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("./nowhere", "There is no folder ./nowhere"),
        ("/nowhere/at/all", "There is no folder /nowhere/at/all"),
        (__file__, "is in a format that is not supported"),
    ],
)
def test_a_model_that_is_not_there_is_named(name, said):
    with pytest.raises(CutawayError, match=said):
        cutaway.load(name)


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ([320], "no token 320"),
        ([-1], "no token -1"),
        ([1.5], "a list of token ids, not"),
        ([None], "a list of token ids, not"),
    ],
)
def test_ids_that_are_no_tokens_are_refused(tiny_lm, prompt, said):
    with pytest.raises(CutawayError, match=said):
        tiny_lm.logits(prompt)


def test_ids_may_come_as_numpy_numbers_or_a_tensor(tiny_lm):
    ids = tiny_lm.tokenizer.encode("A robot must")
    assert torch.equal(tiny_lm.logits(np.array(ids)), tiny_lm.logits(ids))
    assert torch.equal(tiny_lm.logits(torch.tensor(ids)), tiny_lm.logits(ids))
    assert tiny_lm.generate(torch.tensor(ids), top_k=1, max_tokens=3).ids == tiny_lm.generate(ids, 3, top_k=1).ids


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(CutawayError, match="no device 'warp'"):
        cutaway.load(device="warp")


def test_an_unknown_number_type_is_refused():
    with pytest.raises(CutawayError, match="float32, bfloat16, float16"):
        cutaway.load(dtype="float8")


def test_a_tokenizer_larger_than_the_model_is_refused(tiny_lm):
    with pytest.raises(CutawayError, match="do not belong together"):
        cutaway.LanguageModel(tiny_lm.model, cutaway.Tokenizer.load("gpt2"))


def test_importing_cutaway_does_not_import_torch():
    code = "import cutaway, sys; assert 'torch' not in sys.modules; cutaway.Config; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_is_there():
    assert all(getattr(cutaway, name) is not None for name in cutaway.__all__)
    with pytest.raises(AttributeError):
        cutaway.nothing  # noqa: B018
