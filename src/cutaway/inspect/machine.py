"""What the picture of the whole machine is drawn from: for a window of tokens every vector folded into a few cells,
what each token attends to most, and what is expected after each.

Nothing here knows a model: the names are those of its map.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from cutaway.errors import CutawayError
from cutaway.inspect.numbers import Array, Token, array
from cutaway.inspect.runs import Run
from cutaway.models.architecture import Place, places, start_of
from cutaway.models.steps import LOGITS
from cutaway.parts.trace import check_name, within

MOST = 1 << 24
"""Numbers of one answer."""


@torch.no_grad()
def folded(run: Run, names: Sequence[str], first: int = 0, count: int = 64, cells: int = 24) -> Array:
    """For each name and each token of the window the length of its vector, then the vector in so many cells: of the
    numbers that share a cell the one of largest size. Heads follow each other. [name x token, 1 + cell]
    """
    chosen = known(run, names)
    rows = window(tokens_of(run, chosen, -2), first, count)
    check_size(len(names) * len(rows) * (1 + cells))
    found = [fold(vectors(run, place, rows), cells) for place in chosen]
    return array(torch.cat(found)) if found else array(torch.zeros(0, 1 + cells))


def fold(vectors: Tensor, cells: int) -> Tensor:
    """[token, column] -> [token, 1 + cell]; of a vector of fewer columns the cells after its last are 0."""
    columns = vectors.shape[1]
    made = torch.zeros(len(vectors), 1 + cells)
    made[:, 0] = vectors.norm(dim=1)
    if columns <= cells:
        made[:, 1 : 1 + columns] = vectors
        return made
    edges = [cell * columns // cells for cell in range(cells + 1)]
    for cell, (start, end) in enumerate(pairwise(edges)):
        part = vectors[:, start:end]
        made[:, 1 + cell] = part.gather(1, part.abs().argmax(1, keepdim=True))[:, 0]
    return made


@torch.no_grad()
def looks(run: Run, names: Sequence[str], k: int = 4) -> Array:
    """What each token attends to most, by the mean over the heads of each table of attention weights: the positions,
    the strongest first, then their weights. Where there are fewer, position -1 and weight 0. [name x token, 2k]
    """
    check_size(len(names) * len(run) * 2 * k)
    found = []
    for place in tables(run, names):
        table = run[place.name]
        best = (table.mean(0) if place.axes[0] == "head" else table).float().topk(min(k, table.shape[-1]))
        lines = len(best.values)
        made = torch.cat([torch.full((lines, k), -1.0), torch.zeros(lines, k)], 1)
        made[:, : best.values.shape[1]] = best.indices.float().masked_fill(best.values <= 0, -1)
        made[:, k : k + best.values.shape[1]] = best.values
        found.append(made)
    return array(torch.cat(found)) if found else array(torch.zeros(0, 2 * k))


@torch.no_grad()
def rows(run: Run, names: Sequence[str], position: int = -1, first: int = 0, count: int = 64) -> Array:
    """One token's row of each table, head by head, over the keys of the window. [name x head, key]"""
    chosen = tables(run, names)
    at = within("token", position, tokens_of(run, chosen, -2))
    keys = window(tokens_of(run, chosen, -1), first, count)
    check_size(len(names) * getattr(run.lm.config, "heads", 1) * len(keys))
    found = []
    for place in chosen:
        table = run[place.name]
        found.append((table if place.axes[0] == "head" else table[None])[:, at, keys.start : keys.stop].float())
    return array(torch.cat(found)) if found else array(torch.zeros(0, len(keys)))


@torch.no_grad()
def expected(run: Run, first: int = 0, count: int = 64) -> tuple[list[Token], Array]:
    """The likeliest token after each of the window's, and its probability; none of a model that scores no tokens."""
    at = window(len(run), first, count)
    if LOGITS not in places(run.lm.config):
        return [], array(torch.zeros(0))
    shares = run.logits(list(at)).softmax(-1)
    best = shares[:, : len(run.lm.tokenizer)].max(-1)
    return [run.token(one) for one in best.indices.tolist()], array(best.values)


def window(tokens: int, first: int, count: int) -> range:
    """The positions from `first`, as far as there are tokens."""
    if first < 0 or count < 1:
        raise CutawayError("A window begins at position 0 or later and holds at least one token.")
    return range(min(first, tokens), min(first + count, tokens))


def tokens_of(run: Run, chosen: Sequence[Place], axis: int) -> int:
    """How many tokens these places have along an axis: the text's; of two texts as many as theirs has."""
    if start_of(run.lm.config) is None:
        return len(run)
    sizes = {run[place.name].shape[axis] for place in chosen if "token" in place.axes}
    if len(sizes) > 1:
        raise CutawayError("These places belong to two texts of unequal length. Ask for those of one text at a time.")
    return sizes.pop() if sizes else len(run)


def check_size(numbers: int) -> None:
    """Refuse a question whose answer no page could draw."""
    if numbers > MOST:
        raise CutawayError(
            f"That is {numbers:,} numbers; a picture takes {MOST:,} at most. Name fewer places, tokens or cells."
        )


def known(run: Run, names: Sequence[str]) -> list[Place]:
    every = places(run.lm.config)
    for name in names:
        check_name(name, every)
    return [every[name] for name in names]


def tables(run: Run, names: Sequence[str]) -> list[Place]:
    chosen = known(run, names)
    for place in chosen:
        if place.axes[-1] != "key":
            raise CutawayError(f"{place.name} is no table of tokens and the tokens they attend to.")
    return chosen


def vectors(run: Run, place: Place, rows: range) -> Tensor:
    """What these tokens have at a place, one row each."""
    if place.axes[-1] != "column":
        raise CutawayError(f"{place.name} has no vector for a token: it is a table.")
    if "token" not in place.axes:
        raise CutawayError(f"{place.name} is one vector for the whole text, not one for each token.")
    if place.name == LOGITS:
        return run.logits(list(rows))
    found = run[place.name].float()
    if place.axes[0] != "token":  # heads, or the characters of a word, follow each other
        found = found.movedim(0, 1).flatten(1)
    return found[rows.start : rows.stop]
