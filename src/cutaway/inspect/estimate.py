"""Attribution patching: a whole sweep estimated from one backward pass.

What a patch does is, to first order, the gradient of the metric at a piece of the base run times the difference that
the patch makes there (Nanda, 2023; Syed et al., 2023).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from cutaway.errors import CutawayError
from cutaway.inspect.metric import Metric

if TYPE_CHECKING:
    from cutaway.inspect.resume import Pair

PLACES = {
    "attention": "blocks.{}.attention.output",
    "mlp": "blocks.{}.mlp.output",
    "head": "blocks.{}.attention.merged",
    "neuron": "blocks.{}.mlp.activation",
    "attention pattern": "blocks.{}.attention.weights",
}


def place_of(what: str, layer: int) -> str:
    """The name of what is patched."""
    if what == "residual":
        return f"blocks.{layer - 1}.residual" if layer else "residual.0"
    return PLACES[what].format(layer)


def estimate(pair: Pair, metric: Metric, ids: list[int]) -> Tensor:
    """By how much each cell would move the metric, to first order. [layer, token or unit]"""
    names = [place_of(pair.what, layer) for layer in range(pair.layers)]
    gradients = at_places(pair, metric, ids, names)
    found = []
    for name, gradient in zip(names, gradients, strict=True):
        part = gradient * (pair.source[name] - pair.base[name])
        if pair.what == "head":
            part = part.unflatten(-1, (pair.lm.config.heads, -1)).sum((0, 2))
        elif pair.what == "neuron":
            part = part.sum(0)
        else:  # [token, width], or a pattern [head, query, key]
            part = part.flatten(1).sum(1)
        found.append(part.float())
    return torch.stack(found)


def at_places(pair: Pair, metric: Metric, ids: list[int], names: list[str]) -> list[Tensor]:
    """The gradient of the metric at these values of the base run, which is made once more for it."""
    with torch.inference_mode(False), torch.enable_grad():
        trace = pair.lm.trace(ids, keep=[*names, "final_norm"], gradient=True)
        at = slice(None) if metric.position is None else metric.position
        value = metric.of(pair.lm.model.score(trace["final_norm"][at]).float())
        if not isinstance(value, Tensor) or value.numel() != 1 or not value.requires_grad:
            raise CutawayError(
                f"An estimate needs the gradient of the metric, and {type(metric).__name__} has none: it must be "
                "computed from the logits by torch, and be one number. Choose another, or run every cell."
            )
        gradients = torch.autograd.grad(value.sum(), [trace[name] for name in names], allow_unused=True)
    pairs = zip(names, gradients, strict=True)
    return [torch.zeros_like(trace[name]) if one is None else one for name, one in pairs]
