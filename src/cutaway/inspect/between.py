"""Where a model looked while it answered: the attention from the tokens that made the answer to those of the source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from cutaway.inspect.numbers import Line, Table, ViewResult, array
from cutaway.inspect.runs import Run


@dataclass(frozen=True)
class Between(ViewResult):
    """One layer's attention from some tokens to others."""

    layer: int
    head: int | None
    """None: the mean of all heads."""
    weights: Table
    """[from, to]"""
    rest: Line
    """What went to other tokens; with the weights it adds up to 1. [from]"""


@torch.no_grad()
def between(run: Run, rows: Sequence[int], columns: Sequence[int], layer: int, head: int | None = None) -> Between:
    """How much these tokens take from those, in one head of a layer or on average over its heads."""
    layer, head = run.layer(layer), None if head is None else run.head(head)
    weights = run[f"blocks.{layer}.attention.weights"].float()  # [head, query, key]
    table = weights.mean(dim=0) if head is None else weights[head]
    asked = table[[run.position(row) for row in rows]]
    taken = [run.position(column) for column in columns]
    return Between(layer, head, array(asked[:, taken]), array(asked.sum(-1) - asked[:, sorted(set(taken))].sum(-1)))
