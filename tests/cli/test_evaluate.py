from __future__ import annotations

import json

import pytest

import cutaway as package
from cutaway.evaluate.run import evaluate
from cutaway.tasks import Classification
from cutaway.tasks.answer import load_classifier

STORY = "Once upon a time there was a little fox who wanted to see what was on the other side of the hill. " * 3


@pytest.fixture
def text(tmp_path):
    (tmp_path / "story.txt").write_text(STORY)
    return tmp_path / "story.txt"


@pytest.fixture
def run(cutaway, folder):
    return lambda *args, **more: cutaway("evaluate", "--model", folder, *args, **more)


def test_a_text_is_measured_and_how_is_said(run, folder, text):
    wanted = evaluate(package.load(folder), text)
    ran = run("--on", text)
    assert (ran.code, ran.err) == (0, "")
    rows = dict(line.rsplit("  ", 1) for line in ran.out.split("\n\n")[0].splitlines())
    found = {name.strip(): float(number.replace(",", "")) for name, number in rows.items()}
    assert found["perplexity"] == pytest.approx(wanted.result.perplexity, abs=0.01)
    assert found["bits per byte"] == pytest.approx(wanted.result.bits_per_byte, abs=1e-4)
    assert ran.out.endswith(f"\n\n{wanted.how}\n")
    assert "windows of 48 tokens, 24 apart" in ran.out


def test_json_has_every_number(run, folder, text):
    wanted = evaluate(package.load(folder), text, window=16, stride=4).as_dict()
    found = run("--on", text, "--window", 16, "--stride", 4, "--json").json
    assert found == {**json.loads(json.dumps(wanted)), "model": str(folder)}


def test_data_sets_are_known_by_name(run, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("CUTAWAY_DATA", str(tmp_path))
    (tmp_path / "lambada").mkdir()
    passages = [{"text": "Once upon a time there was a little fox"}, {"text": "A robot must obey the orders"}]
    (tmp_path / "lambada" / "lambada_test.jsonl").write_text("".join(json.dumps(one) + "\n" for one in passages))
    (tmp_path / "wikitext2").mkdir()
    (tmp_path / "wikitext2" / "wiki.test.raw").write_text(
        " = A fox = \n \n The robot must obey , 1 @,@ 000 orders . \n"
    )
    ran = run("--on", "lambada")
    assert ran.code == 0
    assert ran.out.startswith("accuracy") and "%" in ran.out and "2 passages" in ran.out
    assert run("--on", "lambada", "--limit", 1, "--json").json["passages"] == 1
    ran = run("--on", "wikitext2")
    assert "word perplexity" in ran.out and "detokenizer: " in ran.out
    assert run("--on", "wikitext2", "--detokenizer", "none", "--json").json["words"] is None


def test_a_classifier_is_measured_by_its_right_answers(cutaway, trained, tmp_path):
    folder = trained(Classification(("calm", "wild")))
    file = tmp_path / "labelled.jsonl"
    records = [{"sentence": "a fox", "label": "calm"}, {"sentence": "orders", "label": "wild"}]
    file.write_text("".join(json.dumps(one) + "\n" for one in records))
    columns = ("--column", "text=sentence", "--column", "label=label")
    wanted = evaluate(load_classifier(folder), file, columns={"text": "sentence", "label": "label"})
    found = cutaway("evaluate", "--model", folder, "--on", file, *columns, "--json").json
    assert (found["name"], found["value"], found["count"]) == ("accuracy", wanted.result.value, 2)
    ran = cutaway("evaluate", "--model", folder, "--on", file, *columns)
    assert f"{wanted.result.value:.2f}%" in ran.out and "right answers in 100" in ran.out


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "--on"),
        (("--on", "wikitxt2"), "wikitext2"),
        (("--on", "./nowhere.txt"), "nowhere.txt"),
        (("--on", "lambada"), "$CUTAWAY_DATA/lambada"),
        (("--on", "story", "--column", "text"), "--column"),
        (("--on", "story", "--window", 1000), "window"),
        (("--on", "story", "--detokenizer", "magic"), "magic"),
        (("--on", "story", "--limit", 0), "1 or more"),
    ],
)
def test_mistakes_are_one_line_and_code_2(run, tmp_path, monkeypatch, args, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CUTAWAY_DATA", raising=False)
    (tmp_path / "story").write_text(STORY)
    ran = run(*args)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert said in ran.err
