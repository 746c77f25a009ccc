"""How one number of a run was made: the terms that were added up, the parts they were made of, and their total."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cutaway.errors import CutawayError, nearest
from cutaway.inspect.numbers import rounded
from cutaway.inspect.run import Run
from cutaway.inspect.values import AXES
from cutaway.parts.trace import names, within

PROBABILITIES = "probabilities"
"""Not a step of the model but the last of the walk: softmax over the logits."""
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
    """lookup, add, standard, norm, product, score, mask, softmax, mix, copy or activation."""
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
class Place:
    """Where in a run: all the makers below are functions of it."""

    run: Run
    name: str
    layer: int
    position: int
    column: int
    head: int

    def vector(self, name: str) -> Tensor:
        """A vector of this token, in float64. Names that begin with a dot are of this block."""
        return self.run[self.full(name)][self.position].double()

    def of_head(self, name: str) -> Tensor:
        """What this head made for every token. [token, column]"""
        return self.run[self.full(name)][self.head].double()

    def full(self, name: str) -> str:
        return f"blocks.{self.layer}{name}" if name.startswith(".") else name

    @property
    def before(self) -> str:
        """The residual stream that enters this block."""
        return f"blocks.{self.layer - 1}.residual" if self.layer else "residual.0"


@torch.no_grad()
def explain(run: Run, name: str, position: int, column: int | str, head: int | None = None, terms: int = 8) -> Cell:
    """How one number was made: `name` at a token, in a head where there are heads; `column` is the last axis (for
    logits and "probabilities" a token, by its id or its text; for scores, masked scores and weights the position
    looked at).
    """
    known = [*names(run.lm.config), PROBABILITIES]
    known += [f"{one}{STANDARDIZED}" for one in known if one.endswith("norm")]
    if name not in known:
        raise CutawayError(f"Nothing in this model is called {name!r}.{nearest(name, known)}")
    step = name.split(".", 2)[2] if name.startswith("blocks.") else name
    axes = AXES.get(step.removeprefix("attention."), ()) if step.startswith("attention.") else ()
    if axes and head is None:
        raise CutawayError(f"{name} is divided into heads: say which head.")
    if head is not None and not axes:
        raise CutawayError(f"{name} is not divided into heads: leave the head out.")
    position, head = run.position(position), None if head is None else run.head(head)
    row = _row(run, name, position, head)
    if isinstance(column, str):
        if name not in ("logits", PROBABILITIES):
            raise CutawayError(f"The columns of {name} are numbers, not tokens: {column!r:.80} is none of them.")
        column = run.token(column).id
    column = within("key" if axes[-1:] == ("key",) else "column", column, len(row))
    # The final norm reads the stream as a block after the last would.
    layer = int(name.split(".")[1]) if name.startswith("blocks.") else run.lm.config.layers
    make = MAKERS[step.removesuffix(STANDARDIZED)]
    made = make(Place(run, name, layer, position, column, head or 0))
    value = float(row[column])
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
    if name in ("logits", PROBABILITIES):
        logits = run.logits([position])[0]
        return logits if name == "logits" else logits.softmax(-1)
    if name.endswith(STANDARDIZED):
        return standardized(run, name.removesuffix(STANDARDIZED), position)
    return run[name][position] if head is None else run[name][head, position]


def standardized(run: Run, name: str, position: int) -> Tensor:
    """What a norm makes of a token's vector before gain and bias. [width]"""
    model, layer = run.lm.model, run.lm.config.layers if name == "final_norm" else int(name.split(".")[1])
    if name == "final_norm":
        vector, epsilon = run[f"blocks.{layer - 1}.residual"][position], model.final_norm.eps
    elif name.endswith(".mlp.norm"):
        vector, epsilon = run[f"blocks.{layer}.residual.middle"][position], run.block(layer).mlp_norm.eps
    else:
        vector, epsilon = run.before(layer)[position], run.block(layer).attention_norm.eps
    return F.layer_norm(vector.float(), vector.shape, eps=epsilon)


def lookup(at: Place) -> Made:
    """A number read from a row of a matrix."""
    token = at.name == "token_embedding"
    row = at.run.ids[at.position] if token else at.position
    matrix = at.run.lm.model.token_embedding if token else at.run.lm.model.position_embedding
    return Made("lookup", float(matrix.weight[row, at.column]), {"row": row, "rows": len(matrix.weight)})


def add(first: str, second: str) -> Callable[[Place], Made]:
    """Two vectors added, number by number; "" stands for the stream that enters the block."""

    def make(at: Place) -> Made:
        a, b = float(at.vector(first or at.before)[at.column]), float(at.vector(second)[at.column])
        return Made("add", a + b, {"a": a, "b": b})

    return make


def norm(source: str, module: Callable[[Place], nn.LayerNorm]) -> Callable[[Place], Made]:
    """(x - mean) / sqrt(variance + epsilon) * gain + bias, over the whole vector; or only standardized."""

    def make(at: Place) -> Made:
        vector, layer = at.vector(source or at.before), module(at)
        x, mean, variance = float(vector[at.column]), float(vector.mean()), float(vector.var(unbiased=False))
        gain, bias = float(layer.weight[at.column]), float(layer.bias[at.column])
        normal = (x - mean) / math.sqrt(variance + layer.eps)
        parts = {"x": x, "mean": mean, "variance": variance, "epsilon": layer.eps}
        if at.name.endswith(STANDARDIZED):
            return Made("standard", normal, parts)
        return Made("norm", normal * gain + bias, {**parts, "normal": normal, "gain": gain, "bias": bias})

    return make


def product(source: str, module: Callable[[Place], nn.Linear], row: Callable[[Place], int]) -> Callable[[Place], Made]:
    """A vector times a column of a matrix, plus a bias."""

    def make(at: Place) -> Made:
        vector, linear, output = at.vector(source), module(at), row(at)
        return _product(vector, linear.weight[output], float(linear.bias[output]), output)

    return make


def _product(vector: Tensor, weights: Tensor, bias: float | None, output: int) -> Made:
    weights = weights.double()
    terms = vector * weights
    dot = float(terms.sum())
    parts = {"output": output, "sum": dot} | ({} if bias is None else {"bias": bias})
    return Made("product", dot + (bias or 0.0), parts, vector, weights, terms)


def piece(which: int) -> Callable[[Place], int]:
    """Which output of the one matrix is this column of the query (0), key (1) or value (2) of a head."""
    return lambda at: which * at.run.lm.config.width + at.head * at.run.lm.config.head_width + at.column


def score(at: Place) -> Made:
    """Query times key, times the scale."""
    query, key = at.of_head(".attention.queries")[at.position], at.of_head(".attention.keys")[at.column]
    terms, scale = query * key, at.run.block(at.layer).attention.scale
    dot = float(terms.sum())
    parts = {"sum": dot, "width": len(query), "scale": scale}
    return Made("score", dot * scale, parts, query, key, terms)


def mask(at: Place) -> Made:
    """The score itself, or, for what comes later, the lowest number there is."""
    scores = at.run[at.full(".attention.scores")]
    found, seen = float(scores[at.head, at.position, at.column]), at.column <= at.position
    total = found if seen else float(torch.finfo(scores.dtype).min)
    return Made("mask", total, {"score": found, "seen": float(seen)})


def softmax(at: Place) -> Made:
    """e to the score less the highest, divided by the sum of the same for the whole row."""
    if at.name == PROBABILITIES:
        row = at.run.logits([at.position])[0].double()
    else:
        row = at.of_head(".attention.masked")[at.position]
    highest = float(row.max())
    powers = (row - highest).exp()
    total = float(powers.sum())
    parts = {"score": float(row[at.column]), "highest": highest, "power": float(powers[at.column]), "sum": total}
    if parts["score"] <= HIDDEN:
        parts["score"] = -math.inf
    return Made("softmax", parts["power"] / total, parts, row.clamp(min=HIDDEN), powers, powers)


def mix(at: Place) -> Made:
    """The values of all tokens, each times the weight it is looked at with."""
    weights, values = at.of_head(".attention.weights")[at.position], at.of_head(".attention.values")[:, at.column]
    terms = weights * values
    seen = at.position + 1
    return Made("mix", float(terms.sum()), {}, weights[:seen], values[:seen], terms[:seen])


def merge(at: Place) -> Made:
    """A number of one of the heads, in its place among the others."""
    head, column = divmod(at.column, at.run.lm.config.head_width)
    found = at.run[at.full(".attention.heads")][head, at.position, column]
    return Made("copy", float(found), {"head": head, "column": column})


def activation(at: Place) -> Made:
    """The number times the share of it that the activation lets through: for GELU from 0 (far below zero) to 1."""
    x = at.vector(".mlp.hidden")[at.column]
    through = SHARES[at.run.lm.config.activation](x)
    return Made("activation", float(x * through), {"x": float(x), "share": float(through)})


def logit(at: Place) -> Made:
    """The last vector times a row of the output matrix, which is the token embedding once more where it is tied."""
    model = at.run.lm.model
    matrix = model.token_embedding.weight if model.output is None else model.output.weight
    return _product(at.vector("final_norm"), matrix[at.column], None, at.column)


SHARES: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu_tanh": lambda x: (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    "gelu": lambda x: (1 + torch.erf(x / math.sqrt(2))) / 2,
    "relu": lambda x: (x > 0).double(),
    "silu": torch.sigmoid,
}
"""Every activation there is, is a number times a share of it."""


def _qkv(at: Place) -> nn.Linear:
    return at.run.block(at.layer).attention.queries_keys_values


MAKERS: dict[str, Callable[[Place], Made]] = {
    "token_embedding": lookup,
    "position_embedding": lookup,
    "residual.0": add("token_embedding", "position_embedding"),
    "attention.norm": norm("", lambda at: at.run.block(at.layer).attention_norm),
    "attention.queries": product(".attention.norm", _qkv, piece(0)),
    "attention.keys": product(".attention.norm", _qkv, piece(1)),
    "attention.values": product(".attention.norm", _qkv, piece(2)),
    "attention.scores": score,
    "attention.masked": mask,
    "attention.weights": softmax,
    "attention.heads": mix,
    "attention.merged": merge,
    "attention.output": product(
        ".attention.merged", lambda at: at.run.block(at.layer).attention.projection, lambda at: at.column
    ),
    "residual.middle": add("", ".attention.output"),
    "mlp.norm": norm(".residual.middle", lambda at: at.run.block(at.layer).mlp_norm),
    "mlp.hidden": product(".mlp.norm", lambda at: at.run.block(at.layer).mlp.widen, lambda at: at.column),
    "mlp.activation": activation,
    "mlp.output": product(".mlp.activation", lambda at: at.run.block(at.layer).mlp.projection, lambda at: at.column),
    "residual": add(".residual.middle", ".mlp.output"),
    "final_norm": norm("", lambda at: at.run.lm.model.final_norm),
    "logits": logit,
    PROBABILITIES: softmax,
}
"""How each named step is made, in the order of the journey."""
