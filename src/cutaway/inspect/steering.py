"""Directions found in sets of texts, kept in files, and added while a text is read or written."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from cutaway.atomic import written_beside
from cutaway.errors import CutawayError
from cutaway.inspect.change import Change, Step
from cutaway.models.architecture import places
from cutaway.parts.trace import check_name, where, within

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel, Prompt

During = Literal["all", "prompt", "written"]
FORMAT = "cutaway direction"


@dataclass(frozen=True, eq=False)
class Add(Change):
    """Add a vector of one's own to any intermediate: at one token or all, of the prompt or of what is written."""

    kind: ClassVar[str] = "add"
    name: str
    """The name of the intermediate, like `blocks.3.residual`."""
    vector: Tensor
    strength: float = 1.0
    position: int | None = None
    during: During = "all"

    def intermediate(self) -> str:
        return self.name

    def step(self, lm: LanguageModel, position: int | None, tokens: int) -> Step:
        check_one(self.name, lm)
        vector, place = torch.as_tensor(self.vector) * self.strength, where(position=position)
        if vector.ndim != 1:
            raise CutawayError(f"A vector to add has one axis, and this one has the shape {list(vector.shape)}.")
        if not bool(torch.as_tensor(self.vector).any()):
            raise CutawayError(f"The vector to add to {self.name} is zero: it would change nothing.")

        def add(value: Tensor) -> Tensor:
            if value.shape[-1] != len(vector):
                raise CutawayError(
                    f"The vector has {len(vector):,} numbers, and {self.name} has {value.shape[-1]:,} at a token."
                )
            changed = value.clone()
            changed[place.of(value)] += vector.to(value)
            return changed

        return add

    def to_dict(self) -> dict[str, Any]:
        told = {"kind": self.kind, "name": self.name, "strength": self.strength, "position": self.position}
        return {**told, "during": self.during, "vector": torch.as_tensor(self.vector).tolist()}


@dataclass(frozen=True, eq=False)
class Apply(Change):
    """Put what a function of one's own makes of an intermediate in its place: [token, width], as documented."""

    kind: ClassVar[str] = "apply"
    name: str
    function: Callable[[Tensor], Tensor]
    position: int | None = None
    during: During = "all"

    def intermediate(self) -> str:
        return self.name

    def step(self, lm: LanguageModel, position: int | None, tokens: int) -> Step:
        check_one(self.name, lm)
        place = where(position=position)

        def apply(value: Tensor) -> Tensor:
            made = self.function(value)
            if not isinstance(made, Tensor) or made.shape != value.shape:
                shape = list(made.shape) if isinstance(made, Tensor) else repr(made)[:80]
                raise CutawayError(f"The function for {self.name} gave {shape}, not the shape {list(value.shape)}.")
            if position is None:
                return made.to(value)
            changed = value.clone()
            changed[place.of(value)] = made.to(value)[place.of(value)]
            return changed

        return apply

    def to_dict(self) -> dict[str, Any]:
        told = {"kind": self.kind, "name": self.name, "position": self.position, "during": self.during}
        return {**told, "function": getattr(self.function, "__name__", "function")}


def check_one(name: str, lm: LanguageModel) -> None:
    """Refuse a name that nothing has, or several things."""
    if name not in places(lm.config):
        check_name(name, places(lm.config))
        raise CutawayError(f"{name!r} names several intermediates: make a change for each.")


@dataclass(frozen=True, eq=False)
class Direction:
    """A vector at a named place, and what it was made of."""

    name: str
    vector: Tensor
    about: dict[str, Any]

    def change(self, strength: float = 1.0, position: int | None = None, during: During = "all") -> Add:
        """Adding it, so many times as long as it is."""
        return Add(self.name, self.vector, strength, position, during)

    def save(self, path: str | Path) -> None:
        """Write it to a safetensors file."""
        about = {"format": FORMAT, "name": self.name, "about": json.dumps(self.about)}
        with written_beside(Path(path)) as beside:
            save_file({"vector": self.vector.contiguous()}, beside, about)

    @staticmethod
    def load(path: str | Path) -> Direction:
        """Read one that was saved."""
        try:
            with safe_open(path, "pt") as opened:
                about = opened.metadata() or {}
                if about.get("format") != FORMAT:
                    raise CutawayError(f"{path} is a safetensors file, but not of a direction.")
                return Direction(about["name"], opened.get_tensor("vector"), json.loads(about["about"]))
        except FileNotFoundError:
            raise CutawayError(f"There is no file {path}.") from None
        except (SafetensorError, KeyError, ValueError) as error:
            raise CutawayError(f"{path} is not a saved direction: {error}") from None


@torch.inference_mode(False)
@torch.no_grad()
def steering_vector(
    lm: LanguageModel,
    toward: Sequence[Prompt],
    away: Sequence[Prompt],
    layer: int,
    method: str = "mean",
    tokens: str = "last",
) -> Direction:
    """The direction in the residual stream after a block from one set of texts to another.

    "mean" is the difference of the two means. "pca" is the first principal component of the differences between the
    pairs (so many texts of either kind), towards the first set and as long as the mean difference. A text is its last
    token, or with tokens="mean" the mean of all of them.
    """
    name = f"blocks.{within('layer', layer, lm.config.layers)}.residual"
    for kind, texts in (("towards", toward), ("away from", away)):
        if isinstance(texts, str) or not texts:
            raise CutawayError(f"There must be a list of texts to steer {kind}, with one or more in it.")
    if method not in ("mean", "pca") or tokens not in ("last", "mean"):
        raise CutawayError(
            f"A direction is made by 'mean' or 'pca', of 'last' or 'mean' tokens: not {method!r}, {tokens!r}."
        )
    sets = [torch.stack([summed(one[name], tokens) for one in lm.traces(texts, keep=name)]) for texts in (toward, away)]
    vector = sets[0].mean(0) - sets[1].mean(0)  # [width]
    if method == "pca":
        if len(toward) != len(away) or len(toward) < 2:
            raise CutawayError(
                f"The first principal component needs 2 pairs of texts or more: here are {len(toward)} and {len(away)}."
            )
        differences = sets[0] - sets[1]
        first = torch.linalg.svd(differences.double(), full_matrices=False)[2][0].to(vector)
        vector = first * torch.sign(first @ vector) * vector.norm()
    if not float(vector.norm()):
        raise CutawayError("The two sets of texts make the same mean vector: there is no direction between them.")
    about = {"model": lm.name, "toward": len(toward), "away": len(away), "method": method, "tokens": tokens}
    return Direction(name, vector, about)


def summed(value: Tensor, tokens: str) -> Tensor:
    return value[-1].float() if tokens == "last" else value.float().mean(0)
