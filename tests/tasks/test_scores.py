"""BLEU, ROUGE and accuracy."""

from __future__ import annotations

import importlib

import pytest

from cutaway.errors import CutawayError
from cutaway.tasks import scores
from cutaway.tasks.scores import accuracy, bleu, rouge

ANSWERS = ["le renard court sur la colline .", "le chien dort ."]
REFERENCES = ["le renard court sur la colline .", "le petit chien dort au soleil ."]


def test_bleu_is_sacrebleus_with_its_signature():
    sacrebleu = pytest.importorskip("sacrebleu", reason="sacrebleu is not installed (extra 'evaluate')")
    found = bleu(ANSWERS, REFERENCES)
    assert found.value == pytest.approx(sacrebleu.corpus_bleu(ANSWERS, [REFERENCES]).score)
    assert 0 < found.value < 100
    assert "tok:13a" in found.how
    assert f"version:{sacrebleu.__version__}" in found.how
    assert found.count == 2
    assert bleu(REFERENCES, REFERENCES).value == pytest.approx(100)


def test_rouge_is_the_mean_f_measure_of_rouge_score():
    pytest.importorskip("rouge_score", reason="rouge-score is not installed (extra 'evaluate')")
    found = rouge(["the cat sat", "nothing alike"], ["the cat sat down", "other words"])
    # 3 of 3 and 3 of 4 words: 2 * 1 * 0.75 / 1.75 = 6/7; 2 of 2 and 2 of 3 pairs: 4/5; the second answer: 0
    assert found.parts["ROUGE-1"] == pytest.approx(100 * 6 / 7 / 2)
    assert found.parts["ROUGE-2"] == pytest.approx(100 * 4 / 5 / 2)
    assert found.value == found.parts["ROUGE-L"] == pytest.approx(100 * 6 / 7 / 2)
    assert "Porter" in found.how


def test_accuracy_counts_right_answers_in_all_and_by_class():
    found = accuracy(["a", "b", "a", "a"], ["a", "b", "b", "a"])
    assert found.value == 75
    assert found.parts == {"a": 100, "b": 50}
    assert found.count == 4


@pytest.mark.parametrize("measure", [bleu, rouge, accuracy])
def test_answers_without_references_are_refused(measure):
    with pytest.raises(CutawayError, match="2 answers and 1 references"):
        measure(["a", "b"], ["a"])
    with pytest.raises(CutawayError, match="no answers"):
        measure([], [])


@pytest.mark.parametrize(("measure", "package"), [(bleu, "sacrebleu"), (rouge, "rouge-score")])
def test_a_missing_package_is_named_with_its_remedy(monkeypatch, measure, package):
    def nothing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(scores.importlib, "import_module", nothing)
    with pytest.raises(CutawayError, match=rf"{package} is needed.*pip install 'cutaway\[evaluate\]'"):
        measure(["a"], ["a"])
    assert importlib.import_module is nothing
