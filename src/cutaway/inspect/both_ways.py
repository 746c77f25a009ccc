"""Both ways beside one way: what an encoder's head attends to in a sentence, and what a GPT-2's does in the same one.

The two cut the sentence into tokens of their own. What is put side by side are the shortest pieces at whose ends both
cut: their characters are compared without spaces, capitals and accents, which an uncased vocabulary forgets. A piece's
row is the mean over its tokens, its column their sum, so that every row still adds up to 1.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

import numpy as np
import torch

from cutaway.inspect.numbers import Array, Table, Token, ViewResult
from cutaway.inspect.runs import Run

SPECIAL = "\ue000"
"""Stands for a special token, whose name is not among the sentence's characters."""


@dataclass(frozen=True)
class Piece(ViewResult):
    """The shortest stretch of the sentence at whose ends both models cut; the tokens it is on either side."""

    text: str
    left: tuple[int, ...]
    right: tuple[int, ...]


@dataclass(frozen=True)
class BothWays(ViewResult):
    """One head of each model over the same pieces."""

    pieces: tuple[Piece, ...]
    left: Table
    """The encoder's weights: row to column; zeros for a piece it does not have. [piece, piece]"""
    right: Table
    """The GPT-2's."""
    ahead: tuple[float, float]
    """On each side the share of the attention that goes to later tokens, the mean over all of them."""
    cut: int
    """How many pieces the two cut differently: into another number of tokens."""
    tokens: tuple[tuple[Token, ...], tuple[Token, ...]]
    layers: tuple[int, int]
    """Which layer it is on either side."""
    heads: tuple[int, int]
    others: tuple[int, int]
    """How many layers, and heads in each, the GPT-2 has to choose from."""


def both_ways(
    left: Run, right: Run, layer: int = 0, head: int = 0, other_layer: int | None = None, other_head: int | None = None
) -> BothWays:
    """An encoder's head beside one of a GPT-2, which is of the same number as far as it has that many."""
    here = left.layer(layer), left.head(head)
    there = (
        right.layer(min(here[0], right.lm.config.layers - 1) if other_layer is None else other_layer),
        right.head(min(here[1], right.lm.config.heads - 1) if other_head is None else other_head),
    )
    pieces = tuple(aligned(left, right))
    weights = [
        run[f"blocks.{at}.attention.weights"][number].float() for run, (at, number) in ((left, here), (right, there))
    ]
    sides = [[piece.left for piece in pieces], [piece.right for piece in pieces]]
    tables = [by_piece(table, own) for table, own in zip(weights, sides, strict=True)]
    ahead = [float(table.triu(1).sum() / len(table)) for table in weights]
    cut = sum(bool(one.left and one.right) and len(one.left) != len(one.right) for one in pieces)
    return BothWays(
        pieces, tables[0], tables[1], (ahead[0], ahead[1]), cut, (left.tokens, right.tokens),
        (here[0], there[0]), (here[1], there[1]), (right.lm.config.layers, right.lm.config.heads),
    )  # fmt: skip


def by_piece(weights: torch.Tensor, pieces: Sequence[Sequence[int]]) -> Array:
    """Weights from token to token as weights from piece to piece. [piece, piece]"""
    count = weights.shape[0]
    belongs = torch.zeros(len(pieces), count)
    for number, own in enumerate(pieces):
        belongs[number, list(own)] = 1
    mean = belongs / belongs.sum(1, keepdim=True).clamp_min(1)
    found: Array = (mean @ weights.cpu() @ belongs.T).numpy().astype(np.float32)
    return found


def aligned(left: Run, right: Run) -> list[Piece]:
    """The pieces of both texts in order; one that only one side has, as [CLS], has no tokens on the other.

    A token of nothing but spaces is part of what follows it; at the end of the text, of what is before it.
    """
    one, two = characters(left), characters(right)
    ends = [{i for i in range(len(side) + 1) if is_end(side, i)} for side in (one, two)]
    blocks = SequenceMatcher(None, [sign for sign, *_ in one], [sign for sign, *_ in two], autojunk=False)
    both = {(0, 0), (len(one), len(two))}
    for block in blocks.get_matching_blocks():
        for step in range(block.size + 1):
            if block.a + step in ends[0] and block.b + step in ends[1]:
                both.add((block.a + step, block.b + step))
    found: list[tuple[range, range]] = []
    done = [0, 0]
    for (a, b), (c, d) in pairwise(sorted(both)):
        last = [one[c - 1][2] + 1 if c > a else done[0], two[d - 1][2] + 1 if d > b else done[1]]
        found.append((range(done[0], last[0]), range(done[1], last[1])))
        done = last
    for side, run in enumerate((left, right)):
        if done[side] < len(run):
            at = max((at for at, piece in enumerate(found) if piece[side]), default=None)
            rest = range(found[at][side].start if at is not None else done[side], len(run))
            if at is None:
                found.append((rest, range(0)) if side == 0 else (range(0), rest))
            else:
                found[at] = (rest, found[at][1]) if side == 0 else (found[at][0], rest)
    return [
        Piece(spelled(right, other) if other else spelled(left, mine), tuple(mine), tuple(other))
        for mine, other in found
    ]


def characters(run: Run) -> list[tuple[str, int, int]]:
    """The signs of a text as both models know them, each with the first and the last token it is part of."""
    tokenizer = run.lm.tokenizer
    special = set(tokenizer.specials.values())
    raw, owners = b"", list[int]()
    found: list[tuple[str, int, int]] = []

    def settle() -> None:
        nonlocal raw, owners
        at = 0
        for sign in raw.decode("utf-8", "surrogateescape"):
            size = len(sign.encode("utf-8", "surrogateescape"))
            first, last = owners[at], owners[at + size - 1]
            plain = unicodedata.normalize("NFD", sign).lower()
            found.extend((one, first, last) for one in plain if not one.isspace() and unicodedata.category(one) != "Mn")
            at += size
        raw, owners = b"", []

    for number, one in enumerate(run.ids):
        if one in special:
            settle()
            found.append((SPECIAL, number, number))
            continue
        piece = tokenizer.token_bytes(one)
        raw, owners = raw + piece, [*owners, *[number] * len(piece)]
    settle()
    return found


def is_end(signs: Sequence[tuple[str, int, int]], at: int) -> bool:
    """Whether a token ends before this sign, and another begins with it."""
    return at in (0, len(signs)) or signs[at - 1][2] < signs[at][1]


def spelled(run: Run, positions: Sequence[int]) -> str:
    """What these tokens spell, or the name of the special token they are."""
    whole = b"".join(run.lm.tokenizer.token_bytes(run.ids[at]) for at in positions)
    return whole.decode("utf-8", "replace").strip()
