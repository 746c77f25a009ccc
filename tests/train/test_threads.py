"""The number of threads is chosen by the shape, written down, and kept when a training goes on."""

from __future__ import annotations

import pytest
import torch

from cutaway.train import state
from cutaway.train.events import Step
from cutaway.train.loop import train
from cutaway.train.recipe import Recipe, Train
from cutaway.train.threads import computing_in, threads_for


@pytest.mark.parametrize(("width", "at_once", "wanted"), [(64, 4, 1), (64, 8, 1), (64, 16, 6), (256, 4, 6)])
def test_a_small_shape_is_trained_in_one_thread_by_its_shape_and_by_no_clock(monkeypatch, width, at_once, wanted):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 6)
    chosen, why = threads_for(Train(at_once=at_once, length=128), width)
    assert chosen == wanted and why


def test_the_threads_are_as_before_afterwards_and_0_changes_nothing():
    before = torch.get_num_threads()
    with pytest.raises(ValueError, match="no"), computing_in(before + 1):
        assert torch.get_num_threads() == before + 1
        raise ValueError("no")
    with computing_in(0):
        assert torch.get_num_threads() == before
    assert torch.get_num_threads() == before


def test_a_training_is_computed_in_the_threads_of_its_recipe_and_resumed_in_them(settings, tmp_path, assert_same):
    seen, outputs = list[int](), [tmp_path / "whole", tmp_path / "parts"]

    def look(event):
        if isinstance(event, Step):
            seen.append(torch.get_num_threads())

    recipe = Recipe.from_dict(settings).but({"train": {"threads": 2}})
    train(recipe, outputs[0], on_event=look)
    half = len(seen) // 2
    train(recipe, outputs[1], on_event=look, stop=lambda: len(seen) >= 3 * half)
    train(None, outputs[1], resume=True, on_event=look)
    assert set(seen) == {2} and torch.get_num_threads() == 1
    assert_same(*outputs)
    assert state.read_state(state.latest(outputs[1] / "training")).recipe["train"]["threads"] == 2


def test_what_was_chosen_is_written_into_the_recipe(settings, tmp_path):
    train(Recipe.from_dict(settings), tmp_path / "model")
    assert "threads = 1\n" in (tmp_path / "model" / "recipe.toml").read_text()
