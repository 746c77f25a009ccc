"""Early stopping: after so many measurements without a lower held-out loss the training ends, with its best weights."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file

import cutaway
from cutaway.errors import CutawayError
from cutaway.train import state
from cutaway.train.events import Evaluated, Step
from cutaway.train.loop import train
from cutaway.train.recipe import Recipe


@pytest.fixture
def settings(settings):
    """A learning rate at which the held-out loss soon rises again."""
    settings["train"] |= {
        "steps": 60, "learning_rate": 0.2, "schedule": "constant", "evaluate_every": 2, "checkpoint_every": 50,
        "patience": 3, "sample_every": 0,
    }  # fmt: skip
    return settings


def test_it_ends_when_patience_does_and_the_best_weights_are_the_result(settings, tmp_path):
    told = []
    report = train(Recipe.from_dict(settings), tmp_path / "model", on_event=told.append)
    found = [event.held_loss for event in told if isinstance(event, Evaluated)][:-1]  # the last: of what was kept
    best = found.index(min(found))
    assert report.reason == "patience" and report.step < 60
    assert len(found) == best + 1 + 3  # three measurements after the best, and no more
    assert (report.step, report.kept_step) == (2 * len(found), 2 * (best + 1))
    kept = load_file(tmp_path / "model" / "training" / "best" / state.TENSORS)["weights.token_embedding.weight"]
    assert torch.equal(cutaway.load(tmp_path / "model").model.token_embedding.weight, kept)


def test_stopped_in_between_and_resumed_it_ends_at_the_same_step(settings, tmp_path, assert_same):
    whole = train(Recipe.from_dict(settings), tmp_path / "whole")
    at = whole.kept_step + 2  # some patience is used up, and must be remembered
    seen = []
    stopped = train(
        Recipe.from_dict(settings),
        tmp_path / "model",
        on_event=seen.append,
        stop=lambda: sum(isinstance(event, Step) for event in seen) >= at - 1,
    )
    assert (stopped.reason, stopped.step) == ("stopped", at)
    resumed = train(None, tmp_path / "model", resume=True)
    assert (resumed.reason, resumed.step, resumed.kept_step) == ("patience", whole.step, whole.kept_step)
    assert_same(tmp_path / "whole", tmp_path / "model")


def test_resumed_after_its_end_it_takes_no_step_unless_it_gets_more_patience(settings, tmp_path):
    ended = train(Recipe.from_dict(settings), tmp_path / "model")
    again = train(None, tmp_path / "model", resume=True)
    assert (again.reason, again.step, again.kept_step) == ("patience", ended.step, ended.kept_step)
    more = train(Recipe.from_dict({"train": {"patience": 5}}), tmp_path / "model", resume=True)
    assert more.step > ended.step


def test_without_held_out_data_it_is_refused(settings, tmp_path):
    settings["data"] |= {"held_out": 0}
    with pytest.raises(CutawayError, match=r"train\.patience needs regular evaluation on held-out data"):
        train(Recipe.from_dict(settings), tmp_path / "model")
