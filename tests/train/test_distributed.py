"""Two processes are one: the same losses, the same checkpoints, and a worker that dies is replaced."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import cutaway
from cutaway.train import state
from cutaway.train.distributed import Team, team
from cutaway.train.loop import train
from cutaway.train.metrics import read_lines

pytestmark = pytest.mark.skipif(
    not (torch.distributed.is_available() and torch.distributed.is_gloo_available()), reason="this torch has no gloo"
)

CHILD = """
import json, os, signal, sys, torch
torch.set_num_threads(1)
from cutaway.train.events import Step
from cutaway.train.loop import train
from cutaway.train.recipe import Recipe
recipe, output, how, at = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
rank, restarts = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
steps = 0
def stop():  # asked once a step, in every process
    global steps
    steps += 1
    if how == "die" and rank == 1 and restarts == 0 and steps == at:
        os.kill(os.getpid(), signal.SIGKILL)
    return how == "stop" and steps == at and rank == 1
report = train(Recipe.from_dict(recipe) if recipe else None, output, resume=how == "resume", stop=stop)
if rank == 0:
    print(report.reason, report.step, restarts)
"""


@pytest.fixture
def plain(settings):
    """Without dropout, whose dice differ from process to process."""
    settings["model"]["dropout"] = 0.0
    return settings


@pytest.fixture
def torchrun(tmp_path):
    script = tmp_path / "child.py"
    script.write_text(CHILD)

    def run(recipe: dict | None, output: Path, how: str = "", at: int = 0, restarts: int = 0) -> list[str]:
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
        command += [f"--max-restarts={restarts}", str(script), json.dumps(recipe), str(output), how, str(at)]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        ended = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
        assert ended.returncode == 0, ended.stderr[-3000:]
        return ended.stdout.splitlines()[-1].split()  # in some versions of torch, Gloo prints before it

    return run


def losses(output: Path) -> list[float]:
    return [line["loss"] for line in read_lines(output / "metrics.jsonl")]


def held(output: Path) -> list[float]:
    return [line["held_loss"] for line in read_lines(output / "metrics.jsonl") if "held_loss" in line]


def sharded(settings: dict) -> dict:
    return settings | {"train": settings["train"] | {"shard": True}}


@pytest.mark.parametrize("shard", [False, True], ids=["DDP", "FSDP"])
def test_two_processes_give_the_losses_of_one(plain, tmp_path, uninterrupted, torchrun, shard):
    alone = uninterrupted(plain)
    output = tmp_path / "model"
    assert torchrun(sharded(plain) if shard else plain, output) == ["done", "12", "0"]
    assert losses(output) == pytest.approx(losses(alone), rel=1e-4)
    assert held(output) == pytest.approx(held(alone), rel=1e-4)
    lines, others = (read_lines(folder / "metrics.jsonl") for folder in (output, alone))
    assert [line["tokens"] for line in lines] == [line["tokens"] for line in others]
    assert [line["gradient_norm"] for line in lines] == pytest.approx(
        [line["gradient_norm"] for line in others], rel=1e-3
    )
    one, other = (cutaway.load(folder).model.state_dict() for folder in (output, alone))
    assert all(torch.allclose(one[name], other[name], atol=2e-4) for name in other)
    last = state.latest(output / "training")
    names = {path.name for path in last.iterdir()}
    assert all(name.endswith((".safetensors", ".json")) for name in names)  # no pickle
    parts = [load_file(path)["weights.token_embedding.weight"] for path in sorted(last.glob("*.safetensors"))]
    assert len(parts) == (2 if shard else 1)
    assert torch.equal(torch.cat(parts), one["token_embedding.weight"])
    found = {f"weights.{name}": torch.zeros_like(value) for name, value in one.items()}
    state.load_tensors(last, found)
    assert all(torch.equal(found[f"weights.{name}"], value) for name, value in one.items())


def test_a_checkpoint_of_two_goes_on_in_one_and_back_in_two(plain, tmp_path, uninterrupted, torchrun):
    output = tmp_path / "model"
    assert torchrun(sharded(plain), output, "stop", at=4) == ["stopped", "4", "0"]  # held-out data was measured, too
    seen = []
    report = train(None, output, resume=True, on_event=seen.append, stop=lambda: len(losses(output)) >= 6)
    assert (report.reason, report.step) == ("stopped", 7)
    assert (state.latest(output / "training") / state.TENSORS).is_file()  # now in one file
    assert torchrun(None, output, "resume") == ["done", "12", "0"]
    assert losses(output) == pytest.approx(losses(uninterrupted(plain)), rel=1e-4)


def test_a_killed_worker_restarts_and_goes_on_from_the_last_checkpoint(settings_for, tmp_path, uninterrupted, torchrun):
    settings = settings_for("translation")  # whose records, of unequal length, are shared as well
    settings["model"]["dropout"] = 0.0
    alone, output = uninterrupted(settings), tmp_path / "model"
    assert torchrun(settings, output, "die", at=8, restarts=1) == ["done", "12", "1"]
    assert [line["step"] for line in read_lines(output / "metrics.jsonl")] == list(range(1, 13))
    assert losses(output) == pytest.approx(losses(alone), rel=1e-4)
    assert held(output) == pytest.approx(held(alone), rel=1e-4)


def test_a_lost_peer_is_reported_as_that(plain, tmp_path):
    """Two processes without torchrun, which would end the one that is left, perhaps before it has said why."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "TORCHELASTIC_RUN_ID": "test"}
    environment |= {
        "TORCHELASTIC_RESTART_COUNT": "0",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
    }
    command = [sys.executable, "-c", CHILD, json.dumps(plain), str(tmp_path / "model"), "die", "8"]
    first, second = (
        subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env=environment | {"RANK": rank, "LOCAL_RANK": rank}
        )
        for rank in ("0", "1")
    )
    try:
        said = first.communicate(timeout=600)[1]
        second.communicate(timeout=600)
    finally:
        first.kill()
        second.kill()
    assert second.returncode == -signal.SIGKILL and first.returncode == 1
    assert "CutawayError: Process 0 of 2 cannot continue: another process of this training was lost" in said
    assert not (tmp_path / "model" / "training" / "lock").exists()


def test_alone_there_is_a_team_of_one():
    with team(torch.device("cpu")) as alone:
        assert alone == Team(torch.device("cpu"), rank=0, world=1)
        assert alone.first
        assert alone.sum(1.5, 2) == [1.5, 2]
        alone.wait()
