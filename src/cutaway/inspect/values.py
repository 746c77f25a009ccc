"""Any intermediate of a run, or a slice of it: one head, one token."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cutaway.errors import CutawayError
from cutaway.inspect.numbers import Array, Axes, ViewResult, array
from cutaway.inspect.runs import Run
from cutaway.models.architecture import places
from cutaway.models.steps import LOGITS
from cutaway.parts.trace import check_name


@dataclass(frozen=True)
class Values(ViewResult):
    """The numbers of an intermediate, with the names of their axes."""

    name: str
    axes: tuple[str, ...]
    values: Array
    masked: bool = False
    """Whether a mask made it: what it hides is no number."""
    told = ("shape", "values=shown", "norm")
    hidden = ("masked",)

    @property
    def norm(self) -> float | None:
        """The length of the vector, where it is a single one."""
        return float(np.linalg.norm(self.values)) if self.axes == ("column",) else None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def shown(
        self,
    ) -> (
        Annotated[Array, Axes(1, holes=True)]
        | Annotated[Array, Axes(2, holes=True)]
        | Annotated[Array, Axes(3, holes=True)]
    ):
        return hidden_as_nan(self.values) if self.masked else self.values


def values(run: Run, name: str, position: int | None = None, head: int | None = None) -> Values:
    """An intermediate by its name: all of it, or at one token, in one head."""
    known = places(run.lm.config)
    check_name(name, known)
    axes = known[name].axes
    if name == LOGITS and position is not None:
        return Values(name, ("column",), array(run.logits([run.position(position)])[0]))
    found = run[name]
    if head is not None:
        if axes[0] != "head":
            raise CutawayError(f"{name} is not divided into heads: leave the head out.")
        found, axes = found[run.head(head)], axes[1:]
    if position is not None:
        found, axes = found[..., run.position(position), :], (*axes[:-2], axes[-1])
    return Values(name, axes, array(found), known[name].operation == "mask")


def hidden_as_nan(masked: Array) -> Array:
    """Masked scores with no number where the mask fell; the model itself puts the lowest number there is."""
    return np.where(masked <= np.finfo(np.float16).min, np.float32(math.nan), masked)
