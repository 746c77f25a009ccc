"""The model as it is before the first step: new, or the one to go on from; with the task's head, and with LoRA."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import torch
from torch import nn

from cutaway.checkpoint.locate import locate
from cutaway.models.architecture import architecture, tensors
from cutaway.tasks.head import read_base
from cutaway.text.tokenizer import Tokenizer
from cutaway.train import lora
from cutaway.train.distributed import Team
from cutaway.train.plan import new_shape
from cutaway.train.start import Setup
from cutaway.train.teacher import Teacher, start_as


def build_model(ready: Setup, team: Team, teacher: Teacher | None = None) -> nn.Module:
    """The model as it is before the first step, on its device."""
    recipe, task, vocabulary = ready.recipe, ready.task, len(ready.tokenizer)
    torch.manual_seed(recipe.train.seed)
    if recipe.model.from_:
        model = read_base(
            locate(recipe.model.from_),
            task,
            lambda body: with_vocabulary(body, vocabulary, recipe.model.dropout, ready.tokenizer),
        )
    else:
        known = {"end_token": ready.tokenizer.end, **task.shape_settings(ready.tokenizer)}
        shape = new_shape(recipe, task, vocabulary, dropout=recipe.model.dropout, **known)
        model = task.with_head(architecture(shape.kind).build(shape))
        if teacher is not None and recipe.teacher.start:
            start_as(model, teacher.model)
    if recipe.lora.rank:
        lora.adapt(model, recipe.lora.rank, recipe.lora.alpha)
    return model.to(team.device).train()


@torch.no_grad()
def with_vocabulary(model: Any, entries: int, dropout: float, tokenizer: Tokenizer | None = None) -> nn.Module:
    """The same model with at least so many entries, and this dropout. New entries begin near the mean of the old."""
    changes = {"vocabulary": max(entries, getattr(model.config, "vocabulary", 0)), "dropout": dropout}
    if tokenizer is not None and getattr(model.config, "end_token", 0) is None:  # its files do not say
        changes["end_token"] = tokenizer.end
    shape = replace(
        model.config, **{one.name: changes[one.name] for one in fields(model.config) if one.name in changes}
    )
    weights = model.state_dict()
    for spec in tensors(shape):
        old = weights[spec.name]
        if more := spec.ours[0] - len(old):
            new = old.mean(dim=0) + torch.empty(more, *old.shape[1:]).normal_(std=0.02)
            weights[spec.name] = torch.cat([old, new])
    with torch.device("meta"):
        other = architecture(shape.kind).build(shape)
    other.load_state_dict(weights, assign=True)
    return other.requires_grad_(True)
