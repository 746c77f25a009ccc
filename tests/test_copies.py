"""A model that is copied or pickled is the same model, whatever writes its texts, and one of its own."""

import copy
import pickle

import pytest
import torch

import cutaway
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import ACTIVATIONS, Config
from cutaway.runtime.native import library

HOW = [{"engine": "torch"}, {}, {"weights": "int8"}, {"weights": "int4"}][: 2 if library.load() is None else 4]
WAYS = {"deepcopy": copy.deepcopy, "pickle": lambda lm: pickle.loads(pickle.dumps(lm))}


@pytest.fixture(scope="module")
def folder(tiny_lm, tmp_path_factory):
    path = tmp_path_factory.mktemp("copies") / "model"
    tiny_lm.save(path)
    return path


@pytest.mark.parametrize("again", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize("used", [False, True], ids=["fresh", "used"])
def test_a_copy_writes_what_the_model_writes(folder, again, how, used):
    lm = cutaway.load(folder, **how)
    if used:  # its engine made, and torch's model of packed weights
        lm.generate("Once", max_tokens=2)
        lm.trace("Once", keep="residual.0")
    other = again(lm)
    assert other.generate("Once", max_tokens=8, seed=1) == lm.generate("Once", max_tokens=8, seed=1)
    assert torch.equal(other.logits("Once upon"), lm.logits("Once upon"))
    assert other.tokenizer.encode("Once upon") == lm.tokenizer.encode("Once upon")
    del lm
    assert other.generate("Once", max_tokens=3, seed=1).ids


@pytest.mark.parametrize("again", WAYS.values(), ids=WAYS)
def test_a_copy_has_weights_of_its_own(folder, again):
    lm = cutaway.load(folder)
    before = lm.generate("Once", max_tokens=8, temperature=0).ids
    other = again(lm)
    with torch.no_grad():
        for parameter in other.model.parameters():
            parameter.add_(torch.randn(parameter.shape))
    assert lm.generate("Once", max_tokens=8, temperature=0).ids == before
    assert other.generate("Once", max_tokens=8, temperature=0).ids != before


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation_can_be_pickled(activation):
    model = GPT(Config(vocabulary=50, context=8, width=8, layers=1, heads=2, activation=activation)).eval()
    ids = torch.tensor([[1, 2, 3]])
    assert torch.equal(pickle.loads(pickle.dumps(model))(ids), model(ids))
