"""`cutaway tour`, and `cutaway explore --tour`: an example to change, and what is wrong with a file."""

from __future__ import annotations

import json

import pytest

from cutaway import cli
from cutaway.inspect.facts import facts
from cutaway.inspect.runs import run

TOUR = """
title = "T"
[[steps]]
page = "predict"
title = "Next"
words = "A word."
place = { text = "Once upon a" }
facts = { next = { of = "next" } }
here = [{ if = { next.share = [2, inf] }, say = "never" }, "{next.token} has {next.share}."]
"""


def test_a_new_tour_is_one_that_can_be_shown(tmp_path, capsys):
    file = tmp_path / "lesson.toml"
    assert cli.run(["tour", "new", str(file)]) == 0
    assert cli.run(["tour", "check", str(file), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in said["steps"]] == ["1", "2", "3", "4"] and said["steps"][0]["here"]
    before = file.read_text()
    assert cli.run(["tour", "new", str(file)]) == 2  # nobody's work is overwritten
    assert "is there already" in capsys.readouterr().err and file.read_text() == before


def test_checking_says_what_a_step_says_on_the_model(tmp_path, capsys):
    import cutaway

    file = tmp_path / "lesson.toml"
    file.write_text(TOUR)
    assert cli.run(["tour", "check", str(file)]) == 0
    found = facts(run(cutaway.load(), "Once upon a"), {"next": {"of": "next"}})["next"]
    assert f"{found['token'].value[0].text!r} has {found['share'].value:.1%}." in capsys.readouterr().out


def test_a_step_with_a_model_of_its_own_is_asked_of_that_one(tmp_path, capsys):
    file = tmp_path / "lesson.toml"
    about = 'place = { model = "rnn", text = "She bought a red car." }\nfacts = { state = { of = "carried" } }\n'
    step = f'[[steps]]\npage = "translator"\ntitle = "T"\nwords = "W."\n{about}here = "{{state.tokens}} tokens"\n'
    file.write_text(f'title = "T"\n{step}')
    assert cli.run(["tour", "check", str(file)]) == 0
    assert "6 tokens" in capsys.readouterr().out
    file.write_text(f'title = "T"\n{step.replace("rnn", "nowhere")}')
    assert cli.run(["tour", "check", str(file)]) == 2
    assert "nowhere" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("next.share}", "next.shre}"), "lesson.toml, step 1 (Next): there is no next.shre."),
        (('of = "next"', 'of = "next", at = "girl"'), "facts: 'girl' does not occur in the text."),
        (("page = ", "pages = "), "lesson.toml, step 1 (Next): there is no field 'pages'."),
    ],
)
def test_a_mistake_is_said_and_nothing_is_shown(tmp_path, capsys, change, said):
    file = tmp_path / "lesson.toml"
    file.write_text(TOUR.replace(*change))
    assert cli.run(["tour", "check", str(file)]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_the_explorer_does_not_open_with_a_tour_that_is_wrong(tmp_path, capsys):
    file = tmp_path / "lesson.toml"
    file.write_text(TOUR.replace("[[steps]]", "[[stops]]"))
    assert cli.run(["explore", "--tour", str(file), "--no-browser"]) == 2
    assert "lesson.toml: there is no field 'stops'. Did you mean 'steps'?" in " ".join(capsys.readouterr().err.split())
    assert cli.run(["explore", "--tour", str(file), "--terminal"]) == 2
