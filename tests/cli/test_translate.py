from __future__ import annotations

import json

import pytest

import cutaway as package
from cutaway.tasks import Summary, Translation
from cutaway.tasks.answer import translate

KNOWN = {
    "Close the door.": ("Ferme la porte !", "Fermez la porte !"),
    "Help me.": ("Aide-moi !", "Aide-moi.", "Aidez-moi.", "Aidez-moi !"),
    "Tom left.": ("Tom est parti.", "Tom partit."),
    "J'ai froid.": ("I'm cold.", "I am cold.", "I feel cold."),
    "Nous avons gagné.": ("We won.",),
    "Aide-moi.": ("Help me.",),
}
"""Sentences the translator that ships has learned, with their translations."""
LINES = ["Once upon a time", "", "a little fox", "orders"]


@pytest.fixture(scope="module")
def translator(trained):
    return trained(Translation(back="<|back|>"))


@pytest.fixture(scope="module")
def wanted(translator):
    """The translations the model itself gives."""
    lm = package.load(translator)
    return lambda texts, back=False, **how: list(
        translate(lm, Translation(back="<|back|>").turned() if back else Translation(back="<|back|>"), texts, **how)
    )


@pytest.fixture
def run(cutaway, translator):
    return lambda *args, **more: cutaway("translate", "--model", translator, *args, **more)


def one_line(text):
    return " ".join(text.split("\n"))


def test_the_translator_that_ships_knows_both_languages_at_once(cutaway):
    ran = cutaway("translate", stdin="\n".join(KNOWN).encode())
    assert ran.code == 0
    for answer, right in zip(ran.out.splitlines(), KNOWN.values(), strict=True):
        assert answer in right


def test_builtin_means_the_translator_that_ships(cutaway):
    plain, named = cutaway("translate", "Help me."), cutaway("translate", "Help me.", "--model", "builtin", "--json")
    assert named.json["model"] == "translator" and "small" in named.json["note"]
    assert plain.out == named.json["text"] + "\n"
    needless = cutaway("translate", "Help me.", "--back")
    assert needless.code == 2 and "recognizes the language by itself" in needless.err


def test_an_argument_is_one_text(run, wanted):
    [answer] = wanted(["Once upon a time"], max_tokens=6)
    ran = run("Once upon a time", "-n", 6)
    assert (ran.code, ran.out) == (0, one_line(answer.text) + "\n")
    [answer] = wanted(["Once\nupon"], max_tokens=6)
    assert run("Once\nupon", "-n", 6, "--json").json["source"] == "Once\nupon"


def test_a_file_and_a_pipe_are_answered_line_for_line(run, wanted, tmp_path):
    (tmp_path / "letter").write_bytes("\r\n".join(LINES).encode() + b"\n")
    answers = wanted(LINES, max_tokens=6)
    ran = run("--file", tmp_path / "letter", "-n", 6, "--json")
    assert [json.loads(line)["text"] for line in ran.out.splitlines()] == [answer.text for answer in answers]
    out = run("--file", tmp_path / "letter", "-n", 6).out
    assert out == "".join(one_line(answer.text) + "\n" for answer in answers)
    assert out.split("\n")[1] == ""
    assert run("-n", 6, stdin="\n".join(LINES).encode()).out == out


def test_lines_of_a_pipe_are_answered_before_the_next_one_comes(run):
    """The second line is not UTF-8: the answer to the first must be out by then."""
    ran = run("-n", 3, stdin=b"Once\n\xff\n")
    assert ran.code == 2
    assert ran.out.count("\n") == 1
    assert "Standard input, line 2, is not UTF-8" in ran.err


def test_json_says_how_sure_the_model_is_and_whether_it_finished(run, wanted, translator):
    [answer] = wanted(["a little fox"], max_tokens=4)
    found = run("a little fox", "-n", 4, "--json").json
    assert found == {
        "model": str(translator), "source": "a little fox", "text": answer.text, "whole": answer.whole,
        "logprob": pytest.approx(answer.logprob), "cut": 0,
    }  # fmt: skip


def test_an_answer_that_was_broken_off_is_told(run, wanted):
    assert not wanted(["orders"], max_tokens=1)[0].whole
    assert run("orders", "-n", 1).err == "broken off before its end\n"
    assert "1 of 2 broken off" in run("-n", 1, stdin=b"orders\n\n").err


def test_settings_reach_the_model(run, wanted):
    for how in ({"beams": 1}, {"beams": 3, "length_penalty": 3.0}):
        flags = [part for name, value in how.items() for part in (f"--{name.replace('_', '-')}", value)]
        found = run("Once upon", "-n", 8, "--json", *flags).json
        [answer] = wanted(["Once upon"], max_tokens=8, **how)
        assert (found["text"], found["logprob"]) == (answer.text, pytest.approx(answer.logprob))


def test_back_is_the_other_direction(run, wanted, cutaway, trained):
    [answer] = wanted(["Once upon"], back=True, max_tokens=6)
    found = run("Once upon", "--back", "-n", 6, "--json").json
    assert found["logprob"] == pytest.approx(answer.logprob)
    assert found["logprob"] != pytest.approx(wanted(["Once upon"], max_tokens=6)[0].logprob)
    refused = cutaway("translate", "x", "--back", "--model", trained(Translation()))
    assert refused.code == 2 and "one direction" in refused.err


@pytest.mark.parametrize(
    ("verb", "task"), [("translate", "translation"), ("summarize", "summary"), ("classify", "classification")]
)
def test_a_model_for_another_task_is_refused_with_the_command_that_trains_one(cutaway, folder, verb, task):
    ran = cutaway(verb, "x", "--model", folder)
    assert (ran.code, ran.out) == (2, "")
    assert f"trained for language, not for {task}" in ran.err
    assert f"--task {task} -o my-model" in ran.err


def test_a_summarizer_does_not_translate(cutaway, trained):
    ran = cutaway("translate", "x", "--model", trained(Summary()))
    assert (ran.code, ran.out) == (2, "")
    assert "trained for summary, not for translation. Leave out --model to use the model included" in ran.err


def test_a_text_that_is_too_long_is_refused_by_its_number(run):
    ran = run("-n", 2, stdin=b"Once\n" + b"xyz " * 60 + b"\n")
    assert ran.code == 2 and ran.out.count("\n") == 1
    assert "Text 2: " in ran.err and "too long" in ran.err


def test_no_text_two_texts_and_no_file_are_refused(run, tmp_path):
    assert "There is no text" in run().err
    (tmp_path / "file").write_text("x")
    assert "not both" in run("x", "--file", tmp_path / "file").err
    assert "cannot be read" in run("--file", tmp_path / "nowhere").err
    assert run("--file", tmp_path / "nowhere").code == 2
    assert run(stdin=b"").out == ""
