"""The end of a training: the model's folder, with its task, its loss curve and how it went."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from cutaway import checkpoint
from cutaway.atomic import write_text
from cutaway.checkpoint import adapter
from cutaway.checkpoint.locate import locate
from cutaway.models.architecture import architecture, body
from cutaway.tasks import Task, save_task
from cutaway.text.tokenizer import Tokenizer
from cutaway.train import lora, state
from cutaway.train.distributed import Team, whole
from cutaway.train.events import Report
from cutaway.train.metrics import read_lines
from cutaway.train.picture import loss_picture
from cutaway.train.plan import new_shape
from cutaway.train.recipe import Recipe
from cutaway.train.start import Setup

ADAPTER = "adapter"
"""The folder, in a model's, of what LoRA added to its base."""


def write_result(ready: Setup, model: nn.Module, report: Report, team: Team) -> None:
    """Write the model, whole and plain however it was trained, and what belongs to it. All processes come here."""
    weights = {name: whole(parameter.detach()) for name, parameter in model.named_parameters()}
    if team.first:
        plain = plain_model(ready, model, weights)
        folder = report.folder
        ready.task.save(plain, ready.tokenizer, folder)
        if ready.recipe.lora.rank and ready.recipe.model.from_ and body(plain) is plain:
            write_adapter(ready, weights, folder / ADAPTER)
        title = f"Loss: {folder.resolve().name}, {report.step:,} steps"
        try:
            write_text(folder / "loss.svg", loss_picture(read_lines(folder / "metrics.jsonl"), title))
            write_text(folder / "report.json", json.dumps(asdict(report), indent=1, default=str) + "\n")
        except OSError as error:
            raise state.cannot_write(folder / "loss.svg", error) from error
        if report.reason != "stopped":
            for old in state.checkpoints(folder / "training")[:-1]:
                state.remove_folder(old)
    team.wait()


def write_adapter(ready: Setup, weights: Mapping[str, Tensor], folder: Path) -> None:
    """What LoRA learned, as files of their own beside the merged model."""
    down, up = (
        {name.removesuffix(side): one.cpu() for name, one in weights.items() if name.endswith(side)}
        for side in (".down", ".up")
    )
    adapted, base = ready.recipe.lora, checkpoint.read_config(locate(ready.recipe.model.from_))
    embedding = weights["token_embedding.weight"].cpu()
    made = adapter.Adapter(
        additions={name: (down[name], up[name]) for name in down},
        rank=adapted.rank,
        alpha=adapted.alpha or 2.0 * adapted.rank,
        base=adapter.base_name(ready.recipe.model.from_),
        embedding=embedding if len(embedding) > base.vocabulary else None,
    )
    adapter.write_adapter(made, base, ready.tokenizer, folder)
    save_task(ready.task, folder)


def plain_model(ready: Setup, model: nn.Module, weights: Mapping[str, Tensor]) -> nn.Module:
    """These weights as a model of its own: no low-rank additions, nothing divided, nothing compiled."""
    shape = body(model).config
    with torch.device("meta"):
        plain = ready.task.with_head(architecture(shape.kind).build(shape))
        if ready.recipe.lora.rank:
            lora.adapt(plain, ready.recipe.lora.rank, ready.recipe.lora.alpha)
    plain.load_state_dict({name: weight.cpu() for name, weight in weights.items()}, assign=True)
    if ready.recipe.lora.rank:
        lora.merge(plain)
    return plain.eval()


def saved_model(recipe: Recipe, task: Task, tokenizer: Tokenizer, saved: Path, folder: Path) -> None:
    """The weights of a checkpoint, written as a model of its own."""
    shape = checkpoint.read_config(locate(recipe.model.from_)) if recipe.model.from_ else None
    if shape is None:
        known = {"end_token": tokenizer.end, **task.shape_settings(tokenizer)}
        shape = new_shape(recipe, task, len(tokenizer), dropout=recipe.model.dropout, **known)
    elif hasattr(shape, "vocabulary"):
        shape = replace(shape, vocabulary=max(shape.vocabulary, len(tokenizer)))
    model = task.with_head(architecture(shape.kind).build(shape))
    if recipe.lora.rank:
        lora.adapt(model, recipe.lora.rank, recipe.lora.alpha)
    state.load_tensors(saved, state.weights(model))
    if recipe.lora.rank:
        lora.merge(model)
    task.save(model.eval(), tokenizer, folder)
