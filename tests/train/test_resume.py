"""Whatever interrupts a training, what comes out is bit for bit what would have come out; and nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import cutaway
from cutaway.errors import CutawayError
from cutaway.train import state
from cutaway.train.events import Prepared, Step
from cutaway.train.loop import train
from cutaway.train.metrics import read_lines
from cutaway.train.optimizer import learning_rate
from cutaway.train.recipe import Recipe

CHILD = """
import json, os, signal, sys, torch
torch.set_num_threads(1)
from cutaway.train import state
from cutaway.train.events import Step
from cutaway.train.loop import train
from cutaway.train.recipe import Recipe
recipe, output, how, at = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
if how == "save":  # killed in the middle of writing the checkpoint of that step
    flush = state.flush
    def die(path):
        if f"step-{at:08d}" in str(path):
            os.kill(os.getpid(), signal.SIGKILL)
        flush(path)
    state.flush = die
def act(event):
    if isinstance(event, Step) and event.step == at and how != "save":
        os.kill(os.getpid(), getattr(signal, how))
report = train(Recipe.from_dict(recipe), output, on_event=act)
print(report.reason, report.step)
"""


def in_another_process(recipe: dict, output: Path, how: str, at: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", CHILD, json.dumps(recipe), str(output), how, str(at)]
    return subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, timeout=300
    )


@pytest.mark.parametrize(
    ("how", "at", "resumes"),
    [("SIGKILL", 8, 5), ("SIGTERM", 6, 7), ("save", 10, 5)],
    ids=["kill -9", "SIGTERM", "while saving"],
)
def test_killed_and_resumed_is_uninterrupted(settings, tmp_path, uninterrupted, how, at, resumes, assert_same):
    output = tmp_path / "model"
    ended = in_another_process(settings, output, how, at)
    if how == "SIGTERM":
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout.split() == ["stopped", "7"]
        lm = cutaway.load(output)  # what there is can be used
        assert len(lm.generate("The", max_tokens=2, seed=1, logit_bias={lm.tokenizer.end: -1e9}).ids) == 2
    else:
        assert ended.returncode == -signal.SIGKILL
    told = []
    report = train(None, output, resume=True, on_event=told.append)
    assert next(event for event in told if isinstance(event, Prepared)).step == resumes
    assert (report.reason, report.step) == ("done", 12)
    assert_same(uninterrupted(settings), output)


@pytest.mark.parametrize("kind", ["translation", "classification", "recompute", "best", "muon"])
def test_stopped_and_resumed_is_uninterrupted_whatever_is_trained(
    settings, tmp_path, uninterrupted, kind, assert_same, settings_for
):
    settings = settings_for(kind)
    output = tmp_path / "model"
    seen = []
    report = train(
        Recipe.from_dict(settings),
        output,
        on_event=seen.append,
        stop=lambda: sum(isinstance(e, Step) for e in seen) >= 4,
    )
    assert (report.reason, report.step) == ("stopped", 5)
    train(Recipe.from_dict(settings), output, resume=True)
    assert_same(uninterrupted(settings), output)


def test_there_is_nothing_to_resume_where_nothing_was_begun(tmp_path):
    with pytest.raises(CutawayError, match="nothing to resume"):
        train(None, tmp_path / "model", resume=True)


def test_resuming_where_no_checkpoint_was_reached_begins(settings, tmp_path, uninterrupted, assert_same):
    train(Recipe.from_dict(settings), tmp_path / "model", resume=True)
    assert_same(uninterrupted(settings), tmp_path / "model")


@pytest.fixture
def stopped(settings, tmp_path) -> Path:
    train(Recipe.from_dict(settings), tmp_path / "model", stop=lambda: True)
    return tmp_path / "model"


@pytest.mark.parametrize(
    ("section", "key", "value", "said"),
    [
        ("train", "batch", 8, "train.batch was 4 and is 8 now"),
        ("train", "learning_rate", 0.1, "train.learning_rate was 0.005 and is 0.1 now"),
        ("model", "width", 32, "model.width was 16 and is 32 now"),
        ("train", "seed", 0, "train.seed was 7 and is 0 now"),
        ("train", "steps", 1, r"reached step 1, and train\.steps = 1 is not beyond it"),
        ("task", "name", "translation", "task.name was 'language'"),
    ],
)
def test_resuming_with_another_recipe_is_refused_by_name_and_loses_nothing(
    stopped, settings, section, key, value, said
):
    before = (state.latest(stopped / "training") / state.TENSORS).read_bytes()
    changed = settings | {section: settings.get(section, {}) | {key: value}}
    with pytest.raises(CutawayError, match=said):
        train(Recipe.from_dict(changed), stopped, resume=True)
    assert (state.latest(stopped / "training") / state.TENSORS).read_bytes() == before


def test_what_changes_no_step_may_be_said_anew(stopped, settings, uninterrupted, record):
    changed = settings | {"train": {"checkpoint_every": 3, "tensorboard": False}}
    train(Recipe.from_dict(changed), stopped, resume=True)
    assert state.latest(stopped / "training").name == "step-00000012"
    assert [line["loss"] for line in record(stopped)] == [line["loss"] for line in record(uninterrupted(settings))]


@pytest.mark.parametrize("schedule", ["cosine", "linear", "wsd"])
def test_more_steps_go_on_with_the_learning_rate_of_the_longer_training(settings, tmp_path, record, schedule):
    settings["train"] |= {"schedule": schedule, "sample_every": 0}
    output = tmp_path / "model"
    train(Recipe.from_dict(settings), output)
    told = []
    report = train(Recipe.from_dict({"train": {"steps": 18}}), output, resume=True, on_event=told.append)
    assert (report.reason, report.step, report.steps) == ("done", 18, 18)
    rates = [line["learning_rate"] for line in record(output)]
    before, after = Recipe.from_dict(settings).train, Recipe.from_dict(settings).but({"train": {"steps": 18}}).train
    assert rates == [learning_rate(step, before if step <= 12 else after) for step in range(1, 19)]
    [choice] = next(event for event in told if isinstance(event, Prepared)).choices
    assert (choice.key, choice.value) == ("train.steps", 18)
    assert f"{rates[11]:.2e} and goes on from {rates[12]:.2e}" in choice.why
    assert "steps = 18" in (output / "recipe.toml").read_text()


def test_a_training_that_was_made_longer_is_itself_resumed_exactly(settings, tmp_path, assert_same):
    settings["train"] |= {"checkpoint_every": 100}
    longer = Recipe.from_dict({"train": {"steps": 18}})
    for name in ("whole", "killed"):
        train(Recipe.from_dict(settings), tmp_path / name)
    train(longer, tmp_path / "whole", resume=True)
    with pytest.raises(RuntimeError, match="power cut"):
        train(longer, tmp_path / "killed", resume=True, on_event=power_cut(15))
    train(None, tmp_path / "killed", resume=True)  # which nobody has to tell that there are 18 steps now
    assert_same(tmp_path / "whole", tmp_path / "killed")


def power_cut(step: int):
    def act(event):
        if isinstance(event, Step) and event.step == step:
            raise RuntimeError("power cut")

    return act


def test_a_constant_schedule_can_be_made_longer(settings, tmp_path, record):
    settings["train"] |= {"schedule": "constant", "warm_up": 3, "sample_every": 0}
    short = settings | {"train": settings["train"] | {"steps": 6}}
    train(Recipe.from_dict(short), tmp_path / "short")
    train(Recipe.from_dict(settings), tmp_path / "short", resume=True)
    train(Recipe.from_dict(settings), tmp_path / "long")
    assert [line["loss"] for line in record(tmp_path / "short")] == [line["loss"] for line in record(tmp_path / "long")]
    assert (tmp_path / "short" / "model.safetensors").read_bytes() == (
        tmp_path / "long" / "model.safetensors"
    ).read_bytes()


def test_changed_data_is_said_to_have_changed(settings, data, tmp_path):
    text = tmp_path / "text.txt"
    text.write_bytes((data / "text.txt").read_bytes())
    settings["data"] |= {"paths": [str(text)]}
    train(Recipe.from_dict(settings), tmp_path / "model", stop=lambda: True)
    text.write_text(text.read_text() + "And one sentence more.")
    with pytest.raises(CutawayError, match="The data is not what this training started with"):
        train(None, tmp_path / "model", resume=True)


def test_data_that_has_only_moved_is_the_same_data(settings, data, stopped, tmp_path, uninterrupted, record):
    moved = tmp_path / "elsewhere.txt"
    moved.write_bytes((data / "text.txt").read_bytes())
    train(Recipe.from_dict({"data": {"paths": [str(moved)]}}), stopped, resume=True)
    assert record(stopped) == record(uninterrupted(settings))


def test_a_damaged_checkpoint_is_named_and_the_one_before_it_serves(settings, tmp_path, uninterrupted, record):
    output = tmp_path / "model"
    train(
        Recipe.from_dict(settings | {"train": settings["train"] | {"checkpoint_every": 2}}),
        output,
        stop=at_step(output, 5),
    )
    newest = state.latest(output / "training")
    (newest / state.TENSORS).write_bytes(b"nonsense")
    with pytest.raises(CutawayError, match=r"cannot be read.*Delete it to resume from the one before"):
        train(None, output, resume=True)
    state.remove_folder(newest)
    train(None, output, resume=True)
    assert [line["loss"] for line in record(output)] == [line["loss"] for line in record(uninterrupted(settings))]


def at_step(output: Path, step: int):
    return lambda: len(read_lines(output / "metrics.jsonl")) >= step - 1
