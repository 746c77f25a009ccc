"""Naming, keeping and replacing what a forward pass makes on its way.

The model hands every intermediate to a *watch* under its name and goes on with whatever the watch gives back. Nobody
watching is `UNWATCHED`: it gives the value back and costs nothing. A `Trace` keeps the values it was asked for, and can
put others in their place.
"""

from __future__ import annotations

import fnmatch
import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from cutaway.errors import Code, CutawayError, nearest

UNFUSED = ("scores", "relative", "placed", "masked", "weights", "heads")
"""What only attention step by step has: the fused kernel goes from queries, keys and values to what is merged."""

Replacement = Tensor | Callable[[Tensor], Tensor]


def check_name(pattern: str, known: Iterable[str]) -> None:
    """Refuse a name, or a pattern, that nothing in the model has, with the nearest name that exists."""
    known = list(known)
    if not fnmatch.filter(known, pattern):
        raise CutawayError(f"Nothing in this model is called {pattern!r}.{nearest(pattern, known)}")


COUNTED: dict[str, Code] = {"layer": "no_layer", "head": "no_head", "token": "no_token", "neuron": "no_neuron"}


def within(what: str, number: int, count: int) -> int:
    """A number of one of so many things, checked; negative ones count from the end."""
    try:
        index = operator.index(number)
    except TypeError:
        raise CutawayError(f"A {what} is named by a whole number, not {number!r:.80}.") from None
    if not -count <= index < count:
        raise CutawayError(
            f"There is no {what} {index}: there are {count:,}, numbered from 0 to {count - 1:,}.",
            COUNTED.get(what),
            number=index,
            last=count - 1,
        )
    return index % count


class Watch(Protocol):
    """What the model asks of someone who watches."""

    @property
    def watching(self) -> bool: ...

    def __call__(self, name: str, value: Tensor) -> Tensor: ...

    def within(self, scope: str) -> Watch: ...


class _Unwatched:
    watching = False

    def __call__(self, name: str, value: Tensor) -> Tensor:
        return value

    def within(self, scope: str) -> _Unwatched:
        return self


UNWATCHED: Watch = _Unwatched()


class _Scoped:
    """A trace seen from inside one block: names get the block's name in front."""

    def __init__(self, trace: Trace, scope: str):
        self.trace, self.scope = trace, scope

    @property
    def watching(self) -> bool:
        return self.trace.looks_into(self.scope)

    def __call__(self, name: str, value: Tensor) -> Tensor:
        return self.trace(f"{self.scope}.{name}", value)

    def within(self, scope: str) -> _Scoped:
        return _Scoped(self.trace, f"{self.scope}.{scope}")


class Trace:
    """The intermediates of one forward pass, by name; `trace["blocks.5.attention.weights"]` is one of them.

    `keep` is one pattern or several (`*` stands for anything: `"blocks.*.attention.weights"`); `replace` maps patterns
    to a tensor, or to a function from the value to the one that takes its place. A function is given the value of one
    text at a time, without the batch dimension: [token, width], or [head, token, ...] inside attention.
    """

    watching = True
    single = False
    """Whether its values are those of one text, without the batch dimension."""

    def __init__(self, keep: str | Iterable[str] = "*", replace: Mapping[str, Replacement] | None = None):
        self.keep = [keep] if isinstance(keep, str) else list(keep)
        self.replace = dict(replace or {})
        self.kept: dict[str, Tensor] = {}

    def check(self, known: Iterable[str]) -> None:
        """Refuse a pattern that matches none of the model's names, with the nearest name that exists."""
        for pattern in [*self.keep, *self.replace]:
            check_name(pattern, known)

    def looks_into(self, scope: str) -> bool:
        """Whether attention in this place must go step by step, to be seen."""
        return True

    def __call__(self, name: str, value: Tensor) -> Tensor:
        for pattern, new in self.replace.items():
            if fnmatch.fnmatchcase(name, pattern):
                value = replaced(name, value, new)
        if matches(name, self.keep):
            self.kept[name] = value
        return value

    def within(self, scope: str) -> Watch:
        return _Scoped(self, scope)

    def __getitem__(self, name: str) -> Tensor:
        try:
            return self.kept[name]
        except KeyError:
            raise CutawayError(f"The trace kept nothing called {name!r}.{nearest(name, self.kept)}") from None

    def __contains__(self, name: str) -> bool:
        return name in self.kept

    def __iter__(self) -> Iterator[str]:
        return iter(self.kept)

    def __len__(self) -> int:
        return len(self.kept)

    @property
    def nbytes(self) -> int:
        return sum(value.nbytes for value in self.kept.values())

    def row(self, index: int) -> Trace:
        """The trace of one text of the batch, its values without the batch dimension."""
        if self.single:
            within("text", index, 1)
            return self
        single = Trace(self.keep, self.replace)
        single.single = True
        single.kept = {name: value[within("text", index, len(value))] for name, value in self.kept.items()}
        return single


def matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def replaced(name: str, value: Tensor, new: Replacement) -> Tensor:
    """What takes the place of a value [batch, ...]: a tensor, for one text or for all, or what a function makes."""
    if callable(new):
        rows = [as_shape_of(name, new(row), row) for row in value]
        return rows[0][None] if len(rows) == 1 else torch.stack(rows)
    try:
        return new.to(value).expand_as(value)
    except RuntimeError:
        return as_shape_of(name, new, value[0] if new.ndim < value.ndim else value)


def as_shape_of(name: str, new: Tensor, value: Tensor) -> Tensor:
    if not isinstance(new, Tensor):
        raise CutawayError(f"The replacement for {name} must be a tensor, and is {new!r:.80}.")
    if new.shape != value.shape:
        raise CutawayError(f"The replacement for {name} has the shape {list(new.shape)}, not {list(value.shape)}.")
    return new


class Complete(Exception):
    """Ends a forward pass of which nothing more is wanted."""


class EarlyTrace(Trace):
    """A trace that ends the forward pass once it has all it was asked for; its values are plain tensors."""

    gradient = False

    def __init__(
        self, known: Iterable[str], keep: str | Iterable[str] = "*", replace: Mapping[str, Replacement] | None = None
    ):
        super().__init__(keep, replace)
        self.check(known)
        self.missing = {name for name in known if matches(name, [*self.keep, *self.replace])}

    def follow(self, forward: Callable[[], object]) -> None:
        """Run the model as far as something is wanted of it."""
        try:
            with torch.inference_mode(False), torch.set_grad_enabled(self.gradient):
                if self.missing:
                    forward()
        except Complete:
            pass

    def see(self, name: str, value: Tensor) -> Tensor:
        """Keep or replace the value."""
        return super().__call__(name, value)

    def __call__(self, name: str, value: Tensor) -> Tensor:
        value = self.see(name, value)
        self.missing.discard(name)
        if not self.missing:
            raise Complete
        return value


class TextTrace(EarlyTrace):
    """The trace of one text, its values without the batch dimension.

    A value that is kept is the very one the model goes on with, so that with `gradient` what comes later can be
    differentiated by it.
    """

    single = True

    def __init__(
        self,
        known: Iterable[str],
        keep: str | Iterable[str] = "*",
        replace: Mapping[str, Replacement] | None = None,
        gradient: bool = False,
    ):
        super().__init__(known, keep, replace)
        self.gradient = gradient

    def see(self, name: str, value: Tensor) -> Tensor:
        value = super().see(name, value)
        if name not in self.kept:
            return value
        row = value[0]
        if self.gradient and not row.requires_grad:  # of a model whose weights are held still
            row.requires_grad_()
        self.kept[name] = row
        return row[None]


class Fused(Trace):
    """A trace that leaves attention its fused kernel, except where something inside it is wanted.

    Quicker for long texts, and the same numbers but for their last digit.
    """

    def looks_into(self, scope: str) -> bool:
        inside = [f"{scope}.{step}" for step in UNFUSED]
        return any(fnmatch.filter(inside, pattern) for pattern in [*self.keep, *self.replace])


@dataclass(frozen=True)
class Where:
    """A place in an intermediate: which head, which token, which column of its vector; None is all of them."""

    head: int | None = None
    position: int | None = None
    column: int | None = None

    def of(self, value: Tensor) -> tuple[Any, ...]:
        """The place as an index of this value, checked; negative numbers count from the end."""
        if self.head is not None and value.ndim < 3:
            raise CutawayError("This value is not divided into heads: leave the head out.")
        asked = {"head": self.head, "token": self.position, "column": self.column}
        axes = list(asked.items())[-min(3, value.ndim) :]
        return (..., *(_one(what, number, size) for (what, number), size in zip(axes, value.shape[-3:], strict=True)))


def where(head: int | None = None, position: int | None = None, column: int | None = None) -> Where:
    """A place in an intermediate; negative numbers count from the end, and None is all of them."""
    return Where(head, position, column)


def _one(what: str, number: int | None, count: int) -> slice:
    if number is None:
        return slice(None)
    index = within(what, number, count)
    return slice(index, index + 1)


def zeroed(at: Where) -> Callable[[Tensor], Tensor]:
    """A replacement: the value with zeros at this place."""
    return put(torch.zeros(()), at)


def put(new: Tensor, at: Where) -> Callable[[Tensor], Tensor]:
    """A replacement: the value with these numbers at this place."""
    return _changed(lambda old: new.to(old), at)


def added(vector: Tensor, at: Where) -> Callable[[Tensor], Tensor]:
    """A replacement: the value with this vector added at this place."""
    return _changed(lambda old: old + vector.to(old), at)


def _changed(make: Callable[[Tensor], Tensor], at: Where) -> Callable[[Tensor], Tensor]:
    def replace(value: Tensor) -> Tensor:
        changed, place = value.clone(), at.of(value)
        old = value[place]
        try:
            changed[place] = make(old)
        except RuntimeError:
            raise CutawayError(
                f"The new values do not have the shape of those they replace: {list(old.shape)}."
            ) from None
        return changed

    return replace


def in_turn(replacements: Iterable[Callable[[Tensor], Tensor]]) -> Callable[[Tensor], Tensor]:
    """A replacement: these, one after the other."""
    steps = list(replacements)
    return lambda value: functools.reduce(lambda value, step: step(value), steps, value)
