from __future__ import annotations

import json
import random
import shlex
import signal
import tomllib
from contextlib import contextmanager

import pytest

from cutaway.cli import screen, training
from cutaway.train.events import Step
from cutaway.train.metrics import read_lines

WORDS = [
    "the",
    "a",
    "fox",
    "bear",
    "owl",
    "hill",
    "river",
    "moon",
    "saw",
    "went",
    "found",
    "lost",
    "red",
    "small",
    "old",
]
SHAPE = ("--layers", 1, "--width", 16, "--heads", 2, "--context", 16, "--vocabulary", 300, "--batch", 4)


def sentences(count):
    dice = random.Random(1)
    return [" ".join(dice.choices(WORDS, k=8)).capitalize() + "." for _ in range(count)]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A text, pairs, and labelled sentences."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "my.txt").write_text("\n<|endoftext|>\n".join(sentences(60)) + "\n")
    (folder / "pairs.tsv").write_text("".join(f"{one}\t{one.upper()}\n" for one in sentences(30)))
    labelled = [f"{one}\t{'yes' if 'fox' in one.lower() else 'no'}\n" for one in sentences(40)]
    (folder / "labels.tsv").write_text("text\tlabel\n" + "".join(labelled))
    return folder


@pytest.fixture
def train(cutaway, tmp_path_factory, monkeypatch):
    """Runs `cutaway train`; the data in tokens is kept away from the person's own cache."""
    monkeypatch.setenv("CUTAWAY_HOME", str(tmp_path_factory.getbasetemp() / "home"))
    return lambda *args, **more: cutaway("train", *args, **more)


@contextmanager
def stopped_at(step, number):
    """Send this process a signal when a step has been taken, as a person or a machine would."""
    tell = training.Screen.__call__

    def listen(self, event):
        tell(self, event)
        if isinstance(event, Step) and event.step == step:
            signal.raise_signal(number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training.Screen, "__call__", listen)
        yield


def test_it_says_what_it_chose_and_how_it_goes_and_writes_a_folder_other_verbs_take(train, cutaway, data, tmp_path):
    ran = train(data / "my.txt", "-o", tmp_path / "my model", *SHAPE, "--steps", 6, "--set", "train.evaluate_every=3")
    assert ran.code == 0
    assert ran.out == f"{tmp_path / 'my model'}\n"
    assert "Model: 1 blocks × 16 wide, 2 heads, 16 positions" in ran.err
    assert "60 documents" in ran.err
    assert "Chosen: train.learning_rate = " in ran.err and "model.layers" not in ran.err
    assert "step 3 · loss " in ran.err and "held-out loss " in ran.err and "tokens/s" in ran.err
    assert "6 steps in " in ran.err and "bits per byte" in ran.err
    assert "metrics.jsonl, samples.jsonl, loss.svg, recipe.toml" in ran.err
    assert f"cutaway generate --model '{tmp_path / 'my model'}'" in ran.err
    assert cutaway("generate", "The fox", "-n", 3, "--model", tmp_path / "my model").code == 0
    assert [line["step"] for line in read_lines(tmp_path / "my model" / "metrics.jsonl")] == [1, 2, 3, 4, 5, 6]


def test_every_option_is_in_the_recipe(train, data, tmp_path):
    train(
        data / "my.txt", "-o", tmp_path / "m", *SHAPE, "--steps", 2, "--learning-rate", 0.002, "--checkpoint-every", 1,
        "--seed", 4, "--time", "2m", "--set", "train.schedule=linear", "--set", "data.held_out=0.2",
    )  # fmt: skip
    recipe = tomllib.loads((tmp_path / "m" / "recipe.toml").read_text())
    shape = {"layers": 1, "width": 16, "heads": 2, "context": 16, "vocabulary": 300}
    assert recipe["model"].items() >= shape.items()
    wanted = {"steps": 2, "batch": 4, "learning_rate": 0.002, "checkpoint_every": 1, "seed": 4, "time": "2m"}
    assert recipe["train"].items() >= {**wanted, "schedule": "linear"}.items()
    assert recipe["data"]["held_out"] == 0.2


def test_json_is_one_object_for_each_event_and_nothing_else(train, data, tmp_path):
    ran = train(data / "my.txt", "-o", tmp_path / "m", *SHAPE, "--steps", 3, "--json")
    assert (ran.code, ran.err) == (0, "")
    events = [json.loads(line) for line in ran.out.splitlines()]
    names = [event["event"] for event in events]
    assert names[0] == "progress" and names[-1] == "finished" and {"saved", "sampled", "evaluated"} <= set(names)
    [prepared] = [event for event in events if event["event"] == "prepared"]
    assert prepared["recipe"]["train"]["steps"] == 3 and prepared["data"]["documents"] == 60
    assert {"key", "value", "why"} == set(prepared["choices"][0])
    assert [event["step"] for event in events if event["event"] == "step"] == [1, 2, 3]
    assert events[-1]["folder"] == str(tmp_path / "m") and events[-1]["reason"] == "done"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_save_and_say_how_to_go_on_and_that_works(train, data, tmp_path, number):
    line = (data / "my.txt", *SHAPE, "--steps", 6, "--checkpoint-every", 100)
    assert train(*line, "-o", tmp_path / "whole").code == 0
    with stopped_at(2, number):
        ran = train(*line, "-o", tmp_path / "m")
    assert (ran.code, ran.out) == (130, "")
    assert "Stopped and saved after step 3 of 6." in ran.err  # it was told after step 2, and heard in the next
    command = ran.err.strip().rpartition("Resume with: cutaway ")[2].split()
    assert command == ["train", "--resume", "-o", str(tmp_path / "m")]
    ran = train(*command[1:])
    assert ran.code == 0 and "Resumes after step 3: 6 steps" in ran.err
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "m")]
    assert weights[0] == weights[1]


def test_a_ctrl_c_before_the_first_step_says_what_to_do(train, data, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(training.Screen, "work", interrupt)
    ran = train(data / "my.txt", "-o", tmp_path / "m", *SHAPE, "--steps", 2)
    assert ran.code == 130
    assert "Start again with the same command" in ran.err
    monkeypatch.undo()
    assert train(data / "my.txt", "-o", tmp_path / "m", *SHAPE, "--steps", 2).code == 0


def test_a_recipe_is_taken_and_the_command_line_has_the_last_word(train, data, tmp_path):
    (tmp_path / "x.toml").write_text(
        f"[model]\nlayers = 1\nwidth = 16\nheads = 2\ncontext = 16\nvocabulary = 300\n"
        f'[data]\npaths = ["{data / "my.txt"}"]\n[train]\nsteps = 50\nbatch = 4\nseed = 3\n'
    )
    ran = train(
        tmp_path / "x.toml", "-o", tmp_path / "m", "--steps", 9, "--seed", 5, "--set", "train.steps=2", "--json"
    )
    recipe = next(json.loads(line) for line in ran.out.splitlines() if '"prepared"' in line)["recipe"]
    assert (recipe["train"]["steps"], recipe["train"]["seed"], recipe["train"]["batch"]) == (2, 5, 4)
    ran = train(tmp_path / "x.toml", data / "my.txt", "-o", tmp_path / "n")
    assert ran.code == 2 and "A recipe names its own data" in ran.err


def test_a_task_is_learned_and_its_verb_named(train, cutaway, data, tmp_path):
    ran = train(
        data / "pairs.tsv", "--task", "translation", "-o", tmp_path / "t", *SHAPE, "--context", 96, "--steps", 2
    )
    assert "(in the data: " in ran.err and "Try it: cutaway translate" in ran.err
    assert cutaway("translate", "The fox", "-n", 2, "--model", tmp_path / "t").code == 0
    ran = train(data / "labels.tsv", "--task", "classification", "-o", tmp_path / "c", *SHAPE, "--context", 64,
                "--steps", 2, "--set", "data.held_out=10")  # fmt: skip
    assert " % right" in ran.err and "Try it: cutaway classify" in ran.err
    assert cutaway("classify", "The fox", "--model", tmp_path / "c").code == 0


def test_training_goes_on_from_a_model(train, folder, data, tmp_path):
    ran = train(data / "my.txt", "--from", folder, "-o", tmp_path / "m", "--steps", 2, "--batch", 2)
    assert ran.code == 0 and f"Model: going on from {folder}; " in ran.err
    ran = train(data / "my.txt", "--from", folder, "-o", tmp_path / "n", "--steps", 2, "--layers", 7)
    assert ran.code == 2 and "model.layers" in ran.err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("-o", "m"), "name files, folders or a recipe"),
        (("nowhere.txt", "-o", "m"), "nowhere.txt"),
        (("my.txt",), "--output"),
        (("--resume", "-o", "m"), "nothing to resume in m"),
        (("my.txt", "-o", "m", "--set", "train.stepz=3"), "Did you mean 'steps'?"),
        (("my.txt", "-o", "m", "--set", "steps=3"), "steps belongs in [train]"),
        (("my.txt", "-o", "m", "--task", "translaton"), "Did you mean 'translation'?"),
        (("my.txt", "-o", "m", "--time", "soon"), "30m"),
        (("my.txt", "-o", "my.txt"), "is a file"),
        (("empty.txt", "-o", "m"), "empty.txt"),
        (("latin.txt", "-o", "m"), "UTF-8"),
        (("broken.toml", "-o", "m"), "TOML"),
    ],
)
def test_mistakes_are_one_line_and_code_2(train, data, tmp_path, monkeypatch, args, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.txt").write_text((data / "my.txt").read_text())
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9 " * 200)
    (tmp_path / "broken.toml").write_text("[train")
    ran = train(*args)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert said in ran.err
    assert not (tmp_path / "m" / "config.json").exists()


def test_a_terminal_has_a_line_that_lives(train, data, tmp_path, monkeypatch):
    from rich.console import Console

    console = Console(stderr=True, force_terminal=True, width=120, color_system=None)
    monkeypatch.setattr(screen, "err", lambda: console)
    monkeypatch.setenv("TERM", "xterm")
    ran = train(data / "my.txt", "-o", tmp_path / "m", *SHAPE, "--steps", 3)
    assert ran.code == 0
    assert "step 3 of 3 · loss " in ran.err


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0 s"), (89, "89 s"), (120, "2 min"), (5_300, "88 min"), (7_260, "2 h 01 min")]
)
def test_lengths_of_time_are_said_shortly(seconds, said):
    assert training.duration(seconds) == said


def test_a_training_is_made_longer_and_ended_early_from_the_command_line(train, data, tmp_path):
    model = tmp_path / "m"
    assert train(data / "my.txt", "-o", model, *SHAPE, "--steps", 4).code == 0
    ran = train("--resume", "-o", model, "--steps", 6)
    assert ran.code == 0 and "Chosen: train.steps = 6 (4 before; the learning rate was " in ran.err
    assert [line["step"] for line in read_lines(model / "metrics.jsonl")] == [1, 2, 3, 4, 5, 6]
    refused = train("--resume", "-o", model, "--steps", 5)
    assert refused.code == 2 and "reached step 6, and train.steps = 5 is not beyond it" in refused.err
    wild = ("--steps", 40, "--learning-rate", 0.5, "--patience", 1, "--set", "train.evaluate_every=2")
    ran = train(data / "my.txt", "-o", tmp_path / "wild", *SHAPE, *wild)
    assert ran.code == 0 and "Ended early, after step " in ran.err
    assert json.loads((tmp_path / "wild" / "report.json").read_text())["reason"] == "patience"


def test_a_chat_model_is_trained_on_messages_and_the_command_it_suggests_asks_it(train, cutaway, tmp_path):
    talks = [[{"role": "user", "content": one}, {"role": "assistant", "content": one.upper()}] for one in sentences(30)]
    data = tmp_path / "talks.jsonl"
    data.write_text("".join(json.dumps({"messages": talk}) + "\n" for talk in talks))
    refused = train(data, "-o", tmp_path / "none", *SHAPE, "--steps", 2)
    assert refused.code == 2 and "It looks like one for the task chat" in refused.err
    shape = [64 if one == 16 else one for one in SHAPE]
    ran = train(data, "--task", "chat", "-o", tmp_path / "chat", *shape, "--steps", 2)
    assert ran.code == 0
    [suggested] = [line for line in ran.err.splitlines() if line.startswith("Try it: cutaway ")]
    asked = cutaway(*shlex.split(suggested.removeprefix("Try it: cutaway ")), "-n", 3, "--json")
    assert asked.code == 0 and asked.json["prompt"] == "<|user|>Hello.<|assistant|>"
