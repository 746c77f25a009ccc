"""A training with a time to keep ends in time, whatever happens; all of it by a clock that the test turns."""

from __future__ import annotations

import random
import re
from itertools import pairwise

import pytest

from cutaway.train import loop, pace, state
from cutaway.train.events import Evaluated, Finished, Prepared, Progress, Sampled, Saved, Step
from cutaway.train.loop import train
from cutaway.train.optimizer import learning_rate
from cutaway.train.pace import Pace
from cutaway.train.recipe import Recipe


class Machine:
    """A clock on which everything a training does takes as long as it is told; `busy` makes all of it slower."""

    def __init__(self, step=1.0, evaluate=2.0, sample=3.0, save=1.0, prepare=4.0, result=1.0, busy=lambda now: 1.0):
        self.now, self.busy, self.told = 0.0, busy, []
        self.costs = {Step: step, Evaluated: evaluate, Sampled: sample, Saved: save, Prepared: prepare,
                      Finished: result, Progress: 0.0}  # fmt: skip

    def __call__(self):
        return self.now

    def work(self, kind):
        self.now += self.costs[kind] * self.busy(self.now)

    def listen(self, event):
        self.told.append(event)
        if not isinstance(event, Step | Evaluated | Saved | Sampled | Finished):
            self.work(type(event))

    def of(self, kind):
        return [event for event in self.told if isinstance(event, kind)]


@pytest.fixture
def run(settings, tmp_path, monkeypatch):
    """A function: train for a time on a machine; the work itself takes what the machine says."""
    settings["train"] = {"batch": 4, "at_once": 4, "learning_rate": 5e-3, "precision": "float32", "seed": 7,
                         "evaluate_batches": 2, "steps": 100_000}  # fmt: skip
    machines = []

    def slowed(method, kind, when=lambda *_: True):
        def slow(self, *args, **kwargs):
            if when(self, *args):
                machines[-1].work(kind)
            return method(self, *args, **kwargs)

        return slow

    monkeypatch.setattr(loop.Run, "learn", slowed(loop.Run.learn, Step))
    monkeypatch.setattr(loop.Run, "measure", slowed(loop.Run.measure, Evaluated))
    monkeypatch.setattr(loop.Run, "sample", slowed(loop.Run.sample, Sampled))
    monkeypatch.setattr(loop.Run, "save", slowed(loop.Run.save, Saved))
    result = loop.write_result
    monkeypatch.setattr(loop, "write_result", lambda *args: (machines[-1].work(Finished), result(*args)))

    def go(time, machine, output=tmp_path / "model", resume=False, stop=None, **changes):
        machines.append(machine)
        recipe = (
            None if resume else Recipe.from_dict(settings | {"train": settings["train"] | {"time": time} | changes})
        )
        return train(recipe, output, resume=resume, on_event=machine.listen, stop=stop, clock=machine)

    return go


MACHINES = {
    "quiet": lambda: Machine(step=1.0),
    "slow steps": lambda: Machine(step=5.0),
    "slow to measure": lambda: Machine(step=1.0, evaluate=8.0),
    "slow to sample": lambda: Machine(step=1.0, sample=15.0),
    "slow to save": lambda: Machine(step=1.0, save=12.0, result=6.0),
    "gets busy halfway": lambda: Machine(step=1.0, busy=lambda now: 6.0 if now > 90 else 1.0),
    "busy now and then": lambda: Machine(step=1.0, busy=lambda now: 3.0 if now % 20 < 10 else 1.0),
    "busy at first": lambda: Machine(step=0.2, busy=lambda now: 8.0 if now < 60 else 1.0),
}


@pytest.mark.parametrize("name", MACHINES)
def test_all_of_it_ends_within_a_tenth_of_the_time_that_was_asked(run, name):
    machine = MACHINES[name]()
    report = run("3m", machine)
    assert report.reason == "done"
    assert 0.9 * 180 <= machine.now <= 1.1 * 180
    assert report.time == pytest.approx(machine.now, abs=7)  # all but the writing of the report itself
    steps = machine.of(Step)
    assert report.step == report.steps == len(steps)
    rates = [event.learning_rate for event in steps]
    assert max(rates) > 0.9 * 5e-3
    assert rates[-1] < 0.15 * 5e-3  # it came down in time
    top = rates.index(max(rates))
    assert all(after <= before for before, after in pairwise(rates[top:]))


def test_the_learning_rate_follows_the_clock_and_not_the_steps(run):
    """Half of the time was gone with few steps: the rate is then as at half of a plan."""
    machine = Machine(step=0.2, prepare=0.0, busy=lambda now: 10.0 if now < 90 else 1.0)
    run("3m", machine)
    half = min(machine.of(Step), key=lambda event: abs(event.time - 87))
    assert half.step < 0.2 * machine.of(Step)[-1].step
    assert half.learning_rate == pytest.approx(5e-3 * 0.55, rel=0.1)


@pytest.mark.parametrize("schedule", ["cosine", "linear", "wsd"])
@pytest.mark.parametrize("step", [2.5, 7.0, 13.0, 19.0])
def test_with_few_uneven_steps_the_learning_rate_only_falls_after_the_warm_up(step, schedule):
    """It is that of the share of the time that is gone, which only grows, however many steps are expected by now."""
    recipe = Recipe.from_dict({"train": {"time": "3m", "steps": 100_000, "learning_rate": 1.0, "schedule": schedule}})
    for seed in range(20):
        dice, now, rates, number = random.Random(seed), [0.0], [], 0
        pace = Pace(recipe, lambda now=now: now[0])
        while not pace.over():
            number += 1
            now[0] += step * dice.uniform(0.5, 1.5)
            pace.advance(number)
            rates.append(learning_rate(number, recipe.train, pace.expected))
            assert pace.expected == pytest.approx(number / pace.progress)
        falling = rates[rates.index(max(rates)) :]
        assert len(rates) > 4 and all(after <= before for before, after in pairwise(falling)), seed


def test_left_is_what_is_really_left_with_measuring_samples_and_writing(run):
    machine = Machine(step=1.0, evaluate=3.0, sample=2.0, save=2.0)
    run("5m", machine)
    for event in machine.of(Step)[20::50]:
        assert event.seconds_left == pytest.approx(machine.now - event.time, rel=0.1, abs=12)
    machine = Machine(step=1.0, evaluate=3.0, sample=2.0, save=2.0)
    run(
        "",
        machine,
        output=machine_folder(run, "steps"),
        steps=200,
        evaluate_every=20,
        sample_every=50,
        evaluate_batches=50,
    )
    for event in machine.of(Step)[60::30]:
        assert event.seconds_left == pytest.approx(machine.now - event.time, rel=0.25)


def machine_folder(run, name):
    return run.__defaults__[0].parent / name


def test_measuring_samples_and_checkpoints_come_by_the_clock(run):
    machine = Machine(step=1.0, evaluate=0.5, sample=0.5, save=1.0)
    run("10m", machine)
    assert 17 <= len(machine.of(Evaluated)) <= 22
    assert 8 <= len(machine.of(Sampled)) <= 10
    assert 4 <= len(machine.of(Saved)) <= 6
    slow = Machine(step=3.0, evaluate=30.0, sample=30.0, save=1.0)
    run("10m", slow, output=machine_folder(run, "slow"))
    looking = 30 * (len(slow.of(Evaluated)) + len(slow.of(Sampled)))
    assert 0 < looking < 0.4 * 600


def test_stopped_and_resumed_it_keeps_the_time_that_is_left(run):
    first = Machine(step=1.5)
    report = run("3m", first, stop=lambda: first.now > 80)
    assert report.reason == "stopped"
    second = Machine(step=1.5)
    report = run("", second, resume=True)
    assert report.reason == "done"
    assert 0.9 * 180 <= first.now + second.now <= 1.1 * 180
    joint = (first.of(Step)[-1].learning_rate, second.of(Step)[0].learning_rate)
    assert joint[1] == pytest.approx(joint[0], rel=0.15)  # no jump
    assert second.of(Step)[-1].learning_rate < 0.15 * 5e-3
    third = Machine()
    assert run("", third, resume=True).reason == "done"  # nothing is left to do
    assert not third.of(Step)


def test_little_data_ends_by_the_steps_before_the_time_is_up(run):
    machine = Machine(step=0.1)
    report = run("10m", machine, steps=40)
    assert report.step == 40 and machine.now < 60
    assert machine.of(Step)[-1].learning_rate == pytest.approx(5e-4)


def test_time_that_is_over_before_the_first_step_still_gives_a_model(run):
    machine = Machine(step=1.0, prepare=200.0)
    report = run("1m", machine)
    assert report.step == 1 and report.reason == "done"


def test_with_steps_no_clock_changes_anything(run, assert_same):
    folders = [machine_folder(run, name) / "model" for name in ("quick", "slow")]
    common = {"steps": 12, "evaluate_every": 4, "sample_every": 6, "checkpoint_every": 5}
    run("", Machine(step=0.01), output=folders[0], **common)
    run("", Machine(step=50.0, save=500.0, busy=lambda now: 1 + now % 7), output=folders[1], **common)
    assert_same(*folders)
    assert state.read_state(state.latest(folders[0] / "training")).progress == 1
    quick, slow = (
        {str(file.relative_to(folder)): timeless(file) for file in folder.rglob("*") if file.is_file()}
        for folder in folders
    )
    assert quick == slow and len(quick) > 10


TOLD = re.compile(rb'"(time|tokens_per_second|folder)": [^,}\n]+')
"""What a clock says, and where the folder is."""


def timeless(file):
    """A file of a training, without the times that the documentation says are in it."""
    timed = file.name in ("metrics.jsonl", "report.json", "state.json")
    return TOLD.sub(b"", file.read_bytes()) if timed else file.read_bytes()


def test_what_all_of_the_held_out_data_would_cost_is_not_paid_in_a_short_time():
    recipe = Recipe.from_dict({"train": {"time": "1m", "steps": 1_000, "evaluate_batches": 2}})
    now = [0.0]
    one = Pace(recipe, lambda: now[0], batches=1_000)
    now[0] = 1.0
    one.advance(1)
    assert one.cost("whole") == 1_000 * pace.FORWARD and not one.affords_whole()
    assert one.finale() == pytest.approx(2 * pace.FORWARD)
    assert Pace(recipe, lambda: now[0], batches=3).affords_whole()
