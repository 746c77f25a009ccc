"""What a head looks at: every step from queries and keys to its output, and all heads at a glance."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from cutaway.errors import CutawayError, nearest
from cutaway.inspect.numbers import Array, Axes, Table, ViewResult, array, rounded
from cutaway.inspect.runs import Run
from cutaway.inspect.values import hidden_as_nan
from cutaway.models.architecture import places

PARTS = ("queries", "keys", "values", "scores", "masked", "weights", "output", "merged", "projected")


@dataclass(frozen=True)
class Attention(ViewResult):
    """One head of one layer: all its queries, or one of them with the keys it may look at."""

    layer: int
    head: int
    position: int | None
    scale: float
    """What the products of query and key are multiplied by: one over the square root of the head's width."""
    queries: Table
    """[query, head width]"""
    keys: Table
    """[key, head width]"""
    values: Table
    """[key, head width]"""
    scores: Table
    """[query, key], before the mask."""
    masked: Table
    """[query, key], the future at the lowest number there is."""
    weights: Table
    """[query, key]; a row sums to 1."""
    output: Table
    """This head's weighted sum of values. [query, head width]"""
    merged: Table
    """The outputs of all heads of the layer, side by side. [query, width]"""
    projected: Table
    """What the layer's attention adds to the residual stream. [query, width]"""
    attended: int | None = None
    """The token attended to, where the key and the value of that one only are given."""
    parts: tuple[str, ...] = PARTS
    """What is told as JSON: a long text's tables are large."""
    told = ("masked=allowed",)
    hidden = ("parts",)
    optional = ("attended", *PARTS)

    @property
    def allowed(self) -> Annotated[Array, Axes(2, holes=True)]:
        return hidden_as_nan(self.masked)

    def to_dict(self, parts: Iterable[str] | None = None) -> dict[str, Any]:
        """As JSON, with these parts."""
        chosen = list(self.parts if parts is None else parts)
        for part in chosen:
            if part not in PARTS:
                raise CutawayError(f"Attention has no part {part!r}.{nearest(part, PARTS)}")
        found = {"layer": self.layer, "head": self.head, "position": self.position, "scale": rounded(self.scale)}
        found |= {} if self.attended is None else {"attended": self.attended}
        return found | {part: rounded(self.allowed if part == "masked" else getattr(self, part)) for part in chosen}


def attention(
    run: Run,
    layer: int,
    head: int,
    position: int | None = None,
    attended: int | None = None,
    parts: Sequence[str] = PARTS,
) -> Attention:
    """Every step of one head, for all queries; or for one, with the keys up to it.

    The scores and weights are always those of all keys; the vectors are those of one, where it is named (`attended`).
    """
    layer, head = run.layer(layer), run.head(head)
    position = None if position is None else run.position(position)
    attended = None if attended is None else run.position(attended)
    rows = slice(None) if position is None else slice(position, position + 1)
    seen = slice(None) if position is None else slice(position + 1)
    given = seen if attended is None else slice(attended, attended + 1)
    at = f"blocks.{layer}.attention"

    def part(name: str, *where: slice) -> Array:
        return array(run[f"{at}.{name}"][head][where])

    return Attention(
        layer,
        head,
        position,
        run.block(layer).attention.scale,
        queries=part("queries", rows),
        keys=part("keys", given),
        values=part("values", given),
        scores=part("placed" if f"{at}.placed" in places(run.lm.config) else "scores", rows, seen),
        masked=part("masked", rows, seen),
        weights=part("weights", rows, seen),
        output=part("heads", rows),
        merged=array(run[f"{at}.merged"][rows]),
        projected=array(run[f"{at}.output"][rows]),
        attended=attended,
        parts=tuple(parts),
    )


@dataclass(frozen=True)
class Pictures(ViewResult):
    """Small pictures of the weights of heads."""

    size: int
    """How many cells wide and high each is."""
    pixels: tuple[tuple[str, ...], ...]
    """A byte for a cell, row by row, in base64. [layer][head]"""


@dataclass(frozen=True)
class Heads(ViewResult):
    """All heads at a glance. Each measure is the mean over the queries that can have it. [layer, head]"""

    layers: tuple[int, ...]
    entropy: Table
    """How spread the attention is, in bits: 0 is one token only."""
    distance: Table
    """How far back it looks, in tokens."""
    previous: Table | None
    """The weight on the token just before; None if the text is one token."""
    first: Table | None
    """The weight on the first token, where many heads rest; measured from the second token on, None without one."""
    itself: Table
    """The weight on the token itself; measured from the second token on, and in a text of one token on that."""
    induction: Table | None
    """The weight on what followed the last time this token stood in the text; None if no token occurs twice."""
    induction_queries: int = 0
    """How many tokens `induction` is the mean over: of one or two it says little (see `roles`)."""
    pictures: tuple[tuple[bytes, ...], ...] = ()
    """Small pictures of the weights, a byte for a cell, row by row; a row's strongest is 255."""
    size: int = 0
    """How many cells wide and high a picture is."""
    told = ("picture",)
    hidden = ("pictures", "size")

    @property
    def picture(self) -> Pictures | None:
        pixels = tuple(tuple(base64.b64encode(picture).decode() for picture in row) for row in self.pictures)
        return Pictures(self.size, pixels) if pixels else None


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


@dataclass(frozen=True)
class Looking(ViewResult):
    """The head that looks most from one token to another."""

    layer: int
    head: int
    weight: float


@torch.no_grad()
def looking(run: Run, position: int, key: int) -> Looking:
    """The head that looks most from one token to another: its layer, its number, and the weight."""
    position, key = run.position(position), run.position(key)
    weights = torch.stack(
        [run[f"blocks.{layer}.attention.weights"][:, position, key].float() for layer in range(run.lm.config.layers)]
    )  # [layer, head]
    layer, head = divmod(int(weights.argmax()), weights.shape[1])
    return Looking(layer, head, float(weights[layer, head]))


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
