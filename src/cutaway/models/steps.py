"""A model's map as the walk and the browser read it: its steps, each with the places it makes, and once the places that
every block has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from cutaway.models.architecture import Place, architecture, places, start_of

STACKS = ("encoder", "decoder")
LOGITS = "logits"
"""What every model calls its scores over the vocabulary."""
PROBABILITIES = "probabilities"
"""Not made by the model but the last step of the walk: softmax over the logits."""
SOFTMAX_OF_LOGITS = Place(PROBABILITIES, ("token", "column"), "softmax", (LOGITS,))
MADE = {
    "ids": "token", "positions": "position", "add": "stream", "norm": "normed", "score": "score", "mask": "masked",
    "softmax": "weight", "mix": "mixed", "merge": "merged", "activate": "neurons",
}  # fmt: skip
"""The kind of thing that an operation makes (a look-up: by what is looked up), where the map does not say it."""


@dataclass(frozen=True)
class StepSpec:
    """One step of the walk."""

    name: str
    operation: str
    """The operation of the map that makes its places; or stack (the whole), token (the text is split), show (what an
    earlier step made), rank (the scores over the vocabulary), choose (softmax over them).
    """
    group: str
    """text (before the stack), the part of a block (attention, mlp), or end (after the stack)."""
    places: tuple[str, ...] = ()
    """What it makes: names, or in a block patterns (`blocks.*.attention.norm`)."""
    block: bool = False
    """Whether every block takes it."""
    named: bool = True
    """Whether the map names it, so that catalogues may have words for it; else it has the name of its place."""


@dataclass(frozen=True)
class Thing:
    """A place as the pages draw it; one that every block has stands here once."""

    name: str
    axes: tuple[str, ...]
    operation: str
    inputs: tuple[str, ...]
    kind: str
    module: str = ""
    """The module whose weights it is made with; two places that name the same one share them."""


@dataclass(frozen=True)
class Stack:
    """The encoder or the decoder of a model of two texts, as a map of its own. Its names are those of the whole without
    `encoder.` or `decoder.`; what the decoder takes from the encoder keeps it.
    """

    name: str
    layers: int
    steps: tuple[StepSpec, ...]
    places: tuple[Thing, ...]


@dataclass(frozen=True)
class Map:
    """What the pages know of a model."""

    kind: str
    title: str
    layers: int
    """How many blocks there are."""
    steps: tuple[StepSpec, ...]
    places: tuple[Thing, ...]
    stacks: tuple[Stack, ...]
    """Of a model of two texts its encoder and its decoder."""


@lru_cache(maxsize=16)
def model_map(shape: Any) -> Map:
    """The map of a model of this shape."""
    known = places(shape)
    model = architecture(shape.kind)
    stacks = tuple(stack(known, name) for name in STACKS) if start_of(shape) is not None else ()
    return Map(model.kind, model.title, layers(known), steps(known), things(known), stacks)


def stack(known: Mapping[str, Place], name: str) -> Stack:
    """One of the two, its names without its own; the scores over the vocabulary are the decoder's."""
    own = [
        replace(
            place,
            name=place.name.removeprefix(f"{name}."),
            inputs=tuple(one.removeprefix(f"{name}.") for one in place.inputs),
            module=place.module.removeprefix(f"{name}."),
        )
        for place in known.values()
        if place.name.startswith(f"{name}.") or (place.name == LOGITS and name == STACKS[-1])
    ]
    inside = {place.name: place for place in own}
    return Stack(name, layers(inside), steps(inside), things(inside))


def layers(known: Mapping[str, Place]) -> int:
    return len({place.block for place in known.values()} - {None})


def things(known: Mapping[str, Place]) -> tuple[Thing, ...]:
    """Every place once, those that every block has by their pattern."""
    found: dict[str, Thing] = {}
    for place in known.values():
        inputs = tuple(known[one].pattern if one in known else one for one in place.inputs)
        module = place.module if place.block is None else place.module.replace(f"blocks.{place.block}.", "blocks.*.", 1)
        found.setdefault(place.pattern, Thing(place.pattern, place.axes, place.operation, inputs, kind(place), module))
    return tuple(found.values())


def kind(place: Place) -> str:
    return place.kind or MADE.get(place.inputs[0] if place.operation == "look up" else place.operation, "")


def steps(known: Mapping[str, Place]) -> tuple[StepSpec, ...]:
    """The steps of the walk, in its order; those in a block once."""
    made: dict[str, dict[str, Place]] = {}
    for place in known.values():
        for name in place.steps or (place.pattern.removeprefix("blocks.*."),):
            made.setdefault(name, {}).setdefault(place.pattern, place)
    found: list[StepSpec] = []
    if any(place.block is not None for place in known.values()):
        found.append(StepSpec("whole", "stack", "text"))
    if any(place.inputs == ("ids",) for place in known.values()):
        found.append(StepSpec("token", "token", "text"))
    outside = "text"
    for name, here in made.items():
        place = next(iter(here.values()))
        if place.block is not None:
            outside = "end"
        operation = "rank" if place.name == LOGITS else place.operation
        if place.steps and place.steps[0] != name:
            operation = "show"
        group = outside if place.block is None else part(place, known)
        found.append(StepSpec(name, operation, group, tuple(here), place.block is not None, bool(place.steps)))
    if LOGITS in known:
        name = "gap" if known[LOGITS].kind == "gap" else "choice"  # of a word that is missing, or of the next
        found.append(StepSpec(name, "choose", outside, (PROBABILITIES,)))
    return tuple(found)


def part(place: Place, known: Mapping[str, Place]) -> str:
    """The part of a block that a place belongs to, by its name; what is added up belongs to what was added."""
    if place.operation == "add" and (last := known.get(place.inputs[-1])) is not None and last.block == place.block:
        return part(last, known)
    names = place.pattern.split(".")  # blocks, *, attention, scores
    if len(names) > 3:
        return names[2]
    before = known.get(place.inputs[0]) if place.operation == "norm" else None  # a norm after a sum ends its part
    return part(before, known) if before is not None and before.block == place.block else "block"
