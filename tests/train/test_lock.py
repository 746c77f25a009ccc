"""A folder holds one training at a time; whoever comes second is told who was first, and a dead one holds nothing."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading

import pytest

from cutaway.errors import CutawayError
from cutaway.train import lock, loop
from cutaway.train.events import Step
from cutaway.train.loop import train
from cutaway.train.recipe import Recipe

HOLDER = """
import sys, time
from pathlib import Path
from cutaway.train.lock import held
with held(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other(tmp_path):
    """Another process that holds the folder `model` until it is ended."""
    training = tmp_path / "model" / "training"
    training.mkdir(parents=True)
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(training)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "held\n"
    yield child
    child.kill()
    child.wait()


@pytest.mark.parametrize("resume", [False, True])
def test_a_second_training_in_a_folder_is_refused_and_told_who_holds_it(settings, tmp_path, other, resume):
    with pytest.raises(CutawayError, match=rf"process {other.pid} on {socket.gethostname()}, since \d+.*-c"):
        train(Recipe.from_dict(settings), tmp_path / "model", resume=resume)
    names = [path.name for path in (tmp_path / "model" / "training").iterdir()]
    assert names == ["lock"]  # and the first one's folder was left alone


def test_a_lock_left_by_a_dead_process_does_not_hold(settings, tmp_path, other):
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert (tmp_path / "model" / "training" / "lock").exists()
    assert train(Recipe.from_dict(settings), tmp_path / "model").reason == "done"
    assert not (tmp_path / "model" / "training" / "lock").exists()


def test_a_running_training_is_not_resumed_by_a_second(settings, tmp_path):
    """In the same process even: the first is held up in its third step while the second is asked for."""
    here, go_on = threading.Event(), threading.Event()

    def hold_up(event):
        if isinstance(event, Step) and event.step == 3:
            here.set()
            assert go_on.wait(100)

    first = threading.Thread(target=train, args=(Recipe.from_dict(settings), tmp_path / "model", False, hold_up))
    first.start()
    assert here.wait(100)
    try:
        with pytest.raises(CutawayError, match=rf"A training is running in .*process {os.getpid()} on"):
            train(None, tmp_path / "model", resume=True)
    finally:
        go_on.set()
        first.join()
    assert (tmp_path / "model" / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("holder", "holds"),
    [
        ({"process": os.getpid(), "host": socket.gethostname()}, True),
        ({"process": 2**22 + 1, "host": socket.gethostname()}, False),  # no process has such a number
        ({"process": 2**22 + 1, "host": "elsewhere"}, True),
        ({}, False),
    ],
)
def test_without_locks_of_the_system_what_the_file_says_decides(tmp_path, monkeypatch, holder, holds):
    monkeypatch.setattr(lock, "fcntl", None)
    (tmp_path / "lock").write_text(json.dumps(holder))
    with (tmp_path / "lock").open("a+") as file:
        assert lock.taken(file) is not holds


def test_on_the_command_line_it_is_exit_code_2(tmp_path, other, data):
    ran = subprocess.run(
        [sys.executable, "-m", "cutaway", "train", data / "text.txt", "-o", tmp_path / "model", "--steps", "2"],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert ran.returncode == 2
    assert f"process {other.pid} on" in " ".join(ran.stderr.split())


REFUSED = {
    "no data": lambda settings: settings["data"].update(paths=["nowhere.txt"]),
    "too long a context": lambda settings: settings["model"].update(context=100_000),
    "nothing to keep the best by": lambda settings: (
        settings["data"].update(held_out=0),
        settings["train"].update(keep="best"),
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_refused_training_leaves_no_folder(settings, tmp_path, why):
    REFUSED[why](settings)
    with pytest.raises(CutawayError):
        train(Recipe.from_dict(settings), tmp_path / "new" / "model")
    assert not (tmp_path / "new").exists()
    (tmp_path / "mine").mkdir()
    with pytest.raises(CutawayError):
        train(Recipe.from_dict(settings), tmp_path / "mine")
    assert not list((tmp_path / "mine").iterdir())  # and a folder that was there stays


def test_too_little_room_leaves_no_folder_and_a_later_failure_leaves_what_was_done(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(loop.state.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 1_000}))
    with pytest.raises(CutawayError, match="bytes left"):
        train(Recipe.from_dict(settings), tmp_path / "model")
    assert not (tmp_path / "model").exists()
    monkeypatch.undo()
    monkeypatch.setattr(loop, "clip", lambda parameters, limit: float("inf"))
    with pytest.raises(CutawayError, match="gradient"):
        train(Recipe.from_dict(settings), tmp_path / "model")
    assert (tmp_path / "model" / "recipe.toml").exists()


def test_nothing_to_resume_leaves_no_folder(tmp_path):
    with pytest.raises(CutawayError, match="nothing to resume"):
        train(None, tmp_path / "model", resume=True)
    assert not (tmp_path / "model").exists()
