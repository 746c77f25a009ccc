"""A command line becomes the values that a verb is called with; whatever is wrong with it is said in one sentence."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cutaway import cli
from cutaway.cli.reader import parameters_of, read_line
from cutaway.errors import CutawayError


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["generate"], {}),
        (["generate", "Once upon a time"], {"prompt": "Once upon a time"}),
        (
            ["generate", "Once", "--max-tokens", "5", "--greedy", "-m", "x.cutaway", "--json"],
            {"prompt": "Once", "max_tokens": 5, "greedy": True, "model": "x.cutaway", "as_json": True},
        ),
        (
            ["generate", "--top-k=7", "-t", "0.8", "Once", "--stop", "a", "--stop=b", "-s3"],
            {"prompt": "Once", "top_k": 7, "temperature": 0.8, "stop": ["a", "b"], "seed": 3},
        ),
        (["generate", "--file", "some/where.txt", "--batch"], {"file": Path("some/where.txt"), "batch": True}),
        (["generate", "", "--presence-penalty", "-0.5"], {"prompt": "", "presence_penalty": -0.5}),
        (["generate", "two\nlines", "-n", "5", "-n", "6"], {"prompt": "two\nlines", "max_tokens": 6}),
        (["generate", "-ik5"], {"interactive": True, "top_k": 5}),
        (["generate", "--", "-x"], {"prompt": "-x"}),
        (["generate", "-"], {"prompt": "-"}),
        (["generate", "--stop", "-", "--logit-bias", "13=-inf"], {"stop": ["-"], "logit_bias": ["13=-inf"]}),
        (["classify", "one", "two", "three"], {"text": ["one", "two", "three"]}),
        (["bench", "--weights", "int8", "--weights", "int4"], {"weights": ["int8", "int4"]}),
    ],
    ids=str,
)
def test_values_are_those_on_the_line_and_else_the_defaults(line, expected):
    verb, *args = line
    function = cli.find_verb(verb)
    defaults = {one.name: one.default for one in parameters_of(function)}
    assert expected.keys() <= defaults.keys()
    assert read_line(f"cutaway {verb}", function, args) == defaults | expected


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("predict --modl x", "No such option: --modl (Possible options: --model). See cutaway predict --help."),
        ("generate --no-such-option", "No such option: --no-such-option. See cutaway generate --help."),
        ("generate -q", "No such option: -q. See cutaway generate --help."),
        ("generate --top-k many", "Invalid value for '--top-k' / '-k': Input should be a valid integer"),
        ("generate --top-p many", "Invalid value for '--top-p': Input should be a valid number"),
        ("generate --top-k", "Option '--top-k' requires an argument. See cutaway generate --help."),
        ("generate --greedy=yes", "Option '--greedy' does not take a value."),
        ("generate one two", "Got unexpected extra argument(s) (two). See cutaway generate --help."),
        ("convert builtin", "Missing option '--output' / '-o'. See cutaway convert --help."),
        ("inspect sweep one", "needs a corrupted text beside the clean one"),
        ("inspect lenz", "No such command 'lenz'. Did you mean 'lens'? See cutaway inspect --help."),
        ("genrate x", "No such command 'genrate'. Did you mean 'generate'? See cutaway --help."),
        ("--vers", "No such option: --vers (Possible options: --version). See cutaway --help."),
    ],
)
def test_a_mistake_is_named_and_the_help_that_explains_it(line, said):
    with pytest.raises(CutawayError) as error:
        cli.carry_out(line.split())
    assert said in str(error.value)


@pytest.mark.parametrize("line", ["generate --help", "generate x -h --top-k many", "inspect -h", "inspect lens x -h"])
def test_help_comes_before_everything_but_an_unknown_option(cutaway, line):
    ran = cutaway(*line.split())
    assert (ran.code, ran.err) == (0, "")
    assert "Usage: cutaway" in ran.out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["-"], "No such command '-'. See cutaway --help."),
        (["inspect", "-"], "No such command '-'. See cutaway inspect --help."),
        (["inspect", "--", "--json"], "No such command '--json'. See cutaway inspect --help."),
        (["train", "x.txt", "-o", "y", "--steps", "0"], "train.steps must be 1 or more, not 0."),
        (["train", "x.txt", "-o", "y", "--batch", "0"], "train.batch must be 1 or more, not 0."),
        (["inspect", "lens", "hi", "--html", "/nowhere/x.html"], "/nowhere/x.html: No such file or directory"),
    ],
)
def test_a_dash_a_zero_and_a_folder_that_is_not_there_get_a_sentence(capsys, line, message):
    assert cli.run(line) == 2
    assert message in capsys.readouterr().err


def test_after_two_dashes_comes_the_command(capsys):
    assert cli.run(["--"]) == 0 and "generate" in capsys.readouterr().out
    assert cli.run(["--", "tokens", "Hello", "--json"]) == 0 and "Hello" in capsys.readouterr().out


def test_with_standard_output_closed_nothing_is_said(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert cli.run(["tokens", "Hello", "--json"]) == 0
