"""Whether a model's weights are still those that something was made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn


def versions(model: nn.Module) -> object:
    """Changes whenever the weights do: a model that is trained on must not be run on weights packed before."""
    return [(id(parameter), 0 if parameter.is_inference() else parameter._version) for parameter in model.parameters()]
