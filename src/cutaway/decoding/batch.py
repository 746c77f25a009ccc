"""Texts read side by side: what generation asks of a model. torch_batch.py and engine/batch.py answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from cutaway.runtime.native.engine import Engine, Scores

if TYPE_CHECKING:
    from cutaway.models.gpt2.model import GPT

Machine: TypeAlias = "GPT | Engine"
"""What runs a model: torch, or the native engine."""


class Batch(Protocol):
    """Some texts, a row each. What a row's scores are does not depend on the others."""

    def begin(self, windows: list[list[int]]) -> Scores:
        """Read these texts from the start, and forget all others; the scores for what comes next. [row, vocabulary]"""
        ...

    def step(self, tokens: list[int]) -> Scores:
        """Every row reads one token more; the scores for what comes next. [row, vocabulary]"""
        ...

    def keep(self, rows: list[int]) -> None:
        """Go on with these rows, in this order; a row may be named twice (a beam that forks)."""
        ...


def open_batch(model: Machine) -> Batch:
    """An empty batch, read by whatever runs the model."""
    if isinstance(model, Engine):
        from cutaway.runtime.native.batch import NativeBatch

        return NativeBatch(model)
    from cutaway.runtime.torch_batch import TorchBatch

    return TorchBatch(model)  # a GPT, or what behaves like one


def distinct(windows: list[list[int]]) -> tuple[list[list[int]], list[int]]:
    """The texts without those that are there twice, and which of them each was: samples of one prompt are read once."""
    rows = {window: row for row, window in enumerate(dict.fromkeys(map(tuple, windows)))}
    return [list(window) for window in rows], [rows[tuple(window)] for window in windows]
