"""Checkpoints: whole or not there, the last two kept, no pickle."""

import json

import pytest
import torch
from safetensors.torch import load_file

from cutaway.errors import CutawayError
from cutaway.train import state
from cutaway.train.distributed import Team
from cutaway.train.metrics import Lines, read_lines
from cutaway.train.state import State

TEAM = Team(torch.device("cpu"))


def at(step):
    return State(step, step * 10, 1.5, {"position": step}, {"train": {"steps": 9}}, loss=2.0)


def tensors(value=1.0):
    return {"weights.a": torch.full((3, 2), value), "exp_avg.a": torch.full((3, 2), -value)}


def test_a_checkpoint_is_read_back_as_it_was(tmp_path):
    folder = state.save_checkpoint(tmp_path, at(3), tensors(), TEAM)
    assert state.read_state(folder) == at(3)
    found = tensors(0.0)
    state.load_tensors(folder, found)
    assert all(torch.equal(found[name], value) for name, value in tensors().items())
    assert sorted(path.name for path in folder.iterdir()) == ["state.json", "tensors.safetensors"]
    assert (folder / "tensors.safetensors").stat().st_mode == (folder / "state.json").stat().st_mode


def test_the_last_two_are_kept_and_the_newest_found_by_number(tmp_path):
    for step in (8, 9, 10, 100_000_000):
        state.save_checkpoint(tmp_path, at(step), tensors(), TEAM)
    assert [path.name for path in state.checkpoints(tmp_path)] == ["step-00000010", "step-100000000"]
    assert state.latest(tmp_path).name == "step-100000000"
    assert state.latest(tmp_path / "none") is None


def test_half_a_checkpoint_is_none(tmp_path, monkeypatch):
    state.save_checkpoint(tmp_path, at(1), tensors(), TEAM)

    def stop(path):
        raise KeyboardInterrupt

    monkeypatch.setattr(state, "flush", stop)
    with pytest.raises(KeyboardInterrupt):
        state.save_checkpoint(tmp_path, at(2), tensors(), TEAM)
    monkeypatch.undo()
    assert state.latest(tmp_path).name == "step-00000001"
    (tmp_path / "step-00000009").mkdir()  # made by somebody else
    assert state.latest(tmp_path).name == "step-00000001"
    state.save_checkpoint(tmp_path, at(2), tensors(5.0), TEAM)  # what was left lying about is in nobody's way
    assert load_file(tmp_path / "step-00000002" / "tensors.safetensors")["weights.a"][0, 0] == 5


def test_a_checkpoint_is_not_written_twice(tmp_path):
    state.save_checkpoint(tmp_path, at(1), tensors(1.0), TEAM)
    folder = state.save_checkpoint(tmp_path, at(1), tensors(2.0), TEAM)
    assert load_file(folder / "tensors.safetensors")["weights.a"][0, 0] == 1


@pytest.mark.parametrize("spoil", ["state.json", "tensors.safetensors", "missing"])
def test_a_damaged_checkpoint_is_named(tmp_path, spoil):
    folder = state.save_checkpoint(tmp_path, at(1), tensors(), TEAM)
    wanted = tensors()
    if spoil == "missing":
        wanted["weights.b"] = torch.zeros(1)
    else:
        (folder / spoil).write_text("{}" if spoil == "state.json" else "nonsense")
    with pytest.raises(CutawayError, match=r"step-00000001 cannot be read.*Delete it"):
        state.read_state(folder)
        state.load_tensors(folder, wanted)


def test_the_place_where_nothing_can_be_written_is_named(tmp_path):
    (tmp_path / "training").write_text("a file")
    with pytest.raises(CutawayError, match=r"training.* cannot be written"):
        state.save_checkpoint(tmp_path / "training", at(1), tensors(), TEAM)


def test_moments_are_there_before_the_first_step_and_count_from_where_they_were():
    model = torch.nn.Linear(2, 2)
    model.bias.requires_grad_(False)
    optimizer = torch.optim.AdamW([model.weight], fused=True)
    with pytest.raises(KeyError):
        state.moments(model, optimizer)
    state.make_moments(optimizer, step=4)
    found = state.moments(model, optimizer)
    assert found.keys() == {"exp_avg.weight", "exp_avg_sq.weight"}
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert optimizer.state[model.weight]["step"] == 5
    assert found["exp_avg.weight"].abs().max() > 0  # the same tensor, not a copy


def test_moments_made_beforehand_change_no_step():
    ways = []
    for made in (False, True):
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 3)
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        if made:
            state.make_moments(optimizer)
        for _ in range(3):
            model(torch.ones(1, 3)).square().sum().backward()
            optimizer.step()
        ways.append(model.weight.detach())
    assert torch.equal(*ways)


def test_lines_go_on_after_the_step_of_the_checkpoint_and_a_torn_one_is_forgotten(tmp_path):
    path = tmp_path / "metrics.jsonl"
    lines = Lines(path, 0)
    for step in range(1, 6):
        lines.add({"step": step, "loss": 1 / step})
    lines.close()
    with path.open("a") as file:
        file.write('{"step": 6, "lo')
    again = Lines(path, 3)
    again.add({"step": 4, "loss": 0.0})
    again.close()
    assert [line["step"] for line in read_lines(path)] == [1, 2, 3, 4]
    assert [json.loads(line) for line in path.read_text().splitlines()][-1] == {"step": 4, "loss": 0.0}


def test_a_full_disk_under_the_metrics_is_said_to_be_one(tmp_path):
    lines = Lines(tmp_path / "metrics.jsonl", 0)
    lines.file.close()
    lines.file = open("/dev/full", "w")  # noqa: PTH123, SIM115
    with pytest.raises(CutawayError, match="The disk is full"):
        lines.add({"step": 1})
