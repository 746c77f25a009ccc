"""Linear layers whose matrix lies as the processor's kernels want it, so that it is not put in order for every product.

torch's compiler uses the same two operations of oneDNN; where they are missing, or on another device, nothing changes.
"""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

Model = TypeVar("Model", bound=nn.Module)
ROWS = 512
"""How many rows are multiplied at a time, about: the order depends on it a little."""


class PackedLinear(nn.Module):
    """`nn.Linear` for reading only."""

    def __init__(self, layer: nn.Linear):
        super().__init__()
        self.matrix: Tensor = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach(), ROWS)
        self.shift = None if layer.bias is None else layer.bias.detach()

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.matrix, self.shift, "none", [], "")
        return found


def packed(model: Model) -> Model:
    """A copy of the model for reading, its blocks' linear layers packed; the model itself, where that cannot be."""
    weight = next(model.parameters())
    known = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    if not known or weight.device.type != "cpu" or weight.dtype != torch.float32:
        return model
    with torch.no_grad():
        # Everything else is shared with the model: only the modules themselves are new.
        kept: dict[int, Any] = {id(one): one for one in (*model.parameters(), *model.buffers())}
        made = copy.deepcopy(model, kept)
        for block in getattr(made, "blocks", ()):
            for module in list(block.modules()):
                for name, layer in list(module.named_children()):
                    if isinstance(layer, nn.Linear):
                        setattr(module, name, PackedLinear(layer))
    return made.eval()
