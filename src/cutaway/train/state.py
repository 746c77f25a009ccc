"""Checkpoints to resume from: weights, optimiser, place in the data, step and recipe; in `training/` of the output.

    training/
      tokenizer/             the vocabulary, as it was when the training began
      step-00000400/         the last two checkpoints; each is written beside and moved into place when it is whole
      step-00000500/
        state.json           step, recipe, place in the data, best held-out loss so far
        tensors.safetensors  weights, and AdamW's two moments of each; several files if processes had parts of them
      best/                  the weights that were best on held-out data, where these are to be kept

Dropout throws its dice anew for each step, from the seed and the step, so there is no state of a generator to keep.
"""

from __future__ import annotations

import errno
import json
import re
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from cutaway.atomic import flush, written_beside
from cutaway.errors import CutawayError
from cutaway.train import distributed
from cutaway.train.distributed import Team

FILE, TENSORS = "state.json", "tensors.safetensors"
FOLDER = re.compile(r"step-(\d{8,})")
MOMENTS = ("exp_avg", "exp_avg_sq")
KEPT = 2
VERSION = 1


@dataclass(frozen=True)
class State:
    """Where a training is, apart from its tensors."""

    step: int
    tokens: int
    time: float
    """Seconds of training so far."""
    cursor: dict[str, Any]
    """The place in the data (see `Batches.state`)."""
    recipe: dict[str, Any]
    loss: float | None = None
    best: dict[str, Any] | None = None
    """The step and the loss of the weights that were best on held-out data, and how many measurements came since."""
    progress: float = 0.0
    """How much of the steps, or of the time for them, is gone: from 0 to 1 (see pace.py)."""
    made_with: dict[str, Any] = field(default_factory=lambda: {"torch": torch.__version__, "version": VERSION})


def weights(model: nn.Module) -> dict[str, Tensor]:
    """The weights of a model by name."""
    return {f"weights.{name}": parameter.detach() for name, parameter in model.named_parameters()}


def make_moments(optimizer: torch.optim.Optimizer, step: int = 0) -> None:
    """Give every parameter the moments it would get at the first step, to be filled; count from `step`."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            kept = optimizer.state[parameter]
            kept["step"] = torch.tensor(float(step), device=parameter.device if group.get("fused") else "cpu")
            for moment in MOMENTS[:1] if group.get("whole") else MOMENTS:
                kept.setdefault(moment, torch.zeros_like(parameter))


def moments(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's moments, by the names of their parameters: AdamW keeps two, Muon one."""
    state = dict(optimizer.state)  # which, unlike its like in the optimiser, makes nothing up
    learning = [(name, one) for name, one in model.named_parameters() if one.requires_grad]
    return {
        f"{moment}.{name}": state[one][moment].detach()
        for name, one in learning
        for moment in MOMENTS
        if moment in state[one]
    }


def latest(training: Path) -> Path | None:
    """The newest checkpoint in a training's folder."""
    found = checkpoints(training)
    return found[-1] if found else None


def checkpoints(training: Path) -> list[Path]:
    """All whole checkpoints in a training's folder, oldest first."""
    if not training.is_dir():
        return []
    found = [path for path in training.iterdir() if FOLDER.fullmatch(path.name) and (path / FILE).is_file()]
    return sorted(found, key=lambda path: int(path.name.removeprefix("step-")))


def save_checkpoint(training: Path, state: State, tensors: dict[str, Tensor], team: Team) -> Path:
    """Write a checkpoint; older ones than the one before it go."""
    folder = training / f"step-{state.step:08d}"
    if folder.is_dir():
        return folder
    write_checkpoint(folder, state, tensors, team)
    if team.first:
        for old in checkpoints(training)[:-KEPT]:
            remove_folder(old)
    return folder


def write_checkpoint(folder: Path, state: State, tensors: dict[str, Tensor], team: Team) -> None:
    """Write a state and its tensors into a folder, in place of what may be there: whole, or not at all."""
    beside = folder.with_name(f".{folder.name}.partial")
    try:
        if team.first:
            shutil.rmtree(beside, ignore_errors=True)
            beside.mkdir(parents=True)
        team.wait()
        if distributed.divided(tensors):
            distributed.write_parts(tensors, beside)
        elif team.first:
            save_file(tensors, beside / TENSORS)
        team.wait()
        if team.first:
            (beside / FILE).write_text(json.dumps(asdict(state), indent=1) + "\n", encoding="utf-8")
            for path in [*beside.iterdir(), beside]:
                if path.suffix == ".safetensors":
                    path.chmod((beside / FILE).stat().st_mode)  # the library lets nobody else read it
                flush(path)
            if folder.is_dir():
                remove_folder(folder)
            beside.rename(folder)
            flush(folder.parent)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(beside, ignore_errors=True)
        raise cannot_write(folder, error, size(tensors)) from error
    team.wait()


def read_state(folder: Path) -> State:
    """What stands in a checkpoint beside its tensors."""
    try:
        return State(**json.loads((folder / FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise damaged(folder, error) from None


def load_tensors(folder: Path, tensors: dict[str, Tensor]) -> None:
    """Fill these tensors with a checkpoint's, however many processes wrote it and however many read it."""
    try:
        if distributed.divided(tensors) or not (folder / TENSORS).is_file():
            distributed.read_parts(tensors, folder)
            return
        with safe_open(folder / TENSORS, framework="pt") as file:
            missing = tensors.keys() - set(file.keys())
            if missing:
                raise damaged(folder, f"it lacks {sorted(missing)[0]}")
            for name, tensor in tensors.items():
                tensor.copy_(file.get_tensor(name))
    except (OSError, SafetensorError, RuntimeError) as error:
        raise damaged(folder, error) from None


def restate(folder: Path, state: State) -> None:
    """Write down another state for the tensors of a checkpoint: the recipe it goes on by has changed."""
    try:
        with written_beside(folder / FILE) as beside:
            beside.write_text(json.dumps(asdict(state), indent=1) + "\n", encoding="utf-8")
            flush(beside)
    except OSError as error:
        raise cannot_write(folder / FILE, error) from error


def remove_folder(folder: Path) -> None:
    """Take a folder away; half removed it does not look like a checkpoint."""
    aside = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(aside, ignore_errors=True)
    folder.rename(aside)
    shutil.rmtree(aside, ignore_errors=True)


def size(tensors: dict[str, Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def require_room(output: Path, needed: int) -> None:
    """Refuse to begin what could not be saved."""
    free = shutil.disk_usage(output).free
    if free < needed:
        raise CutawayError(
            f"{output} has {free:,} bytes left, and this training needs about {needed:,} for its checkpoints "
            "and its model: free some space, or choose an output folder on another disk."
        )


def cannot_write(folder: Path, error: Exception, needed: int = 0) -> CutawayError:
    """A full disk, or whatever else it was."""
    full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error)
    before = latest(folder.parent)
    intact = f" The checkpoint of step {int(before.name[5:]):,} is intact: make room and resume." if before else ""
    if full:
        return CutawayError(f"The disk is full: {folder} needs about {needed:,} bytes.{intact}")
    return CutawayError(f"{folder} cannot be written: {getattr(error, 'strerror', None) or error}.{intact}")


def damaged(folder: Path, error: object) -> CutawayError:
    return CutawayError(
        f"The checkpoint {folder} cannot be read: {error}. Delete it to resume from the one before it, if there is one."
    )
