"""A model's answers, scored by its task's measure."""

from __future__ import annotations

import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.evaluate.answers import score_answers
from cutaway.language_model import LanguageModel
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.tasks import Choice, Classification, Language, Summary, Translation, sequences
from cutaway.tasks import answer as answers
from cutaway.tasks.answer import TextClassifier, classify
from cutaway.tasks.head import Classifier
from cutaway.text.tokenizer import Tokenizer

SPECIALS = ("<|translate|>", "<|summarize|>", "<|start|>", "<|delimiter|>", "<|extract|>")
TEXTS = ["the fox runs over the hill", "the dog sleeps", "a fox", "in the sun the little dog sleeps"]


@pytest.fixture(scope="module")
def lm() -> LanguageModel:
    tokenizer = Tokenizer.train(TEXTS * 3, size=280).with_specials(SPECIALS)
    torch.manual_seed(0)
    shape = Config(vocabulary=len(tokenizer), context=40, width=32, layers=2, heads=2, end_token=tokenizer.end)
    return LanguageModel(GPT(shape), tokenizer, "small")


@pytest.fixture
def written(monkeypatch):
    """Instead of a model's answers, the source in capitals; and instead of BLEU and ROUGE, what they were asked."""
    from cutaway.tasks.answer import Answer
    from cutaway.tasks.scores import Score

    asked: dict[str, tuple] = {}

    def answer(lm, task, texts, settings):
        asked["beams"] = settings.beams
        return [Answer(text, text.upper(), whole=text != "a fox") for text in texts]

    def measure(name):
        def score(found, references):
            asked[name] = (found, references)
            return Score(name, 1.0, len(found), name)

        return score

    monkeypatch.setattr(answers, "write", answer)
    for name in ("bleu", "rouge"):
        monkeypatch.setattr(sequences, name, measure(name))
    return asked


def test_translations_are_scored_by_bleu_and_those_too_long_count_as_empty(lm, written):
    records = [{"source": text, "target": text[::-1]} for text in [*TEXTS, "the fox " * 60]]
    heard = []
    score = score_answers(lm, Translation(), records, 3, lambda done, total: heard.append((done, total)))
    assert written["bleu"] == (
        [*(text.upper() for text in TEXTS), ""],
        [record["target"].strip() for record in records],
    )
    assert written["beams"] == 3
    assert "3 beams; 1 too long and counted as empty, 0 read without their end, 1 answers cut off" in score.how
    assert heard[-1] == (5, 5)


def test_summaries_are_scored_by_rouge(lm, written):
    records = [{"article": text, "summary": "x"} for text in TEXTS]
    score = score_answers(lm, Summary(room=8), records, 1)
    assert written["rouge"] == ([text.upper() for text in TEXTS], ["x"] * 4)
    assert "greedy; 0 too long" in score.how


def test_more_records_than_a_batch_are_answered_in_order(lm, written, monkeypatch):
    monkeypatch.setattr(answers, "BATCH", 2)
    score_answers(lm, Translation(), [{"source": text, "target": "x"} for text in TEXTS], 1)
    assert written["bleu"][0] == [text.upper() for text in TEXTS]


def test_a_real_model_is_scored_from_end_to_end(lm):
    pytest.importorskip("sacrebleu", reason="sacrebleu is not installed (extra 'evaluate')")
    pytest.importorskip("rouge_score", reason="rouge-score is not installed (extra 'evaluate')")
    score = score_answers(lm, Translation(), [{"source": text, "target": text} for text in TEXTS], 2)
    assert 0 <= score.value <= 100
    assert score.count == 4
    score = score_answers(lm, Summary(room=8), [{"article": text, "summary": text} for text in TEXTS], 1)
    assert set(score.parts) == {"ROUGE-1", "ROUGE-2", "ROUGE-L"}


def test_classes_are_scored_by_accuracy(lm):
    classifier = TextClassifier(Classifier(GPT(lm.config), 2), lm.tokenizer, Classification(("no", "yes")), "judge")
    found = [one.label for one in classify(classifier, TEXTS)]
    wrong = {"no": "yes", "yes": "no"}
    labels = [found[0], wrong[found[1]], found[2], found[3]]
    records = [{"text": text, "label": label} for text, label in zip(TEXTS, labels, strict=True)]
    score = score_answers(classifier, classifier.task, records)
    assert score.value == 75
    assert "0 too long" in score.how


def test_a_choice_too_long_to_be_read_counts_as_wrong(lm):
    chooser = TextClassifier(Classifier(GPT(lm.config), 1), lm.tokenizer, Choice(2), "chooser")
    fine = {"context": "the fox", "choices": ["runs", "sleeps"]}
    [best] = classify(chooser, [fine])
    long = {"context": "the fox", "choices": ["runs", "sleeps " * 60], "label": 0}
    score = score_answers(chooser, chooser.task, [{**fine, "label": best.number}, long])
    assert score.value == 50
    assert "1 too long and counted as wrong" in score.how


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([], "no records"),
        ([{"source": "a", "target": "b"}, {"source": "a"}], "Record 2: .*'target' is missing"),
        ([{"source": "a", "target": ""}], "Record 1: .*'target' is empty"),
    ],
)
def test_records_that_cannot_be_scored_are_named(lm, records, message):
    with pytest.raises(CutawayError, match=message):
        score_answers(lm, Translation(), records)


def test_a_language_model_has_no_answers(lm):
    with pytest.raises(CutawayError, match="measure its perplexity"):
        score_answers(lm, Language(), [{"text": "a"}])
