"""A GPT2ForSequenceClassification folder that transformers wrote: its labels, its scores, and its padding."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import cutaway
from cutaway.errors import CutawayError
from cutaway.tasks import Classification, load_task
from cutaway.tasks.answer import classify, load_classifier
from cutaway.tasks.head import read_classifier
from cutaway.text.tokenizer import Tokenizer
from cutaway.train.loop import train
from cutaway.train.recipe import Recipe

LABELS = {0: "NEGATIVE", 1: "neutral", 2: "POSITIVE"}
TEXTS = ["the fox runs over the hill", "the dog sleeps!", " a little sun!!", "!", "fox\n"]


def write(folder: Path, pad: str | None = "!", **more) -> Path:
    """What somebody else saved: model and tokenizer, nothing of ours."""
    from transformers import GPT2Config, GPT2ForSequenceClassification

    tokenizer = Tokenizer.train(["the fox runs over the hill and the little dog sleeps in the sun"] * 3, size=290)
    tokenizer.save(folder)
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(tokenizer), n_positions=32, n_embd=16, n_layer=2, n_head=2, id2label=LABELS,
        pad_token_id=None if pad is None else tokenizer.encode(pad)[0], **more,
    )  # fmt: skip
    model = GPT2ForSequenceClassification(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    model.save_pretrained(folder)
    return folder


def change(folder: Path, **values) -> Path:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({key: one for key, one in (config | values).items() if one != ...}))
    return folder


@torch.no_grad()
def theirs(folder: Path, texts: list[str], pad: bool) -> torch.Tensor:
    """Their scores: of all texts in one padded batch, or one by one."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model, tokenizer = (
        AutoModelForSequenceClassification.from_pretrained(folder).eval(),
        AutoTokenizer.from_pretrained(folder),
    )
    rows = [tokenizer(text)["input_ids"] for text in texts]
    if not pad:
        return torch.cat([model(torch.tensor([row])).logits for row in rows])
    longest = max(map(len, rows))
    return model(torch.tensor([row + [model.config.pad_token_id] * (longest - len(row)) for row in rows])).logits


@pytest.mark.parametrize("pad", ["!", None], ids=["a padding token that texts end with", "no padding token"])
def test_the_scores_are_those_of_transformers(tmp_path, pad):
    folder = write(tmp_path, pad)
    judge = load_classifier(folder)
    ours = judge.scores([judge.task.forms({"text": text}, judge.tokenizer) for text in TEXTS])
    torch.testing.assert_close(ours, theirs(folder, TEXTS, pad=pad is not None), rtol=1e-4, atol=1e-5)
    if pad:  # or the test would say nothing about padding
        ended = Classification(tuple(LABELS.values()), separators=False)
        other = judge.scores([ended.forms({"text": text}, judge.tokenizer) for text in TEXTS])
        assert not torch.allclose(ours, other, atol=1e-3)


def test_its_labels_are_those_of_its_config(tmp_path, monkeypatch, capsys):
    from cutaway.cli import run

    folder = write(tmp_path)
    [found] = classify(load_classifier(folder), ["the fox runs"])
    assert list(found.probabilities) == list(LABELS.values())
    expected = theirs(folder, ["the fox runs"], pad=False).softmax(-1)[0]
    assert list(found.probabilities.values()) == pytest.approx(expected.tolist(), abs=1e-5)
    assert run(["classify", "the fox runs", "--model", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["label"] == LABELS[int(expected.argmax())]


def test_where_no_labels_are_given_they_are_called_as_transformers_calls_them(tmp_path):
    folder = change(write(tmp_path), id2label=..., num_labels=3)
    assert load_task(folder).labels == ("LABEL_0", "LABEL_1", "LABEL_2")


def test_what_load_and_classify_say_of_a_folder_agrees_whatever_its_config_calls_it(tmp_path):
    folder = change(write(tmp_path), architectures=["GPT2LMHeadModel"])
    with pytest.raises(CutawayError, match=r"holds a classifier.*cutaway classify"):
        cutaway.load(folder)
    assert isinstance(load_task(folder), Classification)
    assert len(list(classify(load_classifier(folder), TEXTS))) == len(TEXTS)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"id2label": {"0": "score"}}, "a regression"),
        ({"problem_type": "multi_label_classification"}, "only single_label_classification"),
        ({"id2label": {"0": "a", "2": "b"}}, "name the classes 0 to 1, and names 0, 2"),
        ({"id2label": {"0": "a", "1": "a"}}, "all different"),
        ({"id2label": ["a", "b"]}, "a table of numbers and labels"),
        ({"id2label": {"0": "a", "1": "b"}}, "gives 3 scores and its task asks for 2"),
        ({"pad_token_id": "x"}, "pad_token_id must be a whole number"),
    ],
)
def test_a_config_that_cannot_be_meant_is_refused_in_a_sentence(tmp_path, values, said):
    folder = change(write(tmp_path), **values)
    with pytest.raises(CutawayError, match=said):
        load_classifier(folder)


def test_a_text_too_long_for_it_loses_its_end_and_says_so(tmp_path):
    [found] = classify(load_classifier(write(tmp_path)), ["the fox " * 40])
    assert found.cut > 0


def test_training_goes_on_from_it_with_its_head_in_its_form(tmp_path):
    folder = write(tmp_path / "theirs")
    rows = [(f"the fox runs {number}", LABELS[number % 3]) for number in range(40)]
    (tmp_path / "rows.tsv").write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows))
    recipe = {
        "model": {"from": str(folder)},
        "data": {"paths": [str(tmp_path / "rows.tsv")], "cache": str(tmp_path / "cache"), "held_out": 4},
        "train": {"steps": 1, "batch": 4, "learning_rate": 1e-9, "precision": "float32"},
    }
    train(Recipe.from_dict(recipe), tmp_path / "ours")
    before, after = read_classifier(folder), read_classifier(tmp_path / "ours")
    torch.testing.assert_close(after.score.weight, before.score.weight, rtol=0, atol=1e-6)  # theirs, not a new one
    task = load_task(tmp_path / "ours")
    assert (task.labels, task.separators, task.padding) == (tuple(LABELS.values()), False, load_task(folder).padding)
    torch.testing.assert_close(
        theirs(tmp_path / "ours", TEXTS, pad=True), theirs(folder, TEXTS, pad=True), rtol=1e-3, atol=1e-4
    )


def test_the_explorer_lists_it_among_the_models_for_tasks_and_no_language_model(tmp_path, monkeypatch):
    from types import SimpleNamespace

    from cutaway.serve.views import tasks

    monkeypatch.setattr(tasks.hub, "local", list)
    builtin = Path(cutaway.__file__).parent / "data" / "builtin"
    folders = [str(write(tmp_path)), str(builtin)]
    listed = tasks.listing(SimpleNamespace(models=SimpleNamespace(folders=folders)))
    assert [one["task"] for one in listed if one["name"] in folders] == ["classification"]
