"""recipes/first_bert.py: the tutorial's steps on a small encoder, and that the regression learns."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

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
