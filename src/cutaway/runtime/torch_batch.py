"""Texts read side by side by torch."""

from __future__ import annotations

import torch

from cutaway.decoding.batch import distinct
from cutaway.models.gpt2.model import GPT
from cutaway.parts.cache import Cache
from cutaway.runtime.native.engine import Scores


class TorchBatch:
    """See `cutaway.decoding.batch.Batch`. Rows of unequal length stand flush right in one cache."""

    def __init__(self, model: GPT):
        self.model = model
        self.device, self.dtype = model.token_embedding.weight.device, model.token_embedding.weight.dtype
        self.cache = Cache(model.config, batch=0, capacity=0)

    @torch.inference_mode()
    def begin(self, windows: list[list[int]]) -> Scores:
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
        return logits.float().cpu().numpy()

    @torch.inference_mode()
    def step(self, tokens: list[int]) -> Scores:
        last = torch.tensor([[token] for token in tokens], device=self.device)
        return self.model.score(self.model.read(last, self.cache)[:, -1]).float().cpu().numpy()

    @torch.inference_mode()
    def keep(self, rows: list[int]) -> None:
        self.cache.select(torch.tensor(rows, device=self.device))
