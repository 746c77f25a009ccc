"""How one number of a run was made: the terms that were added up, the parts they were made of, and their total."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cutaway.errors import CutawayError, nearest
from cutaway.inspect.numbers import rounded
from cutaway.inspect.runs import Run
from cutaway.models.architecture import Place, places
from cutaway.models.steps import LOGITS, PROBABILITIES, SOFTMAX_OF_LOGITS
from cutaway.parts.trace import within

STANDARDIZED = ".standardized"
"""After the name of a norm: its vector before gain and bias, less its mean and divided by its standard deviation."""
HIDDEN = torch.finfo(torch.float16).min
"""A score of this or less is one the mask put there."""


@dataclass(frozen=True)
class Term:
    """One term of a sum: usually left times right; `index` says which column, token or vocabulary entry it is."""

    index: int
    left: float
    right: float
    product: float


@dataclass(frozen=True)
class Cell:
    """One number and how it was made. `total` is made anew from the terms and parts; it equals `value`, the number that
    the model itself made, to the precision the model counts with, unless a change put another in its place.
    """

    name: str
    position: int
    head: int | None
    column: int
    kind: str
    """lookup, add, standard, norm, product, score, mask, softmax, mix, copy or activation; given, where the model's map
    names an operation that nobody can take apart.
    """
    value: float
    total: float
    parts: dict[str, float]
    """The numbers that are not terms, in the order they are used."""
    terms: tuple[Term, ...] = ()
    """The largest terms, largest first."""
    count: int = 0
    """How many terms there are in all."""
    rest: float = 0.0
    """The sum of those that are not listed."""
    replaced: bool = False
    """A change put this number here; the arithmetic would have made another."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "position": self.position,
            "head": self.head,
            "column": self.column,
            "kind": self.kind,
            "value": None if self.value <= HIDDEN else rounded(self.value),
            "total": None if self.total <= HIDDEN else rounded(self.total),
            "parts": rounded(self.parts),
            "terms": [rounded([term.index, term.left, term.right, term.product]) for term in self.terms],
            "count": self.count,
            "rest": rounded(self.rest),
            "replaced": self.replaced,
        }


@dataclass(frozen=True)
class Made:
    """What the arithmetic of a kind of step gives: its kind, parts, total, and all terms as left, right and product."""

    kind: str
    total: float
    parts: dict[str, float] = field(default_factory=dict)
    left: Tensor | None = None
    right: Tensor | None = None
    product: Tensor | None = None


@dataclass(frozen=True)
class At:
    """Where in a run: all the makers below are functions of it."""

    run: Run
    place: Place
    position: int
    column: int
    width: int
    """How many columns there are."""
    head: int
    plain: bool = False
    """Of a norm: its vector before gain and bias."""

    def vector(self, number: int = 0) -> Tensor:
        """One of the vectors that the place is made of, of this token, in float64."""
        return self.run[self.place.inputs[number]][self.position].double()

    def of_head(self, number: int = 0) -> Tensor:
        """The same of every token; where it is divided into heads, what this head made. [token, column]"""
        found = self.run[self.place.inputs[number]].double()
        return found[self.head] if self.known[self.place.inputs[number]].axes[0] == "head" else found

    @property
    def known(self) -> Mapping[str, Place]:
        return places(self.run.lm.config)

    @property
    def module(self) -> Any:
        return self.run.lm.model.get_submodule(self.place.module)


@torch.no_grad()
def explain(run: Run, name: str, position: int, column: int | str, head: int | None = None, terms: int = 8) -> Cell:
    """How one number was made: `name` at a token, in a head where there are heads; `column` is the last axis (for
    logits and "probabilities" a token, by its id or its text; for scores, masked scores and weights the position
    looked at).
    """
    known = places(run.lm.config) | {PROBABILITIES: SOFTMAX_OF_LOGITS}
    known |= {f"{one.name}{STANDARDIZED}": one for one in known.values() if one.operation == "norm"}
    if name not in known:
        raise CutawayError(f"Nothing in this model is called {name!r}.{nearest(name, known)}")
    place = known[name]
    divided = place.axes[0] == "head"
    if divided and head is None:
        raise CutawayError(f"{name} is divided into heads: say which head.")
    if head is not None and not divided:
        raise CutawayError(f"{name} is not divided into heads: leave the head out.")
    position, head = run.position(position), None if head is None else run.head(head)
    row = _row(run, name, position, head)
    if isinstance(column, str):
        if name not in (LOGITS, PROBABILITIES):
            raise CutawayError(f"The columns of {name} are numbers, not tokens: {column!r:.80} is none of them.")
        column = run.token(column).id
    column = within(place.axes[-1], column, len(row))
    value = float(row[column])
    at = At(run, place, position, column, len(row), head or 0, name.endswith(STANDARDIZED))
    made = MAKERS[place.operation](at) if place.operation in MAKERS else Made("given", value)
    listed: tuple[Term, ...] = ()
    count, rest = 0, 0.0
    if made.product is not None and made.left is not None and made.right is not None:
        count = len(made.product)
        best = made.product.abs().argsort(descending=True, stable=True)[: max(0, terms)]
        rest = float(made.product.sum() - made.product[best].sum()) if count > len(best) else 0.0
        listed = tuple(
            Term(i, float(made.left[i]), float(made.right[i]), float(made.product[i])) for i in best.tolist()
        )
    changed = any(fnmatch.fnmatchcase(name, pattern) for pattern in run.trace.replace)
    replaced = changed and abs(made.total - value) > 1e-4 * max(1.0, abs(value))
    return Cell(name, position, head, column, made.kind, value, made.total, made.parts, listed, count, rest, replaced)


def _row(run: Run, name: str, position: int, head: int | None) -> Tensor:
    """The vector that the number stands in."""
    if name in (LOGITS, PROBABILITIES):
        logits = run.logits([position])[0]
        return logits if name == LOGITS else logits.softmax(-1)
    if name.endswith(STANDARDIZED):
        return standardized(run, name.removesuffix(STANDARDIZED), position)
    return run[name][position] if head is None else run[name][head, position]


def standardized(run: Run, name: str, position: int) -> Tensor:
    """What a norm makes of a token's vector before gain and bias. [width]"""
    place = places(run.lm.config)[name]
    vector, layer = run[place.inputs[0]][position], cast(nn.LayerNorm, run.lm.model.get_submodule(place.module))
    return F.layer_norm(vector.float(), vector.shape, eps=layer.eps)


def look_up(at: At) -> Made:
    """A number read from a row of a matrix."""
    row, matrix = at.run.looked_up(at.place, at.position), at.module.weight
    return Made("lookup", float(matrix[row, at.column]), {"row": row, "rows": len(matrix)})


def add(at: At) -> Made:
    """Two vectors added, number by number; or two tables of scores."""
    a, b = (float(at.of_head(number)[at.position, at.column]) for number in (0, 1))
    return Made("add", a + b, {"a": a, "b": b})


def norm(at: At) -> Made:
    """(x - mean) / sqrt(variance + epsilon) * gain + bias, over the whole vector; or only standardized."""
    vector, layer = at.vector(), at.module
    x, mean, variance = float(vector[at.column]), float(vector.mean()), float(vector.var(unbiased=False))
    gain, bias = float(layer.weight[at.column]), float(layer.bias[at.column])
    normal = (x - mean) / math.sqrt(variance + layer.eps)
    parts = {"x": x, "mean": mean, "variance": variance, "epsilon": layer.eps}
    if at.plain:
        return Made("standard", normal, parts)
    return Made("norm", normal * gain + bias, {**parts, "normal": normal, "gain": gain, "bias": bias})


def linear(at: At) -> Made:
    """A vector times a column of a matrix, plus a bias where there is one."""
    matrix, bias = at.module.weight, getattr(at.module, "bias", None)
    which, shares = at.place.share
    output = which * (len(matrix) // shares) + at.head * at.width + at.column
    vector, weights = at.vector(), matrix[output].double()
    terms = vector * weights
    dot = float(terms.sum())
    parts = {"output": output, "sum": dot} | ({} if bias is None else {"bias": float(bias[output])})
    return Made("product", dot + parts.get("bias", 0.0), parts, vector, weights, terms)


def score(at: At) -> Made:
    """Query times key, times the scale."""
    query, key = at.of_head(0)[at.position], at.of_head(1)[at.column]
    terms, scale = query * key, at.module.scale
    dot = float(terms.sum())
    parts = {"sum": dot, "width": len(query), "scale": scale}
    return Made("score", dot * scale, parts, query, key, terms)


def distance(at: At) -> Made:
    """Query times what was learned of so many tokens back, times the scale; for what comes later there is none."""
    query, learned, back = at.of_head()[at.position], at.module.distances, at.position - at.column
    if back < 0:
        return Made("given", float(at.run[at.place.name][at.head, at.position, at.column]))
    row = learned[at.head, learned.shape[1] - 1 - back].double()
    terms, scale = query * row, at.module.scale
    dot = float(terms.sum())
    return Made("score", dot * scale, {"sum": dot, "width": len(query), "scale": scale}, query, row, terms)


def copy(at: At) -> Made:
    """The very same number."""
    return Made("given", float(at.vector()[at.column]))


def mask(at: At) -> Made:
    """The score itself, or, for what comes later, the lowest number there is."""
    scores = at.run[at.place.inputs[0]]
    found, seen = float(scores[at.head, at.position, at.column]), at.column <= at.position
    total = found if seen else float(torch.finfo(scores.dtype).min)
    return Made("mask", total, {"score": found, "seen": float(seen)})


def softmax(at: At) -> Made:
    """e to the score less the highest, divided by the sum of the same for the whole row."""
    last = at.place is SOFTMAX_OF_LOGITS
    row = at.run.logits([at.position])[0].double() if last else at.of_head()[at.position]
    highest = float(row.max())
    powers = (row - highest).exp()
    total = float(powers.sum())
    parts = {"score": float(row[at.column]), "highest": highest, "power": float(powers[at.column]), "sum": total}
    if parts["score"] <= HIDDEN:
        parts["score"] = -math.inf
    return Made("softmax", parts["power"] / total, parts, row.clamp(min=HIDDEN), powers, powers)


def mix(at: At) -> Made:
    """The values of all tokens, each times the weight it is looked at with."""
    weights, values = at.of_head(0)[at.position], at.of_head(1)[:, at.column]
    terms = weights * values
    seen = at.position + 1 if is_masked(at.place.inputs[0], at.known) else len(terms)
    return Made("mix", float(terms.sum()), {}, weights[:seen], values[:seen], terms[:seen])


def is_masked(name: str, known: Mapping[str, Place]) -> bool:
    """Whether these weights were made of scores behind a mask."""
    place = known[name]
    return place.operation == "mask" or any(
        is_masked(one, known) for one in place.inputs if known[one].axes[-1] == "key"
    )


def merge(at: At) -> Made:
    """A number of one of the heads, in its place among the others."""
    heads = at.run[at.place.inputs[0]]
    head, column = divmod(at.column, heads.shape[-1])
    return Made("copy", float(heads[head, at.position, column]), {"head": head, "column": column})


def activate(at: At) -> Made:
    """The number times the share of it that the activation lets through: for GELU from 0 (far below zero) to 1."""
    x = at.vector()[at.column]
    through = SHARES[at.run.lm.config.activation](x)
    return Made("activation", float(x * through), {"x": float(x), "share": float(through)})


SHARES: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu_tanh": lambda x: (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    "gelu": lambda x: (1 + torch.erf(x / math.sqrt(2))) / 2,
    "relu": lambda x: (x > 0).double(),
    "silu": torch.sigmoid,
}
"""Every activation there is, is a number times a share of it."""


MAKERS: dict[str, Callable[[At], Made]] = {
    "look up": look_up, "add": add, "norm": norm, "linear": linear, "score": score, "mask": mask, "softmax": softmax,
    "mix": mix, "merge": merge, "activate": activate, "distance": distance, "copy": copy,
}  # fmt: skip
"""How each operation of a model's map is made."""
