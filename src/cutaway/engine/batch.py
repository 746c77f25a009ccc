"""Texts read side by side by the engine: each has its own memory, so that rows come, go and fork without copies."""

from __future__ import annotations

import torch
from torch import Tensor

from cutaway.engine.native import Engine, Text
from cutaway.reading import distinct


class NativeBatch:
    """See `cutaway.reading.Batch`."""

    def __init__(self, engine: Engine):
        self.engine = engine
        self.texts: list[Text] = []

    def begin(self, windows: list[list[int]], room: int | None = None) -> Tensor:  # its memory grows by itself
        different, rows = distinct(windows)
        self.texts = [self.engine.text() for _ in different]
        scores = torch.from_numpy(self.engine.read(self.texts, different))
        if len(different) == len(windows):
            return scores
        self.keep(rows)
        return scores[rows]

    def step(self, tokens: list[int]) -> Tensor:
        return torch.from_numpy(self.engine.read(self.texts, [[token] for token in tokens]))

    def keep(self, rows: list[int]) -> None:
        first = {row: number for number, row in reversed(list(enumerate(rows)))}  # who goes on with the text itself
        self.texts = [
            self.texts[row] if first[row] == number else self.texts[row].fork() for number, row in enumerate(rows)
        ]
