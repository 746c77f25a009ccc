"""generation_config.json: what a model recommends is used where nothing else is said, and travels with it."""

from __future__ import annotations

import json

import pytest

import cutaway
from cutaway.checkpoint.recommended import read_recommended
from cutaway.errors import CutawayError
from cutaway.language_model import LanguageModel

FILE = "generation_config.json"


@pytest.fixture
def folder(tiny_lm, tmp_path):
    tiny_lm.save(tmp_path / "model")
    return tmp_path / "model"


def say(folder, **said):
    kept = json.loads((folder / FILE).read_text())
    (folder / FILE).write_text(json.dumps(kept | said))
    return folder


def test_a_model_that_recommends_nothing_writes_as_the_article_does(folder):
    lm = cutaway.load(folder)
    assert lm.recommended == {}
    how = lm.settings({}, None)
    assert (how.temperature, how.top_k, how.top_p) == (1.0, 40, None)
    (folder / FILE).unlink()
    assert cutaway.load(folder).recommended == {}


def test_what_a_folder_recommends_is_used_and_what_is_said_wins(folder):
    lm = cutaway.load(say(folder, do_sample=True, temperature=0.7, top_k=0, top_p=0.9, max_length=20))
    assert lm.recommended == {"temperature": 0.7, "top_k": None, "top_p": 0.9}
    how = lm.settings({"temperature": 1.5}, 3)
    assert (how.temperature, how.top_k, how.top_p, how.max_tokens) == (1.5, None, 0.9, 3)
    assert lm.generate("A robot", 5, seed=4).ids == LanguageModel(lm.model, lm.tokenizer).generate(
        "A robot", 5, seed=4, temperature=0.7, top_k=None, top_p=0.9
    ).ids  # fmt: skip


def test_the_likeliest_and_beams_are_not_touched_by_what_is_recommended(folder):
    lm = cutaway.load(say(folder, temperature=0.7, repetition_penalty=1.9))
    plain = LanguageModel(lm.model, lm.tokenizer)
    for asked in ({"top_k": 1}, {"beams": 3}):
        assert lm.settings(asked, 5) == plain.settings(asked, 5)
    assert lm.settings({}, 5).repetition_penalty == 1.9


def test_a_model_that_is_not_to_be_sampled_is_greedy(folder):
    lm = cutaway.load(say(folder, do_sample=False, temperature=0.7))
    assert lm.settings({}, None).greedy
    assert lm.settings({"top_k": 5}, None).top_k == 5


@pytest.mark.parametrize(
    "recommended", [{"temperature": 0.8, "top_k": None}, {"top_k": 1}, {"top_p": 0.95, "min_p": 0.02}]
)
def test_what_is_recommended_is_written_with_the_model_and_transformers_reads_it(tiny_lm, tmp_path, recommended):
    from transformers import GenerationConfig

    lm = LanguageModel(tiny_lm.model, tiny_lm.tokenizer)
    lm.recommended = recommended
    lm.save(tmp_path / "model")
    assert read_recommended(tmp_path / "model") == recommended
    there = GenerationConfig.from_pretrained(tmp_path / "model")
    assert there.eos_token_id == lm.config.end
    assert bool(there.do_sample) is (recommended != {"top_k": 1})
    if "temperature" in recommended:
        assert (there.temperature, there.top_k) == (0.8, 0)


def test_packed_weights_keep_it(folder, tmp_path):
    from cutaway.runtime.native import packed_file as stored

    lm = cutaway.load(say(folder, temperature=0.6), weights="int8")
    stored.write_packed(lm.runtime.packed, lm.tokenizer, tmp_path / "model.cutaway", recommended=lm.recommended)
    assert cutaway.load(tmp_path / "model.cutaway").recommended == {"temperature": 0.6}


@pytest.mark.parametrize("said", [{"temperature": -1}, {"top_p": 7}, {"top_k": "many"}, {"min_p": True}])
def test_what_cannot_be_is_refused_with_the_file(folder, said):
    with pytest.raises(CutawayError, match=FILE):
        cutaway.load(say(folder, **said))
    (folder / FILE).write_text("{")
    with pytest.raises(CutawayError, match=FILE):
        cutaway.load(folder)
