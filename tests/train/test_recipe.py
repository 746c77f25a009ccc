"""Recipes: typed, complete, and plain about mistakes."""

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cutaway.cli.train import read_recipe
from cutaway.errors import CutawayError
from cutaway.train.distributed import Team
from cutaway.train.recipe import CHOSEN, SECTIONS, Recipe, Train, keys, seconds, toml
from cutaway.train.start import set_up

ROOT = Path(__file__).resolve().parents[2]


def test_a_recipe_is_read_typed_and_says_what_it_was_told(tmp_path):
    (tmp_path / "my.txt").write_text("text")
    path = tmp_path / "recipe.toml"
    path.write_text('[model]\nfrom = "gpt2"\n[data]\npaths = ["my.txt"]\n[train]\nsteps = 100\nlearning_rate = 1\n')
    recipe = Recipe.load(path)
    assert recipe.model.from_ == "gpt2"
    assert recipe.train.steps == 100
    assert recipe.train.learning_rate == 1.0 and isinstance(recipe.train.learning_rate, float)
    assert recipe.data.paths == (str(tmp_path / "my.txt"),)  # beside the recipe, wherever one stands
    assert recipe.decided("train.steps") and not recipe.decided("train.batch")
    assert recipe.decided("train.clip")  # it has a value of its own


def test_a_recipe_survives_being_written(tmp_path):
    recipe = Recipe.from_dict(
        {
            "model": {"layers": 3, "dropout": 0.0},
            "data": {"paths": ['a "quoted" ü.txt'], "columns": {"source": "en", "target": 1}, "held_out": 500},
            "task": {"name": "translation", "separator": "<|to-french|>"},
            "train": {"betas": [0.9, 0.99], "epsilon": 1e-9, "compile": True, "prompt": "Once\nupon"},
        }
    )
    again = Recipe.from_dict(tomllib.loads(recipe.to_toml()))
    assert again == recipe
    assert "model.dropout" in again.set_keys  # a zero that was said is not up for choice again
    assert "steps" not in again.to_dict()["train"]
    assert Recipe.from_dict(again.to_dict()) == recipe


@given(st.text())
def test_any_text_survives_toml(text):
    text = text.encode("utf-8", "replace").decode()
    assert tomllib.loads(f"value = {toml(text)}")["value"] == text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"train": {"step": 1}}, r"\[train\] has no 'step'. Did you mean 'steps'\?"),
        ({"train": {"layers": 1}}, r"\[train\] has no 'layers'. It belongs in \[model\]"),
        ({"training": {"steps": 1}}, r"no \[training\]. Did you mean 'train'\?"),
        ({"steps": 1}, r"no \[steps\]. steps belongs in \[train\]"),
        ({"train": {"steps": "many"}}, "train.steps must be a whole number, not 'many'"),
        ({"train": {"steps": True}}, "train.steps must be a whole number"),
        ({"train": {"steps": 1.5}}, "train.steps must be a whole number"),
        ({"train": {"compile": 1}}, "train.compile must be true or false"),
        ({"train": {"steps": -1}}, "train.steps must be 0 or more"),
        ({"train": {"schedule": "cosin"}}, "train.schedule must be one of cosine"),
        ({"train": {"betas": [0.9]}}, "train.betas must be two numbers"),
        ({"train": {"time": "soon"}}, "not a duration"),
        ({"train": {"learning_rate": float("nan")}}, "train.learning_rate must be a number of 0 or more"),
        ({"data": {"paths": [1]}}, "data.paths must be a list of texts"),
        ({"data": {"held_out": 1.5}}, "data.held_out must be a share below 1"),
        ({"data": {"seed": -1}}, "data.seed must be 0 or more"),
        ({"model": {"dropout": 1.0}}, "model.dropout"),
        ({"lora": {"rank": -1}}, "lora.rank"),
    ],
)
def test_a_mistake_is_named_with_the_nearest_right_thing(given, said):
    with pytest.raises(CutawayError, match=said):
        Recipe.from_dict(given)


def test_a_mistake_in_a_file_is_named_with_the_file(tmp_path):
    path = tmp_path / "my.toml"
    path.write_text("[train]\nstesp = 1\n")
    with pytest.raises(CutawayError, match=r"my\.toml: \[train\] has no 'stesp'. Did you mean 'steps'"):
        Recipe.load(path)
    path.write_text("[train\n")
    with pytest.raises(CutawayError, match=r"my\.toml is not valid TOML"):
        Recipe.load(path)
    path.write_text('[data]\npaths = ["nowhere.txt"]\n')
    with pytest.raises(CutawayError, match=r"nowhere.txt does not exist. It was looked for in"):
        Recipe.load(path)
    with pytest.raises(CutawayError, match="cannot be read"):
        Recipe.load(tmp_path / "none.toml")


def test_changes_on_the_command_line():
    recipe = Recipe().changed(["train.steps=100", "train.time=30m", "train.compile=true", "train.betas=[0.9, 0.99]"])
    recipe = recipe.changed(
        ["task.name=translation", "task.separator=<|to-french|>", "data.paths=a.txt", "model.from=12"]
    )
    assert (recipe.train.steps, recipe.train.time, recipe.train.compile) == (100, "30m", True)
    assert recipe.train.betas == (0.9, 0.99)
    assert recipe.task == {"name": "translation", "separator": "<|to-french|>"}
    assert recipe.data.paths == ("a.txt",)
    assert recipe.model.from_ == "12"
    with pytest.raises(CutawayError, match="Did you mean 'steps'"):
        Recipe().changed(["train.setps=100"])
    with pytest.raises(CutawayError, match=r"write it like train.steps=100"):
        Recipe().changed(["steps"])


def test_data_named_by_a_change_need_not_be_where_the_recipe_says(tmp_path):
    path = tmp_path / "my.toml"
    path.write_text('[data]\npaths = ["nowhere.txt"]\n[train]\nsteps = 5\n')
    changed = Recipe.load(path, ["data.paths=mine.txt", "train.steps=7"])
    assert changed.data.paths == ("mine.txt",) and changed.train.steps == 7
    assert read_recipe([path], {}, ["data.paths=mine.txt"], resume=False).data.paths == ("mine.txt",)
    with pytest.raises(CutawayError, match=r"nowhere.txt does not exist"):
        Recipe.load(path, ["train.steps=7"])


def test_which_documents_are_held_out_depends_on_the_seed_of_the_data_alone(settings):
    def held(seed, of_data):
        settings["train"] |= {"seed": seed}
        settings["data"] |= {"seed": of_data}
        ready = set_up(Recipe.from_dict(settings), Team(torch.device("cpu")), lambda event: None)
        return ready.dataset.held.tokens.tolist()

    assert held(1, 0) == held(2, 0)
    assert held(1, 0) != held(1, 3)


def test_another_task_forgets_the_settings_of_the_one_before():
    recipe = Recipe.from_dict({"task": {"name": "translation", "separator": "<|x|>"}})
    assert recipe.but({"task": {"name": "summary"}}).task == {"name": "summary"}


@pytest.mark.parametrize(
    ("text", "length"), [("90s", 90), ("30m", 1800), ("1h30m", 5400), ("1.5h", 5400), ("130s", 130), ("2h 5m 1s", 7501)]
)
def test_lengths_of_time(text, length):
    assert seconds(text) == length


@pytest.mark.parametrize("text", ["", "30", "m", "-5m", "1d", "30m1h"])
def test_what_is_no_length_of_time(text):
    with pytest.raises(CutawayError, match="30m"):
        seconds(text)


def test_every_key_is_documented_and_every_chosen_key_exists():
    page = (ROOT / "docs" / "training.md").read_text()
    for section in SECTIONS:
        for key in keys(section):
            assert re.search(rf"^\| `{key}` \|", page, re.M), f"docs/training.md does not explain {section}.{key}"
    known = {f"{section}.{key}" for section in SECTIONS for key in keys(section)}
    assert known >= CHOSEN
    assert {one.name for one in fields(Train)} == set(keys("train"))


@pytest.mark.parametrize("path", sorted((ROOT / "recipes").glob("*.toml")), ids=lambda path: path.name)
def test_every_recipe_that_ships_is_a_recipe(path):
    recipe = Recipe.from_dict(tomllib.loads(path.read_text()))
    assert recipe.data.paths
