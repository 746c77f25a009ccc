"""What rounding the weights cost: the loss on a text, and how far the scores moved."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from cutaway.decoding.generate import generate
from cutaway.decoding.settings import Settings
from cutaway.models.gpt2.model import GPT
from cutaway.runtime.native.engine import Engine
from cutaway.runtime.torch_batch import TorchRuntime
from cutaway.text.tokenizer import Tokenizer

WINDOW = 256
"""Tokens that are read together; each but the first is predicted."""


@dataclass(frozen=True)
class Cost:
    """The packed weights beside the float32 model, over the same tokens."""

    text: str
    """Which text: the user's, or one the model wrote itself (then the loss goes up by the divergence of the two)."""
    tokens: int
    loss_float32: float
    loss: float
    """In nats a token."""
    largest_difference: float
    mean_difference: float
    """Of the logits."""

    @property
    def loss_added(self) -> float:
        return self.loss - self.loss_float32


@torch.inference_mode()
def measure(model: GPT, engine: Engine, windows: list[list[int]], text: str) -> Cost:
    """Read every window with both, and compare."""
    totals, largest, summed, tokens, numbers = [0.0, 0.0], 0.0, 0.0, 0, 0
    for ids in windows:
        reference = model(torch.tensor([ids]))[0].float()  # [token, vocabulary]
        ours = torch.from_numpy(engine.read([engine.text()], [ids], len(ids)))
        targets = torch.tensor(ids[1:])
        for number, scores in enumerate((reference, ours)):
            totals[number] += float(torch.nn.functional.cross_entropy(scores[:-1], targets, reduction="sum"))
        apart = (reference - ours).abs()
        largest, summed = max(largest, float(apart.max())), summed + float(apart.sum(dtype=torch.float64))
        tokens, numbers = tokens + len(ids) - 1, numbers + apart.numel()
    return Cost(text, tokens, totals[0] / tokens, totals[1] / tokens, largest, summed / numbers)


def windows_of(model: GPT, tokenizer: Tokenizer, text: str | None, most: int = 8) -> list[list[int]]:
    """Up to `most` windows spread over a text, each after the end token; without a text, ones that the model writes."""
    length, end = min(WINDOW, model.config.context), model.config.end
    if text is None:
        settings = Settings(max_tokens=length - 1, seed=0, samples=most, top_k=None)
        written = generate(TorchRuntime(model), tokenizer, [[]], settings)
        return [window for each in written if len(window := [end, *each.ids]) > 1]
    ids = tokenizer.encode(text)
    starts = np.linspace(0, max(0, len(ids) - length + 1), most if len(ids) > most * length else 1).astype(int)
    return [window for start in starts.tolist() if len(window := [end, *ids[start : start + length - 1]]) > 1]
