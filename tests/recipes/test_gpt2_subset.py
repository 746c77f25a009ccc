"""recipes/gpt2_subset.py: a part of GPT-2's vocabulary cuts every text made of its tokens exactly as GPT-2 does."""

from __future__ import annotations

import importlib
import random
import sys
from pathlib import Path

import pytest

from cutaway.text.tokenizer import Tokenizer

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
TEXT = (Path(__file__).resolve().parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def recipe():
    sys.path.insert(0, str(RECIPES))
    try:
        yield importlib.import_module("gpt2_subset")
    finally:
        sys.path.remove(str(RECIPES))
        for name in ("gpt2_subset", "exhibits", "exhibit_words"):
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def gpt2():
    return Tokenizer.load("gpt2")


@pytest.fixture(scope="module")
def part(recipe, gpt2):
    return recipe.subset(dict.fromkeys(gpt2.encode(TEXT)), 3000)


def test_it_has_the_bytes_the_end_and_gpt2s_order(part, gpt2):
    assert (len(part), part.end) == (3000, 2999)
    assert [part.token_bytes(token) for token in range(256)] == [gpt2.token_bytes(token) for token in range(256)]
    assert part.gpt2_ids == sorted(part.gpt2_ids)
    assert part.gpt2_ids[part.end] == gpt2.end
    for token in range(len(part)):
        assert part.token_bytes(token) == gpt2.token_bytes(part.gpt2_ids[token])


def test_a_text_made_of_its_tokens_is_cut_as_gpt2_cuts_it(part, gpt2, shared_data):
    """Of a large text every word, and of words that GPT-2 cuts into other tokens none."""
    import lzma

    with lzma.open(shared_data / "stories" / "stories.txt.xz", "rt", encoding="utf-8") as file:
        text = file.read(6_000_000)
    known, same, other = set(part.gpt2_ids), 0, 0
    for paragraph in text.split("\n"):
        theirs = gpt2.encode(paragraph)
        ours = [part.gpt2_ids[token] for token in part.encode(paragraph)]
        if known.issuperset(theirs):
            assert ours == theirs, paragraph
            same += len(theirs)
        else:
            other += len(theirs)
            assert part.decode(part.encode(paragraph)) == paragraph
    assert same > 50_000 and other > 50_000


def test_so_is_a_text_of_tokens_drawn_at_random(part, gpt2):
    """Most strings of tokens are cut otherwise than they were put together: but by both in the same way."""
    rng, known, same = random.Random(1), set(part.gpt2_ids), 0
    for _ in range(3000):
        text = gpt2.decode(rng.choices(part.gpt2_ids[:-1], k=6))
        theirs = gpt2.encode(text)
        if known.issuperset(theirs):
            same += 1
            assert [part.gpt2_ids[token] for token in part.encode(text)] == theirs
    assert same > 300


def test_other_vocabularies_are_no_part_of_it(gpt2, part):
    assert gpt2.gpt2_ids is None
    assert Tokenizer.train([TEXT], 400).gpt2_ids is None
    assert part.with_specials(["<|separator|>"]).gpt2_ids is None


def test_the_articles_sentences_are_whole_words(recipe, gpt2):
    whole = recipe.subset(sorted({token for ids in gpt2.encode_batch(recipe.words_to_have()) for token in ids}), 8000)
    for text in (
        " robot must obey orders",
        "A robot must obey the orders given it by human beings except where such orders",
    ):
        assert [whole.gpt2_ids[token] for token in whole.encode(text)] == gpt2.encode(text)
    assert len(whole.encode(" robot must obey orders")) == 4


def test_the_explorer_is_told_both_ids_and_what_the_model_recommends(part, tiny):
    import torch

    from cutaway.inspect.runs import run
    from cutaway.language_model import LanguageModel
    from cutaway.models.gpt2.model import GPT
    from cutaway.models.gpt2.shape import Config

    torch.manual_seed(0)
    lm = LanguageModel(GPT(Config(len(part), 16, 16, 1, 2, end_token=part.end)), part)
    lm.recommended = {"temperature": 0.8}
    found = run(lm, "the model").to_dict()
    assert found["recommended"] == {"temperature": 0.8}
    assert [one["gpt2"] for one in found["tokens"]] == Tokenizer.load("gpt2").encode("the model")
    assert "gpt2" not in run(LanguageModel(tiny, Tokenizer.train([TEXT], 320)), "the").to_dict()["tokens"][0]
