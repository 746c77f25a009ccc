"""What changes the weights: AdamW or Muon, how fast (the schedule), and how far at most (clipping)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import torch
from torch import nn
from torch.distributed.tensor import DTensor

from cutaway.errors import CutawayError
from cutaway.train.muon import Muon
from cutaway.train.recipe import Train

FUSED = ("cpu", "cuda", "mps", "xpu")


def make_optimizer(model: nn.Module, settings: Train) -> torch.optim.AdamW:
    """The recipe's optimiser over the parameters that learn; only matrices are pulled towards zero."""
    learning = [(name, one) for name, one in model.named_parameters() if one.requires_grad]
    matrices = [(name, one) for name, one in learning if one.ndim >= 2]
    turned = settings.optimizer == "muon"
    whole = [one for name, one in matrices if turned and one.ndim == 2 and re.search(r"\bblocks\.", name)]
    if any(isinstance(one, DTensor) for one in whole):
        raise CutawayError(
            "Muon needs each matrix whole, and train.shard splits them between processes. Set train.shard = false, "
            'or train.optimizer = "adamw".'
        )
    taken = set(map(id, whole))
    groups = [
        {"params": [one for _, one in matrices if id(one) not in taken], "weight_decay": settings.weight_decay},
        {"params": [one for _, one in learning if one.ndim < 2], "weight_decay": 0.0},
    ]
    if whole:
        groups.append({"params": whole, "weight_decay": settings.weight_decay, "whole": True})
    fused = all(one.device.type in FUSED for _, one in learning)
    kind = Muon if settings.optimizer == "muon" else torch.optim.AdamW
    return kind(groups, lr=settings.learning_rate, betas=settings.betas, eps=settings.epsilon, fused=fused)


def learning_rate(step: int, settings: Train, expected: float | None = None) -> float:
    """The learning rate of one step, counted from 1: up over the warm-up, then down as the schedule says.

    `expected` is how many steps there will have been where the clock ends them. It changes from step to step, so
    nothing made from it is rounded: the rate would jump up and down.
    """
    steps = settings.steps if expected is None else expected
    warm_up, decay = share(settings.warm_up, steps), share(settings.decay, steps)
    if expected is None:
        warm_up, decay = round(warm_up), round(decay)
    if step <= warm_up:
        return settings.learning_rate * step / warm_up
    if settings.schedule == "constant":
        return settings.learning_rate
    if settings.schedule == "inverse_sqrt":
        return settings.learning_rate * math.sqrt(max(1.0, warm_up) / step)
    start = max(warm_up, steps - decay) if settings.schedule == "wsd" else warm_up
    gone = min(1.0, max(0.0, (step - start) / max(1, steps - start)))
    left = 0.5 * (1 + math.cos(math.pi * gone)) if settings.schedule == "cosine" else 1 - gone
    return settings.learning_rate * (settings.final + (1 - settings.final) * left)


def share(given: float, steps: float) -> float:
    """A number of steps, given as such or (below 1) as a share of them all."""
    return min(steps, given * steps if given < 1 else given)


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate


def clip(parameters: Iterable[nn.Parameter], limit: float) -> float:
    """The length of the whole gradient, shortened to `limit` if it is longer (0: never)."""
    grads = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm = torch.nn.utils.get_total_norm(grads, foreach=True)
    if hasattr(norm, "full_tensor"):  # of a gradient that is divided between processes
        norm = norm.full_tensor()
    length = norm.item()
    if limit and limit < length < math.inf:  # most gradients need nothing done, and are then not gone through again
        torch._foreach_mul_(grads, limit / length)
    return length
