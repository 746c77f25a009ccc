"""The recipes that ship: each is whole, and says how it is used."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from cutaway.tasks import task_from
from cutaway.train.recipe import Recipe

ROOT = Path(__file__).resolve().parents[2]
RECIPES = sorted((ROOT / "recipes").glob("*.toml"))


@pytest.fixture(params=RECIPES, ids=lambda path: path.name)
def path(request):
    return request.param


def test_a_recipe_is_read_where_its_data_is_found(path, tmp_path, monkeypatch):
    wanted = tomllib.loads(path.read_text())["data"]["paths"]
    for name in wanted:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.setenv("CUTAWAY_DATA", str(tmp_path))
    recipe = Recipe.load(path, ["train.steps=7"])
    assert len(recipe.data.paths) == len(wanted)
    assert all(Path(found).exists() for found in recipe.data.paths)
    assert recipe.train.steps == 7


def test_a_recipes_task_and_shape_hold_together(path):
    recipe = Recipe.from_dict(tomllib.loads(path.read_text()))
    task = task_from(dict(recipe.task))
    assert task.within(recipe.model.context or 1024)
    if recipe.model.heads:
        assert recipe.model.width % recipe.model.heads == 0


def test_a_recipe_says_what_it_is_and_how_it_is_run(path):
    head = path.read_text().split("\n[")[0]
    assert head.startswith("# "), f"{path.name} does not begin by saying what it is"
    assert f"cutaway train recipes/{path.name} -o " in head
