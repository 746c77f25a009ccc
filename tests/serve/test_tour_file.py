"""A tour that somebody wrote: what it says comes through, and every mistake names the file, the step and the field."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from cutaway.errors import CutawayError
from cutaway.serve.tour import EXAMPLE, TourFile, check_step, check_tour, known, read_tour

ROOT = Path(__file__).resolve().parents[2]
STEP = {"page": "predict", "title": "Next", "words": "A word."}


def test_the_example_is_a_tour_and_shows_every_kind_of_thing():
    tour = read_tour(EXAMPLE)
    first, second, third, last = tour["steps"]
    assert first["ask"]["answer"] == "next.token" and first["notes"]["ru"] == first["notes"]["en"]
    assert second["words"]["ru"] != second["words"]["en"] and second["here"][0]["if"] == {"look.weight": [0.2, None]}
    assert third == {"name": "3", "use": "softmax"}
    assert last["place"]["beside"] == {"text": "The boy was not very"} and last["point"] == "picture"
    json.dumps(tour, allow_nan=False)  # as the page is told


@pytest.mark.parametrize("file", [*(ROOT / "web/src/tour").glob("[0-9]*.json"), *(ROOT / "recipes/tour").glob("*.json")], ids=lambda file: file.stem)  # fmt: skip
def test_the_steps_of_the_built_in_tour_have_the_same_form(file):
    step = json.loads(file.read_text())
    found = check_step(step, file.name, 1)
    assert {name: found[name] for name in step} == {**step, "place": found["place"]}


def test_what_a_tour_may_name_is_what_the_pages_have():
    """The file beside the built pages says what their source says."""
    src = ROOT / "web/src"
    assert known()["pages"] == sorted(one.parent.name for one in src.glob("pages/*/page.ts"))
    assert set(known()["languages"]) == {one.name for one in (src / "messages").iterdir()}
    assert list(known()["steps"]) == [one.stem.split("-", 1)[1] for one in sorted((src / "tour").glob("[0-9]*.json"))]
    pointed = {point for points in known()["points"].values() for point in points}
    assert {json.loads(one.read_text())["point"] for one in (src / "tour").glob("[0-9]*.json")} <= pointed


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"page": "atention"}, "step 1 (Next), page: there is no page 'atention'. Did you mean 'attention'?"),
        ({"titel": "x"}, "step 1 (Next): there is no field 'titel'. Did you mean 'title'?"),
        ({"words": {"de": "Wort"}}, "step 1 (Next), words: there is no language 'de'."),
        ({"words": ""}, "step 1 (Next), words: this must be a text in quotes"),
        ({"words": "It has {widht} columns."}, "step 1 (Next), words: {widht} is none of the model's sizes. Did you mean 'width'?"),
        ({"here": "It is {next.token}."}, "here: {next.token} speaks of a fact 'next' that is not asked for here."),
        ({"facts": {"next": {"of": "nxt"}}}, "facts.next.of: there is no kind of fact 'nxt'. Did you mean 'next'?"),
        ({"facts": {"cut": {"of": "cut", "wrd": "x"}}}, "facts.cut: there is no field 'wrd'. Did you mean 'word'?"),
        ({"facts": {"race": {"of": "race", "one": "a"}}}, "facts.race: a fact of the kind race needs other = …"),
        ({"facts": {"next": {"of": "next"}}, "here": {"if": {"next.share": [1]}, "say": "x"}}, "here.if.next.share: this must be two numbers"),
        ({"place": {"layer": -1}}, "place.layer: this must be a whole number, 0 or more, not -1."),
        ({"place": {"from": "look"}}, "place.from: there is no fact 'look'"),
        ({"place": {"beside": {}}}, "place.beside: name what stands on the other side"),
        ({"place": {"settings": {"n": [1]}}}, "place.settings.n: this must be a text or a number"),
        ({"point": "glance"}, "point: there is no place on the page predict 'glance'."),
        ({"ask": {"options": ["a", "b"], "right": 1}}, "ask.question: this is missing"),
        ({"ask": {"question": "?", "options": ["a"]}}, "ask.options: this must be a list of two to nine answers."),
        ({"ask": {"question": "?", "options": ["a", "b"]}}, "ask: which answer is right?"),
        ({"ask": {"question": "?", "options": ["a", "b"], "right": 3}}, "ask.right: this must be the number of the right answer, 1 to 2, not 3."),
        ({"ask": {"question": "?"}}, "ask: give either the answers to choose from"),
        ({"ask": {"question": "?", "answer": "next.token"}}, "ask.answer: {next.token} speaks of a fact 'next'"),
        ({"use": "softmx"}, "use: there is no step of the built-in tour 'softmx'. Did you mean 'softmax'?"),
        ({"name": "a b"}, "name: a name stands in the address"),
    ],
)  # fmt: skip
def test_a_mistake_names_the_file_the_step_and_the_field(step, said):
    with pytest.raises(CutawayError) as caught:
        check_tour({"title": "T", "steps": [STEP | step]}, "lesson.toml")
    assert str(caught.value).startswith("lesson.toml, step 1") and said in str(caught.value)


STEP_A = '[[steps]]\nname = "a"\npage = "predict"\ntitle = "A"\nwords = "B"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("steps = []", "title: this is missing"),
        ('title = "T"', "steps: there are none. Each begins with a line [[steps]]."),
        ('title = "T"\nsteps = = 1', "is not TOML: Invalid value (at line 2"),
        (f'title = "T"\n{STEP_A}{STEP_A}', "step 2 (a), name: 'a' is the name of an earlier step"),
    ],
)
def test_what_is_wrong_with_the_whole_is_said(tmp_path, text, said):
    file = tmp_path / "lesson.toml"
    file.write_text(text)
    with pytest.raises(CutawayError, match=re.escape(said)):
        read_tour(file)


def test_a_file_that_is_not_there_can_be_begun(tmp_path):
    with pytest.raises(CutawayError, match=r"There is no file .*cutaway tour new"):
        read_tour(tmp_path / "none.toml")


def test_a_file_that_has_changed_is_read_again(tmp_path):
    file = tmp_path / "lesson.toml"
    file.write_text('title = "One"\n[[steps]]\nuse = "softmax"\n')
    tour = TourFile(file)
    assert tour.get()["title"]["en"] == "One" and tour.get() is tour.get()
    file.write_text('title = "Two"\n[[steps]]\nuse = "softmax"\n')
    os.utime(file, ns=(1, 1))
    assert tour.get()["title"]["en"] == "Two"
