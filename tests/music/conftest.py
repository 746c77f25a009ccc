"""Small pianists with random weights, and performances to play with."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import cutaway
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.music import Performance
from cutaway.music.vocabulary import event_tokenizer


def make_pianist(seed: int = 0, spread: float = 0.6, **shape: object) -> cutaway.LanguageModel:
    """Weights wild enough that it has opinions of its own, few of them any music."""
    torch.manual_seed(seed)
    usual = {"vocabulary": 389, "context": 96, "width": 24, "layers": 2, "heads": 2, "positions": "relative"}
    model = GPT(Config(**{**usual, **shape}))  # type: ignore[arg-type]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * spread)
    return cutaway.LanguageModel(model, event_tokenizer(), "a random pianist", weights="float32")


@pytest.fixture(scope="session")
def pianist() -> cutaway.LanguageModel:
    return make_pianist()


@pytest.fixture
def scale() -> Performance:
    starts = np.arange(8) * 0.5
    return Performance.of(starts, starts + 0.45, [60, 62, 64, 65, 67, 69, 71, 72], [70] * 8)
