"""Small models with random weights, and engines on them."""

from __future__ import annotations

import pytest
import torch

from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config


@pytest.fixture(scope="session")
def make():
    """A function: the shape of a model -> such a model, its weights wild enough that tokens matter."""

    def model(seed: int = 0, **shape: object) -> GPT:
        torch.manual_seed(seed)
        generator = torch.Generator().manual_seed(seed)
        made = GPT(Config(**{"vocabulary": 203, "context": 80, "width": 48, "layers": 2, "heads": 4, **shape}))  # type: ignore[arg-type]
        with torch.no_grad():
            for name, parameter in made.named_parameters():
                spread = 0.1 if "norm" in name or name.endswith("bias") else 0.15
                parameter.add_(torch.empty(parameter.shape).normal_(std=spread, generator=generator))
        return made.eval()

    return model
