"""Two sides: two texts, two models, or both, and how the numbers of one moment differ between them.

Tokens are put side by side by this rule: the longest stretch of tokens that both texts have in common, by their bytes,
is one piece of it; then the same to its left and to its right (Python's difflib). Between such stretches, the first
token of one side stands beside the first of the other, and so on; what is left over stands alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, Literal, get_args

import torch

from cutaway.errors import CutawayError
from cutaway.inspect.lens import lens
from cutaway.inspect.numbers import Token, ViewResult
from cutaway.inspect.runs import Run
from cutaway.inspect.runs import run as carry_on
from cutaway.inspect.saliency import saliency

Kind = Literal["next", "attention", "layers", "causes", "neurons", "stream", "written", "weights"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SHOWN = 12
LIKELIEST = 10
WRITTEN = 12
"""So many tokens are written on each side, the likeliest each time."""


@dataclass(frozen=True)
class Pair(ViewResult):
    """Positions that stand side by side; None where a side has nothing there."""

    left: int | None
    right: int | None
    same: bool
    """Whether it is the same token."""


@dataclass(frozen=True)
class Difference(ViewResult):
    """One thing on both sides: its number on each, None where a side does not have it, and how far apart they are."""

    left: float | None
    right: float | None
    change: float
    """Right minus left; of vectors and matrices the length of the difference, as a share of the left one's."""
    name: str = ""
    tokens: tuple[Token | None, Token | None] = (None, None)
    same: bool = False
    """Whether the tokens are the same on both sides."""
    position: int | None = None
    layer: int | None = None
    neuron: int | None = None


@dataclass(frozen=True)
class Beside(ViewResult):
    """How two runs differ in one respect, at one token of each; the largest differences first, or in their order."""

    of: Kind
    unit: Literal["percent", "number"]
    pairs: tuple[Pair, ...]
    position: int
    other: int
    rows: tuple[Difference, ...]
    distance: float | None
    """Of probabilities and shares: half the sum of all differences, 0 where both sides are alike and 1 where they
    have nothing in common. None: there is no such number."""
    unlike: bool = False
    """Whether the two models have different shapes there, so that there is nothing to compare."""


def align(left: Sequence[bytes], right: Sequence[bytes]) -> tuple[Pair, ...]:
    """Which token stands beside which."""
    pairs: list[Pair] = []
    for kind, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        pairs += [Pair(one, other, kind == "equal") for one, other in zip_longest(range(a, b), range(c, d))]
    return tuple(pairs)


def across(pairs: Sequence[Pair], position: int) -> int:
    """The position on the right that belongs to one on the left; of a token that stands alone, the one before it."""
    found = 0
    for pair in pairs:
        found = found if pair.right is None else pair.right
        if pair.left == position:
            break
    return found


def beside(
    left: Run,
    right: Run,
    of: Kind = "next",
    position: int = -1,
    other: int | None = None,
    layer: int = 0,
    head: int = 0,
) -> Beside:
    """How two runs differ: `of` what, at a position of the left one (and at `other`, or what stands beside it)."""
    if of not in KINDS:
        raise CutawayError(f"There is no comparison of {of!r}: {', '.join(KINDS)}.")
    pairs = align([one.bytes for one in left.tokens], [one.bytes for one in right.tokens])
    here = left.position(position)
    last = here == len(left) - 1
    there = right.position(other) if other is not None else len(right) - 1 if last else across(pairs, here)
    found = COMPARISONS[of](left, right, pairs, here, there, layer, head)
    if found is None:
        return Beside(of, "number", pairs, here, there, (), None, unlike=True)
    unit, rows, distance = found
    return Beside(of, unit, pairs, here, there, tuple(rows), distance)


Found = tuple[Literal["percent", "number"], list[Difference], float | None] | None


def strongest(rows: Sequence[Difference]) -> list[Difference]:
    return sorted(rows, key=lambda row: -abs(row.change))[:SHOWN]


def next_tokens(left: Run, right: Run, pairs: Sequence[Pair], here: int, there: int, *_: Any) -> Found:
    """The tokens likeliest on either side."""
    sides, chances = [], []
    for run, at in ((left, here), (right, there)):
        row = run.logits([at])[0].float().softmax(-1)[: len(run.lm.tokenizer)]
        best = row.topk(min(LIKELIEST, len(row))).indices.tolist()
        sides.append({run.token(one).bytes: one for one in best})
        chances.append(row)
    alike, rows = vocabulary(left) == vocabulary(right), []
    for piece, one in {**sides[1], **sides[0]}.items():
        known = ({piece: one}, {piece: one}) if alike else sides
        ids = [id_of(run, piece, side) for run, side in zip((left, right), known, strict=True)]
        a, b = (None if one is None else float(row[one]) for one, row in zip(ids, chances, strict=True))
        tokens = tuple(None if one is None else run.token(one) for run, one in zip((left, right), ids, strict=True))
        rows.append(Difference(a, b, (b or 0.0) - (a or 0.0), tokens=(tokens[0], tokens[1]), same=None not in ids))
    distance = float((chances[0] - chances[1]).abs().sum() / 2) if alike else None
    return "percent", strongest(rows), distance


def vocabulary(run: Run) -> tuple[int, bytes]:
    """Enough to tell two vocabularies apart: their sizes, and their last tokens."""
    size = len(run.lm.tokenizer)
    return size, b"\0".join(run.lm.tokenizer.token_bytes(one) for one in range(max(0, size - 300), size))


def id_of(run: Run, piece: bytes, known: dict[bytes, int]) -> int | None:
    """The token of these bytes in a run's own vocabulary; None where it takes several."""
    if piece in known:
        return known[piece]
    try:
        ids = run.lm.ids(piece.decode())
    except UnicodeDecodeError:
        return None
    return ids[0] if len(ids) == 1 and run.token(ids[0]).bytes == piece else None


def by_token(left: Run, right: Run, pairs: Sequence[Pair], shares: Sequence[Any]) -> Found:
    """A share of each token, on both sides: those that stand side by side are one row."""
    rows = []
    for pair in pairs:
        a = float(shares[0][pair.left]) if pair.left is not None and pair.left < len(shares[0]) else None
        b = float(shares[1][pair.right]) if pair.right is not None and pair.right < len(shares[1]) else None
        if a is None and b is None:
            continue
        one = None if a is None or pair.left is None else left.tokens[pair.left]
        two = None if b is None or pair.right is None else right.tokens[pair.right]
        rows.append(Difference(a, b, (b or 0.0) - (a or 0.0), tokens=(one, two), same=pair.same, position=pair.left))
    return "percent", strongest(rows), sum(abs(row.change) for row in rows) / 2


def attention_weights(
    left: Run, right: Run, pairs: Sequence[Pair], here: int, there: int, layer: int, head: int
) -> Found:
    """What one head takes from each token, in the row of the chosen one."""
    if any(layer >= run.lm.config.layers or head >= run.lm.config.heads for run in (left, right)):
        return None
    sides = ((left, here), (right, there))
    shares = [run[f"blocks.{layer}.attention.weights"][head, at, : at + 1].float() for run, at in sides]
    return by_token(left, right, pairs, shares)


def layers(left: Run, right: Run, pairs: Sequence[Pair], here: int, there: int, *_: Any) -> Found:
    """What each layer would say next."""
    one, two = (lens(run, [at], 1) for run, at in ((left, here), (right, there)))
    rows = []
    for at, name in enumerate(one.layers[: len(two.layers)]):
        tokens = left.token(int(one.top[at, 0, 0])), right.token(int(two.top[at, 0, 0]))
        a, b = float(one.top_probability[at, 0, 0]), float(two.top_probability[at, 0, 0])
        same = tokens[0].bytes == tokens[1].bytes
        rows.append(Difference(a, b, b - a, name, tokens, same, layer=max(0, at - 1)))
    return "percent", rows, None


def causes(left: Run, right: Run, pairs: Sequence[Pair], here: int, there: int, *_: Any) -> Found:
    """How much each token counted for the one that comes next."""
    shares = [saliency(run, [at + 1]).share[0, : at + 1] for run, at in ((left, here), (right, there))]
    return by_token(left, right, pairs, shares)


@torch.no_grad()
def neurons(left: Run, right: Run, pairs: Sequence[Pair], here: int, there: int, layer: int, *_: Any) -> Found:
    """The neurons of a layer, by how much stronger or weaker they fire."""
    if any(layer >= run.lm.config.layers for run in (left, right)):
        return None
    a, b = (run.activation(layer, at).float() for run, at in ((left, here), (right, there)))
    if a.shape != b.shape:
        return None
    best = (b - a).abs().topk(min(SHOWN, len(a))).indices.tolist()
    apart = b - a
    rows = [Difference(float(a[n]), float(b[n]), float(apart[n]), str(n), layer=layer, neuron=n) for n in best]
    return "number", rows, None


@torch.no_grad()
def stream(left: Run, right: Run, pairs: Sequence[Pair], here: int, there: int, *_: Any) -> Found:
    """The residual stream before the blocks and after each: its length on both sides, and how far apart the two are."""
    if left.lm.config.width != right.lm.config.width or left.lm.config.layers != right.lm.config.layers:
        return None
    rows = []
    for layer in range(-1, left.lm.config.layers):
        name = "residual.0" if layer < 0 else f"blocks.{layer}.residual"
        a, b = left[name][here].float(), right[name][there].float()
        apart = float((b - a).norm() / a.norm().clamp_min(1e-12))
        rows.append(Difference(float(a.norm()), float(b.norm()), apart, name, layer=max(0, layer)))
    return "number", rows, None


def written(left: Run, right: Run, *_: Any) -> Found:
    """What each side writes by itself, the likeliest token each time, and how likely it was."""
    ways = []
    for run in (left, right):
        room = max(0, min(WRITTEN, run.lm.config.context - len(run)))
        ids = run.lm.generate(list(run.ids), max_tokens=room, top_k=1).ids if room else []
        longer = carry_on(run.lm, [*run.ids, *ids]) if ids else run
        chances = longer.logits(range(len(run) - 1, len(longer) - 1)).float().softmax(-1) if ids else ()
        ways.append([(run.token(one), float(row[one])) for one, row in zip(ids, chances, strict=True)])
    rows = []
    for at, (one, two) in enumerate(zip_longest(*ways)):
        tokens = (one[0] if one else None, two[0] if two else None)
        a, b = (one[1] if one else None, two[1] if two else None)
        same = bool(one and two and one[0].bytes == two[0].bytes)
        rows.append(Difference(a, b, (b or 0.0) - (a or 0.0), str(at + 1), tokens, same))
    return "percent", rows, None


@torch.no_grad()
def weights(left: Run, right: Run, *_: Any) -> Found:
    """Every matrix that both models have: its length on both sides, and how far apart the two are."""
    other = dict(right.lm.model.named_parameters())
    rows = []
    for name, one in left.lm.model.named_parameters():
        if name in other and other[name].shape == one.shape:
            a, b = one.float(), other[name].float()
            apart = float((b - a).norm() / a.norm().clamp_min(1e-12))
            rows.append(Difference(float(a.norm()), float(b.norm()), apart, name))
    return ("number", strongest(rows), None) if rows else None


COMPARISONS: dict[Kind, Callable[..., Found]] = {
    "next": next_tokens,
    "attention": attention_weights,
    "layers": layers,
    "causes": causes,
    "neurons": neurons,
    "stream": stream,
    "written": written,
    "weights": weights,
}
