"""Evaluation by the name of a data set, or on a file."""

from __future__ import annotations

import json

import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.evaluate.lambada import Lambada, lambada
from cutaway.evaluate.perplexity import Perplexity, perplexity
from cutaway.evaluate.run import evaluate
from cutaway.evaluate.wikitext import NAME, count_words, detokenize
from cutaway.models.gpt2.model import GPT
from cutaway.tasks import Classification
from cutaway.tasks.answer import TextClassifier
from cutaway.tasks.head import Classifier

WIKI = ' \n = A fox = \n \n The " robot " must obey , 1 @,@ 000 orders . \n'
PASSAGES = ["Once upon a time there was a little fox", "A robot must obey the orders"]


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A folder of made-up data sets under their real names, and where $CUTAWAY_DATA points."""
    for name, text in {
        "wikitext2_raw/wiki.test.raw": WIKI,
        "wikitext103/wiki.test.tokens": WIKI * 2,
        "lambada/lambada_test.jsonl": "".join(json.dumps({"text": text}) + "\n" for text in PASSAGES),
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("CUTAWAY_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(("name", "text"), [("wikitext2", WIKI), ("wikitext103", WIKI * 2)])
def test_wikitext_is_measured_in_ordinary_form_and_over_its_own_words(tiny_lm, data, name, text):
    found = evaluate(tiny_lm, name)
    expected = perplexity(tiny_lm, detokenize(text), words=count_words(text), detokenizer=NAME)
    assert found.result == expected
    assert (found.model, found.on) == ("tiny", name)
    assert found.file.startswith(str(data))
    assert NAME in found.how


def test_wikitext_may_be_measured_as_it_is(tiny_lm, data):
    result = evaluate(tiny_lm, "wikitext2", window=32, stride=8, detokenizer="none").result
    assert isinstance(result, Perplexity)
    assert (result.detokenizer, result.words, result.window, result.stride) == (None, None, 32, 8)
    assert result.bytes == len(WIKI.strip("\n").encode())


def test_lambada_is_found_by_name(tiny_lm, data):
    assert evaluate(tiny_lm, "lambada").result == lambada(tiny_lm, PASSAGES)
    limited = evaluate(tiny_lm, "lambada", limit=1).result
    assert isinstance(limited, Lambada)
    assert limited.passages == 1


def test_a_file_of_documents_is_measured_document_by_document(tiny_lm, tmp_path):
    (tmp_path / "my.txt").write_text("Once upon a time\n<|endoftext|>\nA robot\n<|endoftext|>\nhuman beings\n")
    found = evaluate(tiny_lm, tmp_path / "my.txt")
    assert found.result == perplexity(tiny_lm, ["Once upon a time", "A robot", "human beings"])
    assert evaluate(tiny_lm, tmp_path / "my.txt", limit=2).result == perplexity(
        tiny_lm, ["Once upon a time", "A robot"]
    )


def test_a_long_document_is_measured_whole(tiny_lm, tmp_path, monkeypatch):
    from cutaway.train.data import records

    monkeypatch.setattr(records.blocks, "__defaults__", (None, 64))  # blocks of 64 bytes
    text = "Once upon a time there was a little fox who wanted to see the other side. " * 5
    (tmp_path / "my.txt").write_text(text)
    assert evaluate(tiny_lm, tmp_path / "my.txt").result == perplexity(tiny_lm, text)


def test_a_classifier_is_measured_on_its_records(tiny_lm, data, tmp_path):
    tokenizer = tiny_lm.tokenizer.with_specials(["<|start|>", "<|extract|>"])
    torch.manual_seed(0)
    model = Classifier(GPT(tiny_lm.config.but(vocabulary=len(tokenizer), end_token=tokenizer.end)), 2)
    classifier = TextClassifier(model, tokenizer, Classification(("no", "yes")), "judge")
    (tmp_path / "set.tsv").write_text("the fox\t0\nthe robot\t1\n")
    found = evaluate(classifier, tmp_path / "set.tsv", columns={"text": 0, "label": 1})
    assert found.result.count == 2
    assert found.as_dict()["name"] == "accuracy"
    with pytest.raises(CutawayError, match="judge is a classifier and predicts no text"):
        evaluate(classifier, "lambada")


def test_the_result_is_ready_for_json_and_says_how(tiny_lm, data):
    for on in ("wikitext2", "lambada"):
        found = json.loads(json.dumps(evaluate(tiny_lm, on).as_dict()))
        assert {"model", "on", "file", "how", "perplexity"} <= set(found)


@pytest.mark.parametrize(
    ("on", "settings", "message"),
    [
        ("wikitxt2", {}, "no data set of that name.*Did you mean 'wikitext2'"),
        ("nowhere/file.txt", {}, "There is no file"),
        ("lambada", {"limit": 0}, "1 or more"),
        ("wikitext2", {"limit": 3}, "one long text"),
        ("wikitext2", {"detokenizer": "moses"}, "no detokenizer 'moses'"),
    ],
)
def test_mistakes_are_named(tiny_lm, data, on, settings, message):
    with pytest.raises(CutawayError, match=message):
        evaluate(tiny_lm, on, **settings)


def test_a_data_set_that_is_not_here_says_where_to_get_it(tiny_lm, tmp_path, monkeypatch):
    monkeypatch.setenv("CUTAWAY_DATA", str(tmp_path / "empty"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CutawayError, match=r"not on this machine. Get .*wikitext.*\$CUTAWAY_DATA/wikitext2_raw"):
        evaluate(tiny_lm, "wikitext2")


def test_bytes_that_are_no_text_are_reported_with_their_file(tiny_lm, data):
    (data / "wikitext2_raw/wiki.test.raw").write_bytes(b"abc \xff")
    with pytest.raises(CutawayError, match=r"wiki\.test\.raw: byte 4 is not UTF-8"):
        evaluate(tiny_lm, "wikitext2")


def test_an_empty_file_is_refused(tiny_lm, tmp_path):
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(CutawayError, match="The text is empty"):
        evaluate(tiny_lm, tmp_path / "empty.txt")
