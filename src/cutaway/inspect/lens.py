"""What each layer already knew: its vectors through the final norm and the output, as if the stack ended there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from cutaway.checks import check_count
from cutaway.inspect.change import pieces
from cutaway.inspect.numbers import Axes, Cube, Table, Token, ViewResult, rounded
from cutaway.inspect.runs import Run

Whole = npt.NDArray[np.int64]
WholeTable = Annotated[Whole, Axes(2)]


@dataclass(frozen=True)
class Followed(ViewResult):
    """A token followed through the layers."""

    token: Token
    rank: WholeTable
    """1 is the likeliest. [layer, position]"""
    probability: Table
    """[layer, position]"""


@dataclass(frozen=True)
class Lens(ViewResult):
    """The predictions after the embedding and after each block; the last row is the model's output."""

    positions: tuple[int, ...]
    layers: tuple[str, ...]
    chosen: tuple[Token, ...]
    """The token whose rank is followed, for each position."""
    rank: WholeTable
    """Of the chosen token; 1 is the likeliest. [layer, position]"""
    probability: Table
    """Of the chosen token. [layer, position]"""
    top: Annotated[Whole, Axes(3)]
    """The ids of the likeliest, likeliest first. [layer, position, k]"""
    top_probability: Cube
    """[layer, position, k]"""
    words: dict[int, Token]
    """Every token in `top`."""
    watch: tuple[Followed, ...]
    told = ("top=pairs",)
    hidden = ("top_probability",)

    @property
    def pairs(self) -> list[list[list[tuple[int, float]]]]:
        """The likeliest, each id with its probability. [layer][position][k]"""
        return [
            [list(zip(ids, row, strict=True)) for ids, row in zip(layer, chances, strict=True)]
            for layer, chances in zip(self.top.tolist(), rounded(self.top_probability), strict=True)
        ]


@torch.no_grad()
def lens(
    run: Run,
    positions: Sequence[int] | None = None,
    k: int = 5,
    watch: int | str | Sequence[int | str] = (),
    chosen: int | str | None = None,
) -> Lens:
    """After every layer: the k likeliest next tokens, and where the chosen one and the watched ones stand.

    Chosen is the token that really comes next (after the last, the likeliest), unless one is named for all positions.
    Tokens are named by their text, `" ball"`, or by their ids.
    """
    check_count(k, 1)
    places = list(range(len(run))) if positions is None else [run.position(position) for position in positions]
    watched = [run.token(one) for one in ([watch] if isinstance(watch, int | str) else watch)]
    followed = [run.token(run.next(place) if chosen is None else chosen) for place in places]
    names = ["residual.0", *(f"blocks.{layer}.residual" for layer in range(run.lm.config.layers))]
    columns = torch.tensor([[one.id, *(other.id for other in watched)] for one in followed], device=run.lm.device)
    model, known = run.lm.model, len(run.lm.tokenizer)
    hidden = torch.stack([model.final_norm(run[name][places]) for name in names[:-1]]).flatten(0, 1)
    asked = columns.repeat(len(names) - 1, 1)  # [layer x position, id]

    def part(piece: range) -> slice:
        return slice(piece.start, piece.stop)

    found = [read(model.score(hidden[part(rows)]).float(), asked[part(rows)], k, known) for rows in pieces(len(hidden))]
    found += [read(run.logits(places[part(rows)]), columns[part(rows)], k, known) for rows in pieces(len(places))]
    rank, probability, top, top_probability = (
        torch.cat(one).unflatten(0, (len(names), len(places))).cpu().numpy() for one in zip(*found, strict=True)
    )
    return Lens(
        tuple(places),
        tuple(names),
        tuple(followed),
        rank[..., 0],
        probability[..., 0],
        top,
        top_probability,
        {one: run.token(one) for one in sorted(set(top.flatten().tolist()))},
        tuple(Followed(token, rank[..., i], probability[..., i]) for i, token in enumerate(watched, 1)),
    )


def read(logits: Tensor, columns: Tensor, k: int, known: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Rank and probability of these ids [position, id], and the k likeliest with theirs, among the known tokens."""
    scores = logits.gather(1, columns)  # [position, id]
    total = logits.logsumexp(-1, keepdim=True)
    tokens = logits[:, :known]  # a padded vocabulary has scores for more than there are tokens
    rank = torch.stack([(tokens > score[:, None]).sum(-1) for score in scores.T], dim=-1) + 1
    best = tokens.topk(min(k, known))
    return rank, (scores - total).exp(), best.indices, (best.values - total).exp()
