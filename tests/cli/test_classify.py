from __future__ import annotations

import json
from pathlib import Path

import pytest

import cutaway as package
from cutaway.tasks import Choice, Classification, Entailment, Language, Translation
from cutaway.tasks.answer import classify, load_classifier

SHIPPED = Path(package.__file__).parent / "data" / "classifier"
PRAISE = [
    "A warm and funny film.",
    "a stirring , funny and finally transporting film",
    "I loved every minute of it, and the actors are wonderful.",
    "One of the best movies of the year: touching, clever and beautifully made.",
]
BLAME = [
    "A dull and lifeless film.",
    "a gob of drivel , badly written and badly acted",
    "I hated it. The worst movie I have ever seen, boring from beginning to end.",
    "It is a complete waste of time, with a stupid plot and terrible acting.",
]

LINES = ["a little fox", "the orders given it", "Once upon a time"]


@pytest.fixture(scope="module")
def mood(trained):
    return trained(Classification(("calm", "wild", "glad")))


@pytest.fixture
def run(cutaway, mood):
    return lambda *args, **more: cutaway("classify", "--model", mood, *args, **more)


def test_an_argument_shows_every_class_likeliest_first(run, mood):
    [wanted] = classify(load_classifier(mood), ["a little fox"])
    rows = [line.split() for line in run("a little fox").out.splitlines()]
    order = sorted(wanted.probabilities, key=wanted.probabilities.get, reverse=True)
    assert [row[0] for row in rows] == order
    assert rows[0][0] == wanted.label
    assert float(rows[0][1].removesuffix("%")) == pytest.approx(100 * wanted.probability, abs=0.01)


def test_lines_are_answered_by_label_and_probability_and_a_blank_one_by_a_blank_one(run, mood, tmp_path):
    wanted = [f"{one.label}\t{one.probability:.4f}" for one in classify(load_classifier(mood), LINES)]
    assert len(set(wanted)) == 3
    ran = run(stdin="\n".join(["", *LINES[:2], "  ", LINES[2], ""]).encode() + b"\n")
    assert ran.code == 0
    assert ran.out.split("\n") == ["", *wanted[:2], "", wanted[2], "", ""]
    (tmp_path / "lines").write_text("\n".join(LINES))
    assert run("--file", tmp_path / "lines").out.split("\n") == [*wanted, ""]


def test_json_has_the_text_and_all_probabilities(run, mood):
    [wanted] = classify(load_classifier(mood), ["a little fox"])
    assert run("a little fox", "--json").json == {
        "model": str(mood), "text": "a little fox", "label": wanted.label, "number": wanted.number,
        "probability": pytest.approx(wanted.probability), "probabilities": pytest.approx(wanted.probabilities),
        "cut": 0,
    }  # fmt: skip
    lines = run("--json", stdin=b"a little fox\n\n").out.splitlines()
    assert json.loads(lines[1]) == {"model": str(mood), "text": "", "label": None}


def test_two_texts_are_two_arguments_or_one_line_with_a_tab(cutaway, trained):
    folder = trained(Entailment(("yes", "no")))
    [wanted] = classify(load_classifier(folder), [{"premise": "a fox", "hypothesis": "the orders"}])
    found = cutaway("classify", "a fox", "the orders", "--model", folder, "--json").json
    assert (found["premise"], found["hypothesis"], found["label"]) == ("a fox", "the orders", wanted.label)
    assert found["probability"] == pytest.approx(wanted.probability)
    piped = cutaway("classify", "--model", folder, "--json", stdin=b"a fox\tthe orders\n").json
    assert piped == found
    refused = cutaway("classify", "--model", folder, stdin=b"a fox\tthe orders\nalone\n")
    assert refused.code == 2
    assert "Text 2: entailment needs premise and hypothesis separated by tabs, and this has 1 of 2 parts" in refused.err


def test_a_choice_is_a_context_and_its_choices(cutaway, trained):
    folder = trained(Choice(3))
    record = {"context": "a fox", "choices": ["one", "two", "three"]}
    [wanted] = classify(load_classifier(folder), [record])
    found = cutaway("classify", "a fox", "one", "two", "three", "--model", folder, "--json").json
    assert (found["choices"], found["label"]) == (record["choices"], wanted.label)
    refused = cutaway("classify", "a fox", "one", "--model", folder)
    assert refused.code == 2 and "a context and 3 choices" in refused.err


def test_several_texts_for_a_model_that_reads_one_are_refused(run):
    ran = run("a", "little", "fox")
    assert ran.code == 2 and "quotes" in ran.err


def test_a_text_that_was_cut_is_told(run):
    ran = run("fox " * 80)
    assert ran.code == 0 and ran.err == "too long, and not read as a whole\n"


def test_a_device_that_is_not_there_is_refused(run):
    ran = run("x", "--device", "hamster")
    assert ran.code == 2 and "hamster" in ran.err


def test_the_classifier_that_ships_knows_praise_from_blame(cutaway, tmp_path):
    (tmp_path / "lines").write_text("\n".join([*PRAISE, *BLAME]))
    labels = [line.split("\t")[0] for line in cutaway("classify", "--file", tmp_path / "lines").out.splitlines()]
    assert labels == ["positive"] * len(PRAISE) + ["negative"] * len(BLAME)


def test_builtin_and_no_model_at_all_mean_the_classifier_that_ships(cutaway):
    found = cutaway("classify", PRAISE[0], "--json").json
    assert (found["model"], found["label"]) == ("classifier", "positive")
    assert list(found["probabilities"]) == ["negative", "positive"]
    assert cutaway("classify", PRAISE[0], "--model", "builtin", "--json").json == found
    assert cutaway("classify", PRAISE[0]).out.split()[0] == "positive"


def test_the_classifier_that_ships_is_small_and_has_a_card():
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) <= 8_000_000
    assert "cutaway evaluate --on sst2/test.tsv" in (SHIPPED / "README.md").read_text()


@pytest.mark.parametrize("task", [Language(), Translation()], ids=lambda task: task.name)
def test_a_model_for_another_task_is_refused_with_what_to_do(cutaway, trained, task):
    folder = trained(task)
    ran = cutaway("classify", "x", "--model", folder)
    assert ran.code == 2 and ran.out == ""
    assert f"{folder} was trained for {task.name}, not for classification" in ran.err
    assert "Leave out --model" in ran.err


def test_a_verb_that_writes_refuses_a_classifier_and_names_the_verb_to_use(cutaway, mood):
    ran = cutaway("generate", "Once", "--model", mood)
    assert ran.code == 2 and "holds a classifier" in ran.err and "cutaway classify" in ran.err
