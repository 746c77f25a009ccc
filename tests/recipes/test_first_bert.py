"""recipes/first_bert.py: the tutorial's steps on a small encoder, and that the regression learns."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from cutaway.errors import CutawayError

SCRIPT = Path(__file__).resolve().parents[2] / "recipes" / "first_bert.py"


@pytest.fixture(scope="module")
def recipe():
    spec = importlib.util.spec_from_file_location("first_bert", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["first_bert"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["first_bert"]


@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_every_step_is_shown_and_the_sentences_are_told_apart(recipe, bert_lm, tmp_path, pooling):
    pytest.importorskip("sklearn")
    bert_lm.save(tmp_path / "bert")
    good, bad = ("a little fox sat", "the fox sat on a mat !"), ("the robots must obey .", "robots obeyed")
    rows = [
        (f"{one} {'the' * (n % 2)}", label)
        for n in range(20)
        for one, label in zip((*good, *bad), (1, 1, 0, 0), strict=True)
    ]
    (tmp_path / "train.tsv").write_text("".join(f"{text}\t{label}\n" for text, label in rows))
    said: list[str] = []
    found = recipe.first_bert(
        tmp_path / "bert",
        tmp_path / "train.tsv",
        count=0,
        pooling=pooling,
        picture=tmp_path / "map.svg",
        show=said.append,
    )
    assert [line[:2] for line in said if line[0].isdigit()] == [f"{n}." for n in range(1, 10)]
    assert "[CLS] a little fox sat [SEP]" in "\n".join(said)
    assert (found.sentences, found.trained_on, found.tested_on, found.width) == (80, 60, 20, 24)
    assert found.accuracy > 0.9 > found.most_frequent
    assert (tmp_path / "map.svg").read_text().count("<circle") == 20 + 8
    again = recipe.first_bert(
        tmp_path / "bert", tmp_path / "train.tsv", tmp_path / "train.tsv", 0, pooling, show=lambda line: None
    )
    assert (again.trained_on, again.tested_on) == (80, 80)


def test_a_wrong_table_or_folder_is_named(recipe, tiny_lm, tmp_path):
    (tmp_path / "train.tsv").write_text("a film\tgood\n")
    with pytest.raises(CutawayError, match="0 or 1 in each line"):
        recipe.read_table(tmp_path / "train.tsv", 0)
    tiny_lm.save(tmp_path / "tiny")
    with pytest.raises(CutawayError, match="is no encoder"):
        recipe.first_bert(tmp_path / "tiny", tmp_path / "train.tsv")


def test_the_choice_is_made_without_looking_at_what_is_held_back(recipe, bert_lm, tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    bert_lm.save(tmp_path / "bert")
    good, bad = ("a little fox sat", "the fox sat on a mat !"), ("the robots must obey .", "robots obeyed")
    texts = [
        (f"{one} {'the ' * (n % 3)}{n}", label)
        for n in range(20)
        for one, label in zip((*good, *bad), (1, 1, 0, 0), strict=True)
    ]
    (tmp_path / "train.tsv").write_text("".join(f"{text}\t{label}\n" for text, label in texts))
    looked: list[str] = []
    real = recipe.every_vector
    monkeypatch.setattr(recipe, "every_vector", lambda lm, some: looked.extend(some) or real(lm, some))
    said: list[str] = []
    found = recipe.first_bert(tmp_path / "bert", tmp_path / "train.tsv", count=0, chosen=True, show=said.append)
    assert len(looked) == len(set(looked)) == found.trained_on == 60 and found.tested_on == 20
    assert said[0].startswith("0. Choose") and f"{found.pooling} of layer {found.layer} by C" in said[3]
    assert found.pooling in recipe.POOLINGS and found.layer in (-1, -2) and found.strength in recipe.STRENGTHS
    test = tmp_path / "test.tsv"
    test.write_text("a little fox\t1\nthe robots obey\t0\n")
    looked.clear()
    again = recipe.first_bert(tmp_path / "bert", tmp_path / "train.tsv", test, 0, chosen=True, show=said.append)
    assert len(looked) == again.trained_on == 80 and "a little fox" not in looked


def test_every_vector_is_what_the_tutorial_slices(recipe, bert_lm):
    texts = ["a little fox sat", "the robots must obey . a cat"]
    found = recipe.every_vector(bert_lm, texts)
    for pooling in recipe.POOLINGS:
        for layer in (-1, -2):
            one = recipe.vectors(bert_lm, texts, pooling, layer, lambda line: None)
            assert abs(found[pooling, layer] - one).max() < 1e-5


def test_the_best_of_made_vectors_is_chosen(recipe):
    pytest.importorskip("sklearn")
    dice = np.random.default_rng(0)
    labels = dice.integers(0, 2, 80)
    noise = {(pooling, layer): dice.normal(size=(80, 3)) for pooling in recipe.POOLINGS for layer in (-2, -1)}
    noise["mean", -2] = noise["mean", -2] + 4 * labels[:, None]
    assert recipe.choose(noise, labels, lambda line: None)[:2] == ("mean", -2)
