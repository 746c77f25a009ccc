"""Classes on a BERT: its own forms, transformers' folders, and the one loop."""

from __future__ import annotations

import json
import math

import pytest
import torch

import cutaway
from cutaway import train
from cutaway.errors import CutawayError
from cutaway.tasks import Choice, Classification, Entailment, MaskedWords, Similarity, load_task
from cutaway.tasks.answer import classify, load_classifier


@pytest.fixture(scope="module")
def folder(bert_lm, tmp_path_factory):
    made = tmp_path_factory.mktemp("models") / "bert"
    bert_lm.save(made)
    return made


def spelled(tokenizer, form):
    return " ".join(tokenizer.spelling(token) for token in form.ids)


def test_the_forms_are_berts_and_what_is_too_long_is_cut(bert_lm):
    tokenizer, labels = bert_lm.tokenizer, ("no", "yes")
    [one] = Classification(labels, encoder=True).forms({"text": "the robots"}, tokenizer)
    assert spelled(tokenizer, one) == "[CLS] the robot ##s [SEP]"
    [one] = Classification(labels, limit=4, encoder=True).forms({"text": "the robots obey"}, tokenizer)
    assert spelled(tokenizer, one) == "[CLS] the robot [SEP]" and one.cut == 2
    [one] = Entailment(labels, encoder=True).forms({"premise": "a fox", "hypothesis": "the mat"}, tokenizer)
    assert spelled(tokenizer, one) == "[CLS] a fox [SEP] the mat [SEP]"
    two = Similarity(labels, encoder=True).forms({"first": "a fox", "second": "the mat"}, tokenizer)
    assert spelled(tokenizer, two[1]) == "[CLS] the mat [SEP] a fox [SEP]"
    ways = Choice(2, encoder=True).forms({"context": "a fox", "choices": ["sat", "obey"]}, tokenizer)
    assert [spelled(tokenizer, way) for way in ways] == ["[CLS] a fox [SEP] sat [SEP]", "[CLS] a fox [SEP] obey [SEP]"]
    for task in (Classification(labels, encoder=True), Choice(2, encoder=True)):
        assert task.specials == () and task.settings()["encoder"] is True
    assert "encoder" not in Classification(labels).settings()


@pytest.mark.parametrize("kind", ["Bert", "DistilBert"])
def test_a_classifier_that_transformers_wrote_says_the_same(kind, bert_lm, tmp_path):
    transformers = pytest.importorskip("transformers")
    size = {"vocab_size": len(bert_lm.tokenizer), "max_position_embeddings": 32}
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    names = names if kind == "Bert" else ("dim", "n_layers", "n_heads", "hidden_dim")
    given = dict(zip(names, (24, 2, 3, 40), strict=True)) | size | {"id2label": {0: "bad", 1: "so so", 2: "good"}}
    torch.manual_seed(3)
    config = getattr(transformers, f"{kind}Config")(**given)
    model = getattr(transformers, f"{kind}ForSequenceClassification")(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(tmp_path)
    bert_lm.tokenizer.save(tmp_path)
    assert load_task(tmp_path) == Classification(("bad", "so so", "good"), encoder=True)
    texts = ["the robots must obey", "a fox", "little fox sat on the mat , the robot obeyed !"]
    found = list(classify(load_classifier(tmp_path), [{"text": text} for text in texts]))
    for text, one in zip(texts, found, strict=True):
        with torch.no_grad():
            wanted = model(torch.tensor([bert_lm.ids(text)])).logits[0].softmax(-1)
        assert list(one.probabilities.values()) == pytest.approx(wanted.tolist(), abs=1e-5)
        assert one.number == int(wanted.argmax())


def test_the_one_loop_teaches_a_pair_and_the_segments_count(folder, tmp_path, cutaway_cli):
    """Which of two things is said in the first sentence can only be told by the segment it stands in."""
    pairs = [("a fox", "the robot"), ("the robot", "a fox")]
    records = [{"premise": a, "hypothesis": b, "label": "fox" if "fox" in a else "robot"} for a, b in pairs] * 24
    settings = {"steps": 25, "batch": 16, "learning_rate": 5e-3, "held_out": 0, "cache": str(tmp_path / "cache")}
    train.run(tmp_path / "out", records=records, task="entailment", from_=folder, **settings)
    classifier = load_classifier(tmp_path / "out")
    assert classifier.task.encoder and classifier.model.bert.config.vocabulary == 26
    asked = [{"premise": a, "hypothesis": b} for a, b in pairs]
    assert [one.label for one in classify(classifier, asked)] == ["fox", "robot"]
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["architectures"] == ["BertForSequenceClassification"] and config["id2label"]["0"] == "fox"

    transformers = pytest.importorskip("transformers")
    theirs = transformers.BertForSequenceClassification.from_pretrained(tmp_path / "out").eval()
    ids = torch.tensor([bert_ids(classifier, asked[0])])
    segments = classifier.model.bert.segments_of(ids)
    with torch.no_grad():
        wanted = theirs(ids, token_type_ids=segments).logits.softmax(-1)[0]
    assert math.isclose(next(classify(classifier, asked)).probability, float(wanted.max()), abs_tol=1e-5)

    ran = cutaway_cli(["classify", "a fox", "the robot", "--model", str(tmp_path / "out"), "--json"])
    assert json.loads(ran)["label"] == "fox"


def bert_ids(classifier, record):
    return classifier.task.forms(record, classifier.tokenizer)[0].ids


@pytest.fixture
def cutaway_cli(capsys):
    from cutaway import cli

    def run(args):
        capsys.readouterr()
        assert cli.run(args) == 0
        return capsys.readouterr().out

    return run


def test_a_folder_without_a_task_is_for_masked_words_and_one_without_classes_says_so(folder):
    assert isinstance(load_task(folder), MaskedWords)
    with pytest.raises(CutawayError, match="no classes to choose from"):
        load_classifier(folder)
    assert cutaway.load(folder).config.head == "pretraining"
