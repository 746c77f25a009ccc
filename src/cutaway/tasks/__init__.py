"""Tasks: what turns records into something to learn, and answers into a score. A model's task is in its `task.json`."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cutaway.checkpoint.opened import open_checkpoint
from cutaway.errors import CutawayError, nearest
from cutaway.plugins import load_plugins
from cutaway.tasks.both_ways import BothWays
from cutaway.tasks.classes import Choice, Classification, ClassTask, Entailment, Labelled, Similarity
from cutaway.tasks.conversation import Chat, Completion
from cutaway.tasks.marks import Marks, Questions, Tagging
from cutaway.tasks.masked import MaskedWords
from cutaway.tasks.performance import Performances
from cutaway.tasks.sequences import Language, Summary, Translation
from cutaway.tasks.task import Arrays, Batch, Example, LeftOut, Loss, Record, Seen, Task, save_task

__all__ = [
    "TASKS", "Arrays", "Batch", "BothWays", "Chat", "Choice", "ClassTask", "Classification", "Completion", "Entailment",
    "Example", "Labelled", "Language", "LeftOut", "Loss", "Marks", "MaskedWords", "Performances", "Questions", "Record",
    "Seen", "Similarity", "Summary", "Tagging", "Task", "Translation", "load_task", "register", "save_task",
    "task_from",
]  # fmt: skip

TASKS: dict[str, type[Any]] = {
    kind.name: kind
    for kind in (
        Language, Completion, Chat, Translation, Summary, Classification, Entailment, Similarity, Choice, Performances,
        MaskedWords, Tagging, Questions, BothWays,
    )
}  # fmt: skip
"""Every kind of task, by its name."""


def register(kind: type[Task]) -> type[Task]:
    """Make a task known by its name: from now on it can be trained for, saved and loaded like the included ones."""
    if not (isinstance(kind, type) and issubclass(kind, Task) and dataclasses.is_dataclass(kind)):
        raise CutawayError(f"{kind!r} is not a task: it must be a frozen dataclass made from cutaway.tasks.Task.")
    if not isinstance(kind.name, str) or not kind.name:
        raise CutawayError(f"{kind.__name__} has no name: give it one, as in name: ClassVar[str] = 'masked words'.")
    TASKS[kind.name] = kind
    return kind


def task_from(settings: Mapping[str, Any]) -> Task:
    """The task that settings like `{"name": "translation", "separator": "<|to-french|>"}` describe."""
    name = settings.get("name")
    if name not in TASKS:
        load_plugins()
    if name not in TASKS:
        known = ", ".join(TASKS)
        raise CutawayError(f"There is no task {name!r}. Known: {known}.{nearest(str(name), TASKS)}")
    kind = TASKS[name]
    hints = typing.get_type_hints(kind) if dataclasses.fields(kind) else {}
    known_settings = [field.name for field in dataclasses.fields(kind)]
    given = {setting: value for setting, value in settings.items() if setting != "name"}
    for setting, value in given.items():
        if setting not in known_settings:
            can = f"It has {', '.join(known_settings)}." if known_settings else "It has none."
            raise CutawayError(f"The task {name} has no setting {setting!r}. {can}{nearest(setting, known_settings)}")
        given[setting] = fitting(value, hints[setting], f"{name}: {setting}")
    task: Task = kind(**given)
    return task


def fitting(value: Any, kind: Any, what: str) -> Any:
    """A setting's value as its kind (text, a whole number, yes or no, a list of texts), refused if it is of another."""
    kinds = typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    if typing.get_origin(kind) is tuple:
        if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
            return tuple(value)
        raise CutawayError(f"{what} must be a list of texts, not {value!r}.")
    if kind is float and type(value) is int:
        return float(value)
    if not isinstance(value, kinds) or isinstance(value, bool) != (bool in kinds):  # Python counts True among its ints
        named = {str: "text", bool: "true or false", float: "a number"}
        wanted = next((name for one, name in named.items() if one in kinds), "a whole number")
        raise CutawayError(f"{what} must be {wanted}, not {value!r}.")
    return value


def load_task(folder: str | Path) -> Task:
    """The task of the model in a folder; one without `task.json` holds a language model, or a classifier of others.

    A file of packed weights says its task, too.
    """
    opened = open_checkpoint(folder)
    path, settings = opened.task_file, opened.read_task()
    if not path.exists():
        from cutaway.tasks.foreign import foreign_task, is_encoder

        return foreign_task(Path(folder)) or (MaskedWords() if is_encoder(Path(folder)) else Language())
    if not isinstance(settings, dict):
        raise CutawayError(f"{path} should hold a JSON object {{...}}, and holds a {type(settings).__name__}.")
    try:
        return task_from(settings)
    except CutawayError as error:
        raise CutawayError(f"{path}: {error}") from None
