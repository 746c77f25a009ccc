"""Texts read side by side: what generation asks of a model, and how torch answers. engine/batch.py answers natively."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from cutaway.cache import Cache
from cutaway.engine.native import Engine
from cutaway.model import GPT

Machine = GPT | Engine
"""What runs a model: torch, or the native engine."""


class Batch(Protocol):
    """Some texts, a row each. What a row's scores are does not depend on the others."""

    def begin(self, windows: list[list[int]]) -> Tensor:
        """Read these texts from the start, and forget all others; the scores for what comes next. [row, vocabulary]"""
        ...

    def step(self, tokens: list[int]) -> Tensor:
        """Every row reads one token more; the scores for what comes next. [row, vocabulary]"""
        ...

    def keep(self, rows: list[int]) -> None:
        """Go on with these rows, in this order; a row may be named twice (a beam that forks)."""
        ...


def open_batch(model: Machine) -> Batch:
    """An empty batch, read by whatever runs the model."""
    if isinstance(model, Engine):
        from cutaway.engine.batch import NativeBatch

        return NativeBatch(model)
    return TorchBatch(model)  # a GPT, or what behaves like one


def distinct(windows: list[list[int]]) -> tuple[list[list[int]], list[int]]:
    """The texts without those that are there twice, and which of them each was: samples of one prompt are read once."""
    rows = {window: row for row, window in enumerate(dict.fromkeys(map(tuple, windows)))}
    return [list(window) for window in rows], [rows[tuple(window)] for window in windows]


class TorchBatch:
    """Rows of unequal length stand flush right in one cache."""

    def __init__(self, model: GPT):
        self.model = model
        self.device, self.dtype = model.token_embedding.weight.device, model.token_embedding.weight.dtype
        self.cache = Cache(model.config, batch=0, capacity=0)

    def begin(self, windows: list[list[int]]) -> Tensor:
        different, rows = distinct(windows)
        longest = max(map(len, different))
        ids = torch.tensor([[0] * (longest - len(window)) + window for window in different], device=self.device)
        padding = torch.tensor([longest - len(window) for window in different], device=self.device)
        self.cache = Cache(
            self.model.config, len(different), padding=padding if bool(padding.any()) else None,
            dtype=self.dtype, device=self.device,
        )  # fmt: skip
        logits = self.model.score(self.model.read(ids, self.cache)[:, -1])
        if len(different) < len(windows):
            self.keep(rows)
            logits = logits[torch.tensor(rows, device=self.device)]
        return logits

    def step(self, tokens: list[int]) -> Tensor:
        last = torch.tensor([[token] for token in tokens], device=self.device)
        return self.model.score(self.model.read(last, self.cache)[:, -1])

    def keep(self, rows: list[int]) -> None:
        self.cache.select(torch.tensor(rows, device=self.device))
