"""Intermediates of a run by name, only of the layers, heads and tokens that were asked for, within a limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from cutaway.inspect.numbers import rounded
from cutaway.language_model import LanguageModel
from cutaway.serve.openai.errors import ApiError
from cutaway.serve.openai.requests import Body

if TYPE_CHECKING:
    from cutaway.inspect.runs import Run

MOST_JSON = 1 << 20
MOST_TENSORS = 1 << 25
"""So many numbers an answer may have: as JSON (about 10 MB), and as safetensors (128 MB)."""
Number = Annotated[int, Field(ge=-1_000_000, le=1_000_000)]
Some = Annotated[list[Number], Field(min_length=1, max_length=4_096)] | None


class TensorFilter(Body):
    """Intermediates by name; `blocks.*.attention.weights` names those of all layers."""

    names: list[Annotated[str, Field(max_length=200)]] = Field(min_length=1, max_length=64)
    layers: Some = Field(None, description="Only of these layers, from 0; -1 is the last.")
    heads: Some = Field(None, description="Only of these heads.")
    positions: Some = Field(None, description="Only at these tokens; -1 is the last.")


def matching(lm: LanguageModel, asked: TensorFilter) -> dict[str, tuple[str, ...]]:
    """The names that are meant, each with its axes."""
    from cutaway.models.architecture import places
    from cutaway.parts.trace import check_name, within

    known = places(lm.config)
    layers = getattr(lm.config, "layers", 1)
    only = None if asked.layers is None else {within("layer", one, layers) for one in asked.layers}
    names = {}
    for pattern in asked.names:
        found = [name for name in known if fnmatchcase(name, pattern)]
        if not found:
            check_name(pattern, known)
        for name in found:
            if only is None or known[name].block is None or known[name].block in only:
                names[name] = tuple(known[name].axes)
    return names


def collect(
    run: Run, names: Mapping[str, Sequence[str]], asked: TensorFilter, most: int = MOST_JSON, form: str = "JSON"
) -> dict[str, Any]:
    """The values, each cut down to what was asked for; refused where they are too many."""
    arrays: dict[str, Any] = {}
    total = 0
    for name, axes in names.items():
        value = cut(run[name].float().numpy(), axes, asked.heads, asked.positions)
        total += value.size
        limit(total, most, form)
        arrays[name] = np.ascontiguousarray(value)
    return arrays


def told(arrays: Mapping[str, Any], names: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """As JSON says it."""
    return {name: {"axes": list(names[name]), "values": rounded(value)} for name, value in arrays.items()}


def limit(numbers: int, most: int, form: str) -> None:
    if numbers > most:
        hint = 'Ask for "safetensors", or for' if form == "JSON" else "Ask for"
        raise ApiError(
            413, f"{numbers:,} numbers are too many for {form}: at most {most:,}. {hint} fewer of them."
        )  # fmt: skip


def cut(value: Any, axes: Sequence[str], heads: Sequence[int] | None, positions: Sequence[int] | None) -> Any:
    """Only these heads and these tokens; the keys of attention are all there."""
    from cutaway.parts.trace import within

    for axis, name in enumerate(axes):
        wanted = heads if name == "head" else positions if name in ("token", "query", "position") else None
        if wanted is not None:
            what = "head" if name == "head" else "token"
            value = value.take([within(what, one, value.shape[axis]) for one in wanted], axis=axis)
    return value
