"""What changes the weights: AdamW or Muon, how fast (the schedule), and how far at most (clipping)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

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
    groups: list[dict[str, Any]] = [
        {"params": [one for _, one in matrices if id(one) not in taken], "weight_decay": settings.weight_decay},
        {"params": [one for _, one in learning if one.ndim < 2], "weight_decay": 0.0},
    ]
    if whole:
        groups.append({"params": whole, "weight_decay": settings.weight_decay, "whole": True})
    if settings.layer_factor != 1 or settings.unfreeze_every:
        groups = by_depth(groups, depths(model))
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
    if step <= warm_up and settings.schedule != "slanted":
        return settings.learning_rate * step / warm_up
    if settings.schedule == "constant":
        return settings.learning_rate
    if settings.schedule == "inverse_sqrt":
        return settings.learning_rate * math.sqrt(max(1.0, warm_up) / step)
    if settings.schedule == "slanted":
        return settings.learning_rate * (settings.final + (1 - settings.final) * slanted(step, warm_up, steps))
    start = max(warm_up, steps - decay) if settings.schedule == "wsd" else warm_up
    gone = min(1.0, max(0.0, (step - start) / max(1, steps - start)))
    left = 0.5 * (1 + math.cos(math.pi * gone)) if settings.schedule == "cosine" else 1 - gone
    return settings.learning_rate * (settings.final + (1 - settings.final) * left)


def share(given: float, steps: float) -> float:
    """A number of steps, given as such or (below 1) as a share of them all."""
    return min(steps, given * steps if given < 1 else given)


def slanted(step: int, cut: float, steps: float) -> float:
    """ULMFiT's triangle: 0 at the beginning, 1 after `cut` steps, 0 again after the last."""
    return step / cut if step < cut else 1 - min(1.0, (step - cut) / max(1.0, steps - cut))


def depths(model: nn.Module) -> dict[int, int]:
    """For each parameter (by its `id`) how many layers lie above it: 0 for what stands above the blocks, 1 for the last
    block, and so on down to what stands below the first. A stack on another, as of a decoder, is above it.
    """
    order = [(re.match(r"(?:.*\.)?blocks\.\d+(?=\.)", name), one) for name, one in model.named_parameters()]
    blocks = list(dict.fromkeys(found[0] for found, _ in order if found))
    if not blocks:
        raise CutawayError(
            "train.layer_factor and train.unfreeze_every go through the blocks of a model, and this one shows none: "
            "leave them out."
        )
    heights, below = dict[int, int](), 0
    last = max(at for at, (found, _) in enumerate(order) if found)
    for at, (found, one) in enumerate(order):
        below = blocks.index(found[0]) + 1 if found else below
        heights[id(one)] = below if at <= last else len(blocks) + 1
    return {one: len(blocks) + 1 - height for one, height in heights.items()}


def by_depth(groups: list[dict[str, Any]], depth: Mapping[int, int]) -> list[dict[str, Any]]:
    """The optimiser's groups, each divided by how deep its parameters lie."""
    divided = []
    for group in groups:
        for level in sorted({depth[id(one)] for one in group["params"]}):
            own = [one for one in group["params"] if depth[id(one)] == level]
            divided.append({**group, "params": own, "depth": level})
    return divided


def thawed(step: int, settings: Train, expected: float | None = None) -> float:
    """How deep the layers learn at a step, counted from 1."""
    if not settings.unfreeze_every:
        return math.inf
    each = share(settings.unfreeze_every, settings.steps if expected is None else expected)
    return (step - 1) // max(1, round(each))


def hold_frozen(optimizer: torch.optim.Optimizer, deepest: float) -> None:
    """Take the gradients from what does not learn yet: it must not count in their length, nor leave moments."""
    for group in optimizer.param_groups:
        if group.get("depth", 0) > deepest:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.grad.zero_()


def set_learning_rate(
    optimizer: torch.optim.Optimizer, rate: float, factor: float = 1.0, deepest: float = math.inf
) -> None:
    """The rate of every layer: `factor` for each that lies above it, 0 where it is still frozen."""
    for group in optimizer.param_groups:
        depth = group.get("depth", 0)
        group["lr"] = rate * factor**depth if depth <= deepest else 0.0


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
