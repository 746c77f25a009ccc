"""The token's journey in steps: for each, the vectors and matrices of its picture, at one token, layer and head.

The steps are those of the model's map; a picture is made by the operation that makes the step's places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cutaway.errors import CutawayError, nearest
from cutaway.inspect.arithmetic import STANDARDIZED, is_masked, standardized
from cutaway.inspect.numbers import Array, Token, array, rounded
from cutaway.inspect.parameters import find
from cutaway.inspect.picture import picture
from cutaway.inspect.runs import Run
from cutaway.models.architecture import Place, places
from cutaway.models.steps import LOGITS, PROBABILITIES, StepSpec, model_map

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
    made: tuple[Place, ...]
    """What the step makes, at this layer."""

    @cached_property
    def known(self) -> dict[str, Place]:
        return places(self.run.lm.config)

    @property
    def place(self) -> Place:
        return self.made[0]

    def own(self, role: str, name: str) -> Part:
        """What this token has: its vector, or every head's. [1 or head, column]"""
        if (across := self.known[name].axes[0]) not in ("head", "character"):
            return self.tokens(role, name, [self.position])
        found = array(self.run[name][:, self.position])
        return Part(role, name, across, tuple(range(len(found))), found)

    def tokens(self, role: str, name: str, rows: Sequence[int]) -> Part:
        """What this head has for some tokens, or where there are no heads they have themselves. [token, column]"""
        return Part(role, name, "position", tuple(rows), array(self.of_head(name)[list(rows)]))

    def row(self, role: str, name: str, keys: Sequence[int]) -> Part:
        """This token's row of a table, one key a row. [key, 1]"""
        found = array(self.of_head(name)[self.position][list(keys)][:, None])
        return Part(role, name, "position", tuple(keys), found)

    def of_head(self, name: str) -> Tensor:
        return self.run[name][self.head] if self.known[name].axes[0] == "head" else self.run[name]

    def attended(self) -> list[int]:
        """The tokens shown in a list of keys: all, or of a long text those with most weight and those nearest by."""
        count = len(self.run)
        if count <= self.limit:
            return list(range(count))
        name = self.place.inputs[0] if self.place.operation == "mix" else self.place.name
        for place in self.known.values():  # from the scores to the weights made of them
            if name in place.inputs and place.axes[-1] == "key":
                name = place.name
        near = range(max(0, self.position - self.limit // 3), min(count, self.position + self.limit // 6))
        best = self.of_head(name)[self.position].argsort(descending=True).tolist()
        chosen = dict.fromkeys([*near, *best])
        return sorted(list(chosen)[: self.limit])


Picture = tuple[list[Part], list[int], tuple[int, ...]]
"""The parts, the vocabulary entries among them, and the shape of the matrix."""


def stack(at: Here) -> Picture:
    """The stream at this token from the bottom of the stack to the top; row 0 is before the first block. Then what each
    part of a block but the last hands on.
    """
    steps, layers = model_map(at.run.lm.config).steps, model_map(at.run.lm.config).layers
    last = {step.group: step.places[-1] for step in steps if step.block}  # the place each part ends with
    *between, end = last.values()
    first = next(place for place in at.known.values() if place.block == 0).inputs[0]
    entry = "residual.0" if "residual.0" in at.known else first

    def through(role: str, name: str, names: list[str]) -> Part:
        found = torch.stack([at.run[one][at.position] for one in names])
        return Part(role, name, "layer", tuple(range(len(names))), array(found))

    def everywhere(pattern: str) -> list[str]:
        return [pattern.replace("*", str(layer)) for layer in range(layers)]

    parts = [through("stream", entry, [entry, *everywhere(end)])]
    for one in between:
        parts.append(through(one.rpartition(".")[2], one.removeprefix("blocks.*."), everywhere(one)))
    ends, best, _ = choose(at) if LOGITS in at.known else nothing(at)
    return [*parts, *ends], best, ()


def nothing(at: Here) -> Picture:
    return [], [], ()


def look_up(at: Here) -> Picture:
    """A row of a matrix, among its neighbours."""
    matrix, of_text = weight(at), at.place.inputs == ("ids",)
    rows = around(at.run.looked_up(at.place, at.position), len(matrix))
    table = Part("matrix", f"{at.place.module}.weight", "weight", tuple(rows), array(matrix[rows]))
    return [table, at.own("out", at.place.name)], rows if of_text else [], tuple(matrix.shape)


def add(at: Here) -> Picture:
    a, b = at.place.inputs
    return [at.own("a", a), at.own("b", b), at.own("out", at.place.name)], [], ()


def norm(at: Here) -> Picture:
    name, learned = at.place.name, at.run.lm.model.get_submodule(at.place.module)
    gain, bias = (
        Part(role, f"{at.place.module}.{kind}", "weight", (0,), array(getattr(learned, kind)[None]))
        for role, kind in (("gain", "weight"), ("bias", "bias"))
    )
    plain = array(standardized(at.run, name, at.position)[None])
    standard = Part("standard", f"{name}{STANDARDIZED}", "position", (at.position,), plain)
    return [at.own("in", at.place.inputs[0]), standard, gain, bias, at.own("out", name)], [], ()


def linear(at: Here) -> Picture:
    """A vector times a matrix; one matrix may make several things."""
    table, shape = matrix(at)
    return [at.own("in", at.place.inputs[0]), table, *show(at)[0]], [], shape


def show(at: Here) -> Picture:
    """What the step is about, and nothing of how it was made."""
    alone = len(at.made) == 1
    return [at.own("out" if alone else one.name.rpartition(".")[2], one.name) for one in at.made], [], ()


def score(at: Here) -> Picture:
    shown, (queries, keys) = at.attended(), at.place.inputs
    query = at.tokens("query", queries, [at.position])
    return [query, at.tokens("keys", keys, shown), at.row("out", at.place.name, shown)], [], ()


def table(at: Here) -> Picture:
    shown = at.attended()
    return [at.row("in", at.place.inputs[0], shown), at.row("out", at.place.name, shown)], [], ()


def mix(at: Here) -> Picture:
    weights, values = at.place.inputs
    shown = [key for key in at.attended() if key <= at.position or not is_masked(weights, at.known)]
    out = at.tokens("out", at.place.name, [at.position])
    return [at.row("weights", weights, shown), at.tokens("values", values, shown), out], [], ()


def change(at: Here) -> Picture:
    """What goes in, and what comes out."""
    before = [at.own("in", one) for one in at.place.inputs[:1] if one in at.known]
    return [*before, at.own("out", at.place.name)], [], ()


def rank(at: Here) -> Picture:
    found, best = likeliest(at)
    scores = Part("out", LOGITS, "id", tuple(best), array(found[best][:, None]))
    return [at.own("in", at.place.inputs[0]), scores], best, tuple(weight(at).shape[::-1])


def choose(at: Here) -> Picture:
    found, best = likeliest(at)
    scores = Part("in", LOGITS, "id", tuple(best), array(found[best][:, None]))
    shares = Part("out", PROBABILITIES, "id", tuple(best), array(found.softmax(-1)[best][:, None]))
    return [scores, shares], best, ()


def likeliest(at: Here) -> tuple[Tensor, list[int]]:
    """The scores after this token, and the best entries of the vocabulary, as many as are shown."""
    found = at.run.logits([at.position])[0]
    known = min(len(at.run.lm.tokenizer), len(found))  # some models score more entries than there are tokens
    best: list[int] = found[:known].topk(min(10, known)).indices.tolist()
    return found, best


def weight(at: Here) -> Tensor:
    """The matrix that the step uses, as torch has it."""
    return at.run.lm.model.get_parameter(f"{at.place.module}.weight")


def matrix(at: Here) -> tuple[Part, tuple[int, ...]]:
    """The same as a small picture, inputs x outputs."""
    spec = find(at.run.lm.config, f"{at.place.module}.weight")
    drawn = picture(at.run.lm, spec.stored, MATRIX)
    strongest = np.where(-drawn.low > drawn.high, drawn.low, drawn.high)  # a mean of many weights would be all grey
    if not spec.transposed:
        strongest = strongest.T
    return Part("weights", drawn.name, "weight", tuple(range(len(strongest))), strongest), spec.ours[::-1]


def around(row: int, rows: int) -> list[int]:
    """A row and its neighbours."""
    first = max(0, min(row - NEIGHBOURS, rows - 2 * NEIGHBOURS - 1))
    return list(range(first, min(rows, first + 2 * NEIGHBOURS + 1)))


PICTURES: dict[str, Callable[[Here], Picture]] = {
    "stack": stack, "token": nothing, "look up": look_up, "add": add, "norm": norm, "linear": linear, "show": show,
    "score": score, "mask": table, "softmax": table, "mix": mix, "rank": rank, "choose": choose,
}  # fmt: skip
"""How the picture of a step is made, by its operation; of any other it shows what changed."""


@torch.no_grad()
def walk(run: Run, step: str, layer: int = 0, head: int = 0, position: int = -1, limit: int = 32) -> Step:
    """What the picture of a step shows. Lists of tokens have at most `limit` rows."""
    steps = {one.name: one for one in model_map(run.lm.config).steps}
    if step not in steps:
        raise CutawayError(f"The walk has no step {step!r}.{nearest(step, steps)}")
    layer, head, position = run.layer(layer), run.head(head), run.position(position)
    at = Here(run, layer, head, position, limit, made_at(run, steps[step], layer))
    parts, ids, shape = PICTURES.get(steps[step].operation, change)(at)
    return Step(step, layer, head, position, tuple(parts), tuple(run.token(one) for one in ids), shape)


def made_at(run: Run, step: StepSpec, layer: int) -> tuple[Place, ...]:
    """The places that the step makes in this block."""
    known = places(run.lm.config)
    names = [name.replace("*", str(layer)) for name in step.places]
    if step.block and not any(name in known for name in names):
        raise CutawayError(f"Block {layer} has no step {step.name!r}. Choose another block.")
    return tuple(known[name] for name in names if name in known)
