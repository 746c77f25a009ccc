"""The token's journey in steps: for each, the vectors and matrices of its picture, at one token, layer and head."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cutaway.errors import CutawayError, nearest
from cutaway.inspect.arithmetic import PROBABILITIES, STANDARDIZED, standardized
from cutaway.inspect.numbers import Array, Token, array, rounded
from cutaway.inspect.parameters import find
from cutaway.inspect.picture import picture
from cutaway.inspect.runs import Run

NEIGHBOURS = 3
"""So many rows of a matrix are shown above and below the one that is read."""
MATRIX = 96
"""A matrix of weights is drawn in at most so many cells each way."""


@dataclass(frozen=True)
class Part:
    """One vector or table of a step's picture. `name` is what `explain` calls it; weights have the model's names."""

    role: str
    """What it is in the picture: in, out, weights, keys, ..."""
    name: str
    axis: str
    """What a row is: position, head, id (of the vocabulary), layer, or weight (a learned number: nothing made it)."""
    rows: tuple[int, ...]
    values: Array
    """[row, column]"""

    def to_dict(self) -> dict[str, Any]:
        return {
            "role": self.role,
            "name": self.name,
            "axis": self.axis,
            "rows": list(self.rows),
            "columns": self.values.shape[1],
            "values": rounded(self.values),
        }


@dataclass(frozen=True)
class Step:
    """One step of the walk with what its picture is made of."""

    step: str
    layer: int
    head: int
    position: int
    parts: tuple[Part, ...]
    words: tuple[Token, ...] = ()
    """The vocabulary entries that the rows of the parts are, where they are entries."""
    shape: tuple[int, ...] = ()
    """Inputs and outputs of the step's matrix, where it has one."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "layer": self.layer,
            "head": self.head,
            "position": self.position,
            "parts": [part.to_dict() for part in self.parts],
            "words": [word.to_dict() for word in self.words],
            "shape": list(self.shape),
        }


@dataclass(frozen=True)
class Here:
    """Where the walk stands: what each step's picture is a function of."""

    run: Run
    layer: int
    head: int
    position: int
    limit: int

    def full(self, name: str) -> str:
        return f"blocks.{self.layer}{name}" if name.startswith(".") else name

    def vector(self, role: str, name: str) -> Part:
        """A vector of this token."""
        name = self.full(name)
        return Part(role, name, "position", (self.position,), array(self.run[name][self.position][None]))

    def heads(self, role: str, name: str) -> Part:
        """What every head has for this token. [head, column]"""
        name = self.full(name)
        found = array(self.run[name][:, self.position])
        return Part(role, name, "head", tuple(range(len(found))), found)

    def tokens(self, role: str, name: str, rows: Sequence[int]) -> Part:
        """What this head has for some tokens. [token, column]"""
        name = self.full(name)
        return Part(role, name, "position", tuple(rows), array(self.run[name][self.head][list(rows)]))

    def row(self, role: str, name: str, keys: Sequence[int]) -> Part:
        """This token's row of a table of this head, one key a row. [key, 1]"""
        name = self.full(name)
        found = array(self.run[name][self.head, self.position][list(keys)][:, None])
        return Part(role, name, "position", tuple(keys), found)

    def before(self, role: str) -> Part:
        """The residual stream that enters this block."""
        return self.vector(role, f"blocks.{self.layer - 1}.residual" if self.layer else "residual.0")

    def looked_at(self) -> list[int]:
        """The tokens shown in a list of keys: all, or of a long text those with most weight and those nearest by."""
        count = len(self.run)
        if count <= self.limit:
            return list(range(count))
        weights = self.run[self.full(".attention.weights")][self.head, self.position]
        near = range(max(0, self.position - self.limit // 3), min(count, self.position + self.limit // 6))
        best = weights.argsort(descending=True).tolist()
        chosen = dict.fromkeys([*near, *best])
        return sorted(list(chosen)[: self.limit])


Picture = tuple[list[Part], list[int], tuple[int, ...]]
"""The parts, the vocabulary entries among them, and the shape of the matrix."""


def whole(at: Here) -> Picture:
    """The stream at this token from the bottom of the stack to the top; row 0 is before the first block."""
    layers = at.run.lm.config.layers
    stream = torch.stack([at.run.before(layer)[at.position] for layer in range(layers)])
    last = at.run[f"blocks.{layers - 1}.residual"][at.position]
    middle = torch.stack([at.run[f"blocks.{layer}.residual.middle"][at.position] for layer in range(layers)])
    parts = [
        Part("stream", "residual.0", "layer", tuple(range(layers + 1)), array(torch.cat([stream, last[None]]))),
        Part("middle", "residual.middle", "layer", tuple(range(layers)), array(middle)),
    ]
    ends, best, _ = choice(at)
    return [*parts, *ends], best, ()


def nothing(at: Here) -> Picture:
    return [], [], ()


def embedding(at: Here) -> Picture:
    matrix = at.run.lm.model.token_embedding.weight
    rows = around(at.run.ids[at.position], len(matrix))
    table = Part("matrix", "token_embedding.weight", "weight", tuple(rows), array(matrix[rows]))
    return [table, at.vector("out", "token_embedding")], rows, tuple(matrix.shape)


def place(at: Here) -> Picture:
    matrix = at.run.lm.model.position_embedding.weight
    rows = around(at.position, len(matrix))
    table = Part("matrix", "position_embedding.weight", "weight", tuple(rows), array(matrix[rows]))
    return [table, at.vector("out", "position_embedding")], [], tuple(matrix.shape)


def entry(at: Here) -> Picture:
    names = {"a": "token_embedding", "b": "position_embedding", "out": "residual.0"}
    return [at.vector(role, name) for role, name in names.items()], [], ()


def norm(source: str, module: str, out: str) -> Callable[[Here], Picture]:
    def make(at: Here) -> Picture:
        learned = at.run.lm.model.get_submodule(at.full(module).lstrip("."))
        gain, bias = (
            Part(role, f"{at.full(module)}.{kind}", "weight", (0,), array(getattr(learned, kind)[None]))
            for role, kind in (("gain", "weight"), ("bias", "bias"))
        )
        before = at.vector("in", source) if source else at.before("in")
        name = at.full(out)
        plain = array(standardized(at.run, name, at.position)[None])
        standard = Part("standard", f"{name}{STANDARDIZED}", "position", (at.position,), plain)
        return [before, standard, gain, bias, at.vector("out", out)], [], ()

    return make


def made(at: Here) -> Picture:
    """Query, key and value from one matrix."""
    table, shape = matrix(at, ".attention.queries_keys_values")
    return [at.vector("in", ".attention.norm"), table, *split(at)[0]], [], shape


def split(at: Here) -> Picture:
    return [at.heads(name, f".attention.{name}") for name in ("queries", "keys", "values")], [], ()


def scores(at: Here) -> Picture:
    shown = at.looked_at()
    query = at.tokens("query", ".attention.queries", [at.position])
    keys = at.tokens("keys", ".attention.keys", shown)
    return [query, keys, at.row("out", ".attention.scores", shown)], [], ()


def table(before: str, after: str) -> Callable[[Here], Picture]:
    def make(at: Here) -> Picture:
        shown = at.looked_at()
        return [at.row("in", before, shown), at.row("out", after, shown)], [], ()

    return make


def mix(at: Here) -> Picture:
    shown = [key for key in at.looked_at() if key <= at.position]
    weights, values = at.row("weights", ".attention.weights", shown), at.tokens("values", ".attention.values", shown)
    return [weights, values, at.tokens("out", ".attention.heads", [at.position])], [], ()


def merge(at: Here) -> Picture:
    return [at.heads("in", ".attention.heads"), at.vector("out", ".attention.merged")], [], ()


def product(source: str, weights: str, out: str) -> Callable[[Here], Picture]:
    def make(at: Here) -> Picture:
        drawn, shape = matrix(at, weights)
        return [at.vector("in", source), drawn, at.vector("out", out)], [], shape

    return make


def residual(before: str, added: str, out: str) -> Callable[[Here], Picture]:
    def make(at: Here) -> Picture:
        stream = at.vector("a", before) if before else at.before("a")
        return [stream, at.vector("b", added), at.vector("out", out)], [], ()

    return make


def activation(at: Here) -> Picture:
    return [at.vector("in", ".mlp.hidden"), at.vector("out", ".mlp.activation")], [], ()


def logits(at: Here) -> Picture:
    found, best = likeliest(at)
    scores = Part("out", "logits", "id", tuple(best), array(found[best][:, None]))
    config = at.run.lm.config
    return [at.vector("in", "final_norm"), scores], best, (config.width, config.vocabulary)


def choice(at: Here) -> Picture:
    found, best = likeliest(at)
    scores = Part("in", "logits", "id", tuple(best), array(found[best][:, None]))
    shares = Part("out", PROBABILITIES, "id", tuple(best), array(found.softmax(-1)[best][:, None]))
    return [scores, shares], best, ()


def likeliest(at: Here) -> tuple[Tensor, list[int]]:
    """The scores after this token, and the best entries of the vocabulary, as many as are shown."""
    found = at.run.logits([at.position])[0]
    known = min(len(at.run.lm.tokenizer), len(found))  # some models score more entries than there are tokens
    best: list[int] = found[:known].topk(min(10, known)).indices.tolist()
    return found, best


def matrix(at: Here, name: str) -> tuple[Part, tuple[int, ...]]:
    """A matrix of this block as a small picture, inputs x outputs."""
    drawn = picture(at.run.lm, find(at.run.lm.config, f"{at.full(name)}.weight").stored, MATRIX)
    strongest = np.where(-drawn.low > drawn.high, drawn.low, drawn.high)  # a mean of many weights would be all grey
    return Part("weights", drawn.name, "weight", tuple(range(len(strongest))), strongest), tuple(drawn.shape)


def around(row: int, rows: int) -> list[int]:
    """A row and its neighbours."""
    first = max(0, min(row - NEIGHBOURS, rows - 2 * NEIGHBOURS - 1))
    return list(range(first, min(rows, first + 2 * NEIGHBOURS + 1)))


PICTURES: dict[str, Callable[[Here], Picture]] = {
    "whole": whole,
    "token": nothing,
    "embedding": embedding,
    "position": place,
    "entry": entry,
    "attention_norm": norm("", ".attention_norm", ".attention.norm"),
    "made": made,
    "split": split,
    "scores": scores,
    "mask": table(".attention.scores", ".attention.masked"),
    "softmax": table(".attention.masked", ".attention.weights"),
    "mix": mix,
    "merge": merge,
    "projection": product(".attention.merged", ".attention.projection", ".attention.output"),
    "attention_residual": residual("", ".attention.output", ".residual.middle"),
    "mlp_norm": norm(".residual.middle", ".mlp_norm", ".mlp.norm"),
    "widen": product(".mlp.norm", ".mlp.widen", ".mlp.hidden"),
    "activation": activation,
    "narrow": product(".mlp.activation", ".mlp.projection", ".mlp.output"),
    "mlp_residual": residual(".residual.middle", ".mlp.output", ".residual"),
    "final_norm": norm("", "final_norm", "final_norm"),
    "logits": logits,
    "choice": choice,
}
"""Every step, in the order of the walk; those between entry and final_norm are taken in every block."""


@torch.no_grad()
def walk(run: Run, step: str, layer: int = 0, head: int = 0, position: int = -1, limit: int = 32) -> Step:
    """What the picture of a step shows. Lists of tokens have at most `limit` rows."""
    if step not in PICTURES:
        raise CutawayError(f"The walk has no step {step!r}.{nearest(step, PICTURES)}")
    layer, head, position = run.layer(layer), run.head(head), run.position(position)
    # The final norm reads the stream as a block after the last would.
    at = Here(run, run.lm.config.layers if step == "final_norm" else layer, head, position, limit)
    parts, ids, shape = PICTURES[step](at)
    return Step(step, layer, head, position, tuple(parts), tuple(run.token(one) for one in ids), shape)
