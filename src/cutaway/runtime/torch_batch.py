"""Texts read side by side by torch."""

from __future__ import annotations

import torch
from torch import Tensor

from cutaway.decoding.runtime import Scores, distinct
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.parts.cache import Cache


class TorchRuntime:
    """A model that torch runs. See `cutaway.decoding.runtime.Runtime`."""

    def __init__(self, model: GPT):
        self.model = model

    @property
    def config(self) -> Config:
        return self.model.config

    def open(self) -> TorchBatch:
        return TorchBatch(self)

    def read(self, ids: Tensor, cache: Cache) -> Tensor:
        """The new tokens [row, token] are read and cached; the scores after the last of each row. [row, vocabulary]"""
        return self.model.score(self.model.read(ids, cache)[:, -1])


class TorchBatch:
    """See `cutaway.decoding.runtime.Batch`. Rows of unequal length stand flush right in one cache."""

    def __init__(self, runtime: TorchRuntime):
        self.runtime, weight = runtime, runtime.model.token_embedding.weight
        self.device, self.dtype = weight.device, weight.dtype
        self.cache = Cache(runtime.config, batch=0, capacity=0)

    @torch.inference_mode()
    def add(self, windows: list[list[int]]) -> Scores:
        different, rows = distinct(windows)
        longest = max(map(len, different))
        ids = torch.tensor([[0] * (longest - len(window)) + window for window in different], device=self.device)
        padding = torch.tensor([longest - len(window) for window in different], device=self.device)
        cache = Cache(
            self.runtime.config, len(different), padding=padding if bool(padding.any()) else None,
            dtype=self.dtype, device=self.device,
        )  # fmt: skip
        logits = self.runtime.read(ids, cache)
        if len(different) < len(windows):
            picked = torch.tensor(rows, device=self.device)
            cache.select(picked)
            logits = logits[picked]
        if self.cache.batch:
            self.cache.join(cache)
        else:
            self.cache = cache
        return logits.float().cpu().numpy()

    @torch.inference_mode()
    def step(self, tokens: list[int]) -> Scores:
        last = torch.tensor([[token] for token in tokens], device=self.device)
        return self.runtime.read(last, self.cache).float().cpu().numpy()

    @torch.inference_mode()
    def keep(self, rows: list[int]) -> None:
        if rows:
            self.cache.select(torch.tensor(rows, device=self.device))
        else:
            self.cache = Cache(self.runtime.config, batch=0, capacity=0)
