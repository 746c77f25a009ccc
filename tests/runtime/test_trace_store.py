"""Traces in a folder: those of single runs, gone on with after an end, and never mixed with others."""

from __future__ import annotations

import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.language_model import LanguageModel
from cutaway.runtime import trace_store
from cutaway.runtime.trace_store import TraceStore

KEEP = ["blocks.*.residual", "blocks.1.attention.weights"]
TEXTS = ["a fox", "the little box on a hill", "Once", "upon a time", "there was a fox who"]


@pytest.fixture(autouse=True)
def two_a_file(monkeypatch):
    monkeypatch.setattr(trace_store, "TEXTS", 2)


def test_they_are_those_of_single_runs_without_padding(tiny_lm, tmp_path):
    told = []
    store = tiny_lm.traces((text for text in TEXTS), KEEP, to=tmp_path / "traces", progress=told.append)
    assert told == [2, 4, 5] and len(store) == 5 and len(list(store)) == 5
    again = TraceStore(tmp_path / "traces")
    for at, text in enumerate(TEXTS):
        single = tiny_lm.trace(text, KEEP)
        assert list(again[at]) == list(single)
        for name in single:
            assert again[at][name].shape == single[name].shape
            torch.testing.assert_close(again[at][name], single[name], atol=1e-5, rtol=1e-5)
    assert torch.equal(store[-1]["blocks.0.residual"], store[4]["blocks.0.residual"]) and len(store[1:3]) == 2
    with pytest.raises(IndexError):
        store[5]


def test_a_run_that_was_ended_goes_on_and_computes_only_the_rest(tiny_lm, tmp_path):
    class Ended(Exception):
        pass

    def end(done):
        if done == 2:
            raise Ended

    with pytest.raises(Ended):
        tiny_lm.traces(TEXTS, KEEP, to=tmp_path, progress=end)
    assert len(TraceStore(tmp_path)) == 2
    read = []
    handle = tiny_lm.model.blocks[0].register_forward_hook(lambda _m, given, _o: read.append(len(given[0])))
    try:
        store = tiny_lm.traces(TEXTS, KEEP, to=tmp_path)
        assert len(store) == 5 and sum(read) == 3
        tiny_lm.traces(TEXTS, KEEP, to=tmp_path)
        assert sum(read) == 3
    finally:
        handle.remove()


def test_it_stops_at_the_last_layer_anyone_asked_for(tiny_lm, tmp_path):
    reached = []
    handles = [
        block.register_forward_hook(lambda *_, at=at: reached.append(at))
        for at, block in enumerate(tiny_lm.model.blocks)
    ]
    try:
        tiny_lm.traces(TEXTS, "blocks.0.residual", to=tmp_path)
    finally:
        for handle in handles:
            handle.remove()
    assert set(reached) <= {0}


def test_what_does_not_belong_together_is_refused(tiny_lm, tmp_path):
    tiny_lm.traces(TEXTS, KEEP, to=tmp_path)
    other = LanguageModel(type(tiny_lm.model)(tiny_lm.config), tiny_lm.tokenizer, "other")
    for lm, texts, keep, said in (
        (tiny_lm, TEXTS, "blocks.0.residual", "for other names"),
        (tiny_lm, [*TEXTS[1:], "a"], KEEP, "of other texts"),
        (tiny_lm, TEXTS[:2], KEEP, "more texts than the 2 given"),
        (other, TEXTS, KEEP, "by another model"),
        (tiny_lm, [], KEEP, "no texts"),
        (tiny_lm, TEXTS, "blocks.*.residul", "Nothing in this model"),
        (tiny_lm, "a fox", KEEP, "Several texts"),
    ):
        with pytest.raises(CutawayError, match=said):
            lm.traces(texts, keep, to=tmp_path)
    with pytest.raises(CutawayError, match="no traces in"):
        TraceStore(tmp_path / "nowhere")
    (tmp_path / "00000.safetensors").write_bytes(b"nothing")
    with pytest.raises(CutawayError, match="does not hold traces"):
        TraceStore(tmp_path)
