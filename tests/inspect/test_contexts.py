"""What excites it: the strongest places of a corpus, as a loop over all of it finds them; gone on with after an end."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch

import cutaway
from cutaway.checkpoint.locate import DATA
from cutaway.errors import CutawayError
from cutaway.inspect import contexts as module
from cutaway.inspect.contexts import QUANTILES, Record, contexts, record, texts_of
from cutaway.inspect.runs import unread
from cutaway.inspect.steering import steering_vector
from cutaway.language_model import LanguageModel
from cutaway.runtime.fingerprint import fingerprint

TEXTS = [
    "a fox",
    "the little box on a hill",
    "Once upon a time",
    "there was a fox who",
    "a little hill and a little fox",
]


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "WINDOW", 6)
    monkeypatch.setattr(module, "AT_ONCE", 3)
    monkeypatch.setattr(module, "SAVED", 1)
    monkeypatch.setenv("CUTAWAY_HOME", str(tmp_path / "home"))


def pieces(lm):
    for text in TEXTS:
        ids = lm.ids(text)
        yield from (ids[first : first + 6] for first in range(0, len(ids), 6))


@pytest.mark.parametrize("what", ["neuron", "head"])
def test_the_strongest_places_and_the_quantiles_are_those_of_a_loop(tiny_lm, tmp_path, what):
    found = record(tiny_lm, TEXTS, tmp_path / "made", what, top=3)
    name = {"neuron": "blocks.1.mlp.activation", "head": "blocks.1.attention.heads"}[what]
    every = [tiny_lm.trace(piece)[name] for piece in pieces(tiny_lm)]
    every = [one if what == "neuron" else one.norm(dim=-1).T for one in every]
    for unit in (0, 2, 3):
        best = sorted((float(one[:, unit].max()) for one in every), reverse=True)[:3]
        seen = contexts(unread(tiny_lm, [0]), 1, unit, what, tmp_path / "made")
        assert [one.value for one in seen.contexts] == pytest.approx(best, rel=1e-4, abs=1e-5)
        for one in seen.contexts:
            assert float(one.activations[one.at]) == pytest.approx(one.value, rel=1e-4, abs=1e-5)
            assert one.activations.argmax() == one.at and len(one.tokens) <= 6
        column = torch.cat(every)[:, unit].double().numpy()
        for share, value in seen.quantiles:
            true = np.quantile(column, share, method="inverted_cdf")
            assert value == pytest.approx(true, rel=0.04, abs=2e-4)
    assert seen.tokens == found.about["read"] == sum(map(len, pieces(tiny_lm))) and len(seen.quantiles) == len(
        QUANTILES
    )


def test_a_recording_that_was_ended_goes_on_to_the_same_record(tiny_lm, tmp_path):
    whole = record(tiny_lm, TEXTS, tmp_path / "whole", top=2)

    class Ended(Exception):
        pass

    def end(read):
        if read > 12:
            raise Ended

    with pytest.raises(Ended):
        record(tiny_lm, TEXTS, tmp_path / "parts", top=2, progress=end)
    half = Record.load(tmp_path / "parts")
    assert not half.finished and 0 < half.about["read"] < whole.about["read"]
    with pytest.raises(CutawayError, match="not a finished record"):
        contexts(unread(tiny_lm, [0]), 0, 0, file=tmp_path / "parts")
    again = record(tiny_lm, TEXTS, tmp_path / "parts", top=2)
    assert again.about["read"] == whole.about["read"]
    np.testing.assert_allclose(again.values, whole.values, rtol=1e-5)
    np.testing.assert_array_equal(again.quantiles, whole.quantiles)
    for layer, neuron in ((0, 1), (2, 5)):
        ways = [contexts(unread(tiny_lm, [0]), layer, neuron, file=tmp_path / name) for name in ("whole", "parts")]
        assert [one.tokens for one in ways[0].contexts] == [one.tokens for one in ways[1].contexts]


def test_a_direction_of_ones_own_and_a_limit(tiny_lm, tmp_path):
    way = steering_vector(tiny_lm, ["a fox"], ["a box"], layer=1)
    found = record(tiny_lm, TEXTS, tmp_path / "made", way, top=1, tokens=8)
    some = list(pieces(tiny_lm))[:3]  # what was begun side by side is read to its end
    best = max(float((tiny_lm.trace(piece)["blocks.1.residual"] @ way.vector).max()) for piece in some)
    assert found.values.shape == (1, 1, 1) and found.values[0, 0, 0] == pytest.approx(best, rel=1e-4)


def test_it_is_found_by_its_weights_and_missing_is_said(tiny_lm, tmp_path):
    assert contexts(unread(tiny_lm, [0]), 0, 0).corpus is None
    record(tiny_lm, TEXTS, module.recorded_at(tiny_lm), corpus="foxes")
    seen = contexts(unread(tiny_lm, [0]), 0, 3)
    assert seen.corpus == "foxes" and seen.contexts
    assert contexts(unread(tiny_lm, [0]), 0, 0, "head").corpus is None


def test_the_record_that_ships_is_of_the_model_that_ships_and_small():
    """`make contexts` makes it, after `make builtin`."""
    for path in (DATA / "contexts").glob("*.safetensors"):
        found, lm = Record.load(path), cutaway.load(path.stem)
        assert found.finished and found.about["model"] == fingerprint(lm.model), "make contexts"
        assert found.about["corpus"] and path.stat().st_size < 2_000_000
        seen = contexts(unread(lm, [0]), 0, 0, found.about["what"])
        assert seen.corpus == found.about["corpus"] and len(seen.quantiles) == len(QUANTILES)


def test_a_record_that_ships_is_shown_and_refused_once_the_weights_are_others(tiny_lm, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "DATA", tmp_path)
    record(tiny_lm, TEXTS, tmp_path / "contexts" / "tiny.safetensors", corpus="foxes")
    assert contexts(unread(tiny_lm, [0]), 0, 3).corpus == "foxes"
    trained = LanguageModel(deepcopy(tiny_lm.model), tiny_lm.tokenizer, "tiny")
    with torch.no_grad():
        trained.model.final_norm.weight.mul_(1.01)
    with pytest.raises(CutawayError, match="recorded with other weights than those of tiny"):
        contexts(unread(trained, [0]), 0, 3)
    trained.name = "mine"  # a model of one's own has no record, and is not the one that ships
    assert contexts(unread(trained, [0]), 0, 3).corpus is None
    with pytest.raises(CutawayError, match="not a finished record of the neurons of mine"):
        contexts(unread(trained, [0]), 0, 3, file=tmp_path / "contexts" / "tiny.safetensors")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"what": "layer"}, "choose neuron or head"), ({"top": 0}, "1 or more"), ({"texts": []}, "no text to record"),
        ({"corpus": "other"}, "another corpus"), ({"top": 9}, "another top"), ({"what": "head"}, "another what"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(tiny_lm, tmp_path, given, said):
    path = tmp_path / "made"
    if "another" in said:
        record(tiny_lm, TEXTS, path, corpus="foxes")
    with pytest.raises(CutawayError, match=said):
        record(tiny_lm, **{"texts": TEXTS, "path": path, "corpus": "foxes", **given})
    with pytest.raises(CutawayError, match="no neuron 9999"):
        contexts(unread(tiny_lm, [0]), 0, 9999)


def test_a_file_is_read_text_by_text(tmp_path):
    plain, lines = tmp_path / "a.txt", tmp_path / "a.jsonl"
    plain.write_text("one\nstill one\n\ntwo\n<|endoftext|>\nthree")
    lines.write_text('{"text": "one"}\n{"text": "two"}\n')
    assert list(texts_of(plain)) == ["one\nstill one", "two", "three"] and list(texts_of(lines)) == ["one", "two"]
    lines.write_text("not json")
    for path in (lines, tmp_path / "none"):
        with pytest.raises(CutawayError, match=r"cannot be read|neither"):
            list(texts_of(path))
