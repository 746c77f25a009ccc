"""The names that other people's code relies on, used as they use them."""

from __future__ import annotations

import inspect as signatures

import torch

import cutaway
from cutaway import inspect


def test_loading_takes_its_arguments_in_this_order():
    assert list(signatures.signature(cutaway.load).parameters)[:5] == [
        "name",
        "device",
        "dtype",
        "weights",
        "tokenizer",
    ]


def test_a_model_is_run_scored_traced_and_swept_by_these_names(tmp_path):
    lm = cutaway.load("builtin")
    ids = lm.tokenizer.encode("Once upon a")
    assert lm.tokenizer.decode(ids) == "Once upon a"
    lm.tokenizer.save(tmp_path / "tokenizer")
    assert cutaway.Tokenizer.load(tmp_path / "tokenizer").encode("Once upon a") == ids
    assert len(cutaway.Tokenizer.load("gpt2")) == 50_257

    assert torch.equal(lm.logits("Once upon a"), lm.logits(ids))
    assert len(lm.predict("Once upon a", k=10)) == 10
    assert len(lm.score("Once upon a").tokens) == len(ids)
    assert lm.embed(["Once", "upon a"]).shape == (2, lm.config.width)

    result = lm.generate("Once", max_tokens=3, temperature=1.0, top_k=40, top_p=None, seed=1, beams=None, changes=[])
    assert (result.text, result.reason) == (lm.tokenizer.decode(result.ids), "length")
    assert lm.generate("Once", max_tokens=3, temperature=0).ids == lm.generate("Once", max_tokens=3, top_k=1).ids
    assert "".join(lm.stream("Once", max_tokens=3, seed=1, temperature=1.0, top_k=40)) == result.text

    name = "blocks.1.attention.weights"
    trace, [again, _] = lm.trace("Once upon a", keep=name), lm.traces(["Once upon a", "There"], keep=name)
    assert trace[name].shape == again[name].shape == (lm.config.heads, len(ids), len(ids))

    sweep = lm.sweep("Once upon a", "Once there a", what="head", metric=lambda logits: logits[-1, ids[0]])
    assert sweep.values.shape == (lm.config.layers, lm.config.heads)
    seen = inspect.run(lm, "Once upon a", changes=[inspect.AblateHead(1, 0)])
    assert seen["logits"].shape == (len(ids), lm.config.vocabulary)
