"""LoRA: the model's matrices stay as they are, and a product of two thin ones is learned beside each.

    y = x W  +  (x A B) * alpha / rank          A: [width, rank], random;  B: [rank, width], zero at first

Afterwards `merge` adds A B into W, and what is left is a plain model.
"""

from __future__ import annotations

import math
from typing import TypeVar

import torch
from torch import Tensor, nn

from cutaway.errors import CutawayError
from cutaway.models.architecture import blocks, body

Layer = TypeVar("Layer", bound=nn.Module)


class Adapted(nn.Module):
    """A linear layer that no longer learns, with a low-rank addition that does."""

    def __init__(self, linear: nn.Linear, rank: int, alpha: float):
        super().__init__()
        if rank > min(linear.in_features, linear.out_features):
            shape = f"{linear.in_features:,} x {linear.out_features:,}"
            raise CutawayError(f"lora.rank is {rank}, more than a matrix of {shape} can have: choose a smaller one.")
        self.linear, self.scale = linear, alpha / rank
        self.down = nn.Parameter(linear.weight.new_empty(rank, linear.in_features))
        self.up = nn.Parameter(linear.weight.new_zeros(linear.out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    def forward(self, x: Tensor) -> Tensor:
        addition = nn.functional.linear(nn.functional.linear(x, self.down), self.up)
        return self.linear(x) + addition * self.scale

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        """The linear layer that gives the same."""
        self.linear.weight.add_((self.up @ self.down).to(self.linear.weight.dtype), alpha=self.scale)
        return self.linear


def adapt(model: nn.Module, rank: int, alpha: float = 0.0) -> None:
    """Freeze the model, and give every linear layer of its blocks an addition of this rank; a head goes on learning."""
    found = linears(model, nn.Linear)
    if not found:
        raise CutawayError(
            "LoRA adapts the linear layers of a model's blocks, and this model has none: leave out lora."
        )
    body(model).requires_grad_(False)
    for parent, name, layer in found:
        setattr(parent, name, Adapted(layer, rank, alpha or 2.0 * rank))


def merge(model: nn.Module) -> None:
    """Add what was learned into the weights; the model is a plain one again."""
    for parent, name, layer in linears(model, Adapted):
        setattr(parent, name, layer.merged())
    body(model).requires_grad_(True)


def linears(model: nn.Module, kind: type[Layer]) -> list[tuple[nn.Module, str, Layer]]:
    """The layers of a kind in the blocks, each with the module it belongs to and its name there."""
    return [
        (parent, name, layer)
        for block in blocks(model)
        for parent in block.children()
        for name, layer in parent.named_children()
        if isinstance(layer, kind)
    ]
