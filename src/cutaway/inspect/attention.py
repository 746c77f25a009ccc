"""What a head looks at: every step from queries and keys to its output, and all heads at a glance."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from cutaway.errors import CutawayError, nearest
from cutaway.inspect.numbers import Array, array, rounded
from cutaway.inspect.runs import Run
from cutaway.inspect.values import hidden_as_nan

PARTS = ("queries", "keys", "values", "scores", "masked", "weights", "output", "merged", "projected")


@dataclass(frozen=True)
class Attention:
    """One head of one layer: all its queries, or one of them with the keys it may look at."""

    layer: int
    head: int
    position: int | None
    scale: float
    """What the products of query and key are multiplied by: one over the square root of the head's width."""
    queries: Array
    """[query, head width]"""
    keys: Array
    """[key, head width]"""
    values: Array
    """[key, head width]"""
    scores: Array
    """[query, key], before the mask."""
    masked: Array
    """[query, key], the future at the lowest number there is."""
    weights: Array
    """[query, key]; a row sums to 1."""
    output: Array
    """This head's weighted sum of values. [query, head width]"""
    merged: Array
    """The outputs of all heads of the layer, side by side. [query, width]"""
    projected: Array
    """What the layer's attention adds to the residual stream. [query, width]"""

    def to_dict(self, parts: Iterable[str] = PARTS) -> dict[str, Any]:
        """As JSON; `parts` chooses, for a long text's tables are large."""
        chosen = list(parts)
        for part in chosen:
            if part not in PARTS:
                raise CutawayError(f"Attention has no part {part!r}.{nearest(part, PARTS)}")
        found = {"layer": self.layer, "head": self.head, "position": self.position, "scale": rounded(self.scale)}
        for part in chosen:
            value = getattr(self, part)
            found[part] = rounded(hidden_as_nan(value) if part == "masked" else value)
        return found


def attention(run: Run, layer: int, head: int, position: int | None = None) -> Attention:
    """Every step of one head, for all queries; or for one, with the keys up to it."""
    layer, head = run.layer(layer), run.head(head)
    position = None if position is None else run.position(position)
    rows = slice(None) if position is None else slice(position, position + 1)
    seen = slice(None) if position is None else slice(position + 1)
    at = f"blocks.{layer}.attention"

    def part(name: str, *where: slice) -> Array:
        return array(run[f"{at}.{name}"][head][where])

    return Attention(
        layer,
        head,
        position,
        run.block(layer).attention.scale,
        queries=part("queries", rows),
        keys=part("keys", seen),
        values=part("values", seen),
        scores=part("scores", rows, seen),
        masked=part("masked", rows, seen),
        weights=part("weights", rows, seen),
        output=part("heads", rows),
        merged=array(run[f"{at}.merged"][rows]),
        projected=array(run[f"{at}.output"][rows]),
    )


@dataclass(frozen=True)
class Heads:
    """All heads at a glance. Each measure is the mean over the queries that can have it. [layer, head]"""

    layers: tuple[int, ...]
    entropy: Array
    """How spread the attention is, in bits: 0 is one token only."""
    distance: Array
    """How far back it looks, in tokens."""
    previous: Array | None
    """The weight on the token just before; None if the text is one token."""
    first: Array | None
    """The weight on the first token, where many heads rest; measured from the second token on, None without one."""
    itself: Array
    """The weight on the token itself; measured from the second token on, and in a text of one token on that."""
    induction: Array | None
    """The weight on what followed the last time this token stood in the text; None if no token occurs twice."""
    induction_queries: int = 0
    """How many tokens `induction` is the mean over: of one or two it says little (see `roles`)."""
    pictures: tuple[tuple[bytes, ...], ...] = ()
    """Small pictures of the weights, a byte for a cell, row by row; a row's strongest is 255."""
    size: int = 0
    """How many cells wide and high a picture is."""

    def to_dict(self) -> dict[str, Any]:
        measures = ("entropy", "distance", "previous", "first", "itself", "induction")
        pixels = [[base64.b64encode(picture).decode() for picture in row] for row in self.pictures]
        return {
            "layers": list(self.layers),
            **{name: rounded(getattr(self, name)) for name in measures},
            "induction_queries": self.induction_queries,
            "picture": {"size": self.size, "pixels": pixels} if self.pictures else None,
        }


@torch.no_grad()
def heads(run: Run, layers: Sequence[int] | None = None, picture: int = 0) -> Heads:
    """What kind of looking each head of these layers (of all) does; with small pictures of so many cells, if asked."""
    chosen = run.layers(layers)
    tokens = len(run)
    steps_back = torch.arange(tokens)[:, None] - torch.arange(tokens)  # [query, key]
    after_same = follow_same(run.ids)
    measures: dict[str, list[Tensor]] = {name: [] for name in ("entropy", "distance", "previous", "first", "itself")}
    induction, pictures = list[Tensor](), list[tuple[bytes, ...]]()
    for layer in chosen:
        weights = run[f"blocks.{layer}.attention.weights"].float().cpu()  # [head, query, key]
        measures["entropy"].append(torch.special.entr(weights).sum(-1).mean(-1) / np.log(2))
        measures["distance"].append((weights * steps_back.clamp(min=0)).sum(-1).mean(-1))
        measures["previous"].append(weights.diagonal(-1, 1, 2).mean(-1))
        measures["first"].append(weights[:, 1:, 0].mean(-1))
        measures["itself"].append(weights.diagonal(0, 1, 2)[:, min(1, tokens - 1) :].mean(-1))
        if after_same:
            queries, keys = zip(*after_same, strict=True)
            induction.append(weights[:, list(queries), list(keys)].mean(-1))
        if picture:
            pictures.append(draw(weights, picture))
    tables = {name: array(torch.stack(found)) for name, found in measures.items()}
    return Heads(
        tuple(chosen),
        entropy=tables["entropy"],
        distance=tables["distance"],
        previous=tables["previous"] if tokens > 1 else None,
        first=tables["first"] if tokens > 1 else None,
        itself=tables["itself"],
        induction=array(torch.stack(induction)) if induction else None,
        induction_queries=len(after_same),
        pictures=tuple(pictures),
        size=min(picture, tokens) if picture else 0,
    )


@torch.no_grad()
def looking(run: Run, position: int, key: int) -> tuple[int, int, float]:
    """The head that looks most from one token to another: its layer, its number, and the weight."""
    position, key = run.position(position), run.position(key)
    weights = torch.stack(
        [run[f"blocks.{layer}.attention.weights"][:, position, key].float() for layer in range(run.lm.config.layers)]
    )  # [layer, head]
    layer, head = divmod(int(weights.argmax()), weights.shape[1])
    return layer, head, float(weights[layer, head])


def follow_same(ids: Sequence[int]) -> list[tuple[int, int]]:
    """For each token that stood in the text before: its position, and that of what followed it the last time."""
    last, found = dict[int, int](), []
    for position, id in enumerate(ids):  # noqa: A001
        if id in last and last[id] + 1 < position:
            found.append((position, last[id] + 1))
        last[id] = position
    return found


def draw(weights: Tensor, size: int) -> tuple[bytes, ...]:
    """Each head's weights [head, query, key] as a picture: the strongest of each cell, the strongest of a row at 255.

    The first token can look at itself only: beside that 1 the rows of a long text would be blank.
    """
    rows = weights / weights.amax(dim=-1, keepdim=True)
    small = F.adaptive_max_pool2d(rows, min(size, rows.shape[-1])) if rows.shape[-1] > size else rows
    levels = (small * 255).round().to(torch.uint8)
    return tuple(level.numpy().tobytes() for level in levels)
