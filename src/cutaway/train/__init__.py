"""Training: data, loop, optimiser and schedule, LoRA, distributed. `run` is the way in from Python.

from cutaway import train
train.run("my-model", texts=["Once upon a time ...", ...], steps=500)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cutaway.train.events import Event, Report

__all__ = ["run"]


def run(
    output: str | Path,
    *,
    texts: Iterable[str] | None = None,
    records: Iterable[Mapping[str, Any]] | None = None,
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None,
    task: str | Mapping[str, Any] | None = None,
    resume: bool = False,
    on_event: Callable[[Event], None] | None = None,
    stop: Callable[[], bool] | None = None,
    **settings: Any,
) -> Report:
    """Train a model and write it to the folder `output`, which `cutaway.load`, every verb and `transformers` take.

    It learns from `texts` in memory, from `records` in memory (as the `task` has them), or from `files`; lists or
    iterators, read once. `settings` are the keys of a recipe, as they are or in its tables: `steps=500`, `layers=4`,
    `from_="gpt2"`, `lora={"rank": 8}`. What is left out is chosen to fit. See `cutaway.train.loop.train` for the rest.
    """
    from cutaway.train import arguments, loop  # with all of torch
    from cutaway.train.recipe import Recipe

    given = arguments.records_of(texts, records, files, resume)
    recipe = Recipe.from_dict(arguments.tables(settings, task, files))
    return loop.train(recipe if recipe.set_keys or given else None, output, resume, on_event, stop, records=given)
