"""Folders that others wrote: no task.json, but a config.json that names classes, or says that it is a translator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cutaway.checkpoint.files import read_json
from cutaway.checkpoint.shape import CONFIG
from cutaway.errors import CutawayError
from cutaway.tasks.classes import Classification
from cutaway.tasks.marks import Questions, Tagging
from cutaway.tasks.sequences import Translation
from cutaway.tasks.task import Task
from cutaway.text.sentencepieces import END, START

ARCHITECTURE = "GPT2ForSequenceClassification"
ENCODERS = ("bert", "distilbert")
"""The model types that read in both directions."""


def foreign_task(folder: Path) -> Task | None:
    """The task of a folder without task.json, as far as its config.json tells."""
    if (folder / CONFIG).is_file() and read_json(folder / CONFIG).get("model_type") == "marian":
        return Translation(separator=START, source_end=END)
    return foreign_marks(folder) or foreign_classification(folder)


def foreign_marks(folder: Path) -> Task | None:
    """The task of an encoder with a head on every token, without task.json: tags, or where an answer stands."""
    path = folder / CONFIG
    config = read_json(path) if path.is_file() else {}
    if config.get("model_type") not in ENCODERS:
        return None
    named = [str(one) for one in config.get("architectures") or ()]
    if any(one.endswith("ForQuestionAnswering") for one in named):
        return Questions()
    if not any(one.endswith("ForTokenClassification") for one in named):
        return None
    try:
        return Tagging(labels_of(config))
    except CutawayError as error:
        raise CutawayError(f"{path}: {error}") from None


def foreign_classification(folder: Path) -> Classification | None:
    """The task of a classifier without task.json, as its config.json has it; None if the folder holds no classifier."""
    path = folder / CONFIG
    if not path.is_file():
        return None
    config = read_json(path)
    if config.get("model_type") in ENCODERS:
        named = [str(one) for one in config.get("architectures") or ()]
        if not any(one.endswith("ForSequenceClassification") for one in named):
            return None
        try:
            return Classification(labels_of(config), encoder=True)
        except CutawayError as error:
            raise CutawayError(f"{path}: {error}") from None
    if ARCHITECTURE not in (config.get("architectures") or ()) and not has_head(folder):
        return None
    try:
        return Classification(labels_of(config), separators=False, padding=padding_of(config))
    except CutawayError as error:
        raise CutawayError(f"{path}: {error}") from None


def is_encoder(folder: Path) -> bool:
    """Whether a folder holds a model that reads in both directions, as its config.json has it."""
    path = folder / CONFIG
    return path.is_file() and read_json(path).get("model_type") in ENCODERS


def has_head(folder: Path) -> bool:
    """Whether the weights have a matrix of scores, whatever config.json calls the model; only names are read."""
    from cutaway.checkpoint import huggingface  # with all of torch

    return huggingface.SCORE in huggingface.read_tensors(huggingface.find_weights(folder))


def labels_of(config: dict[str, Any]) -> tuple[str, ...]:
    """The names of the classes, in order; where none are given, those that transformers makes up."""
    kind = config.get("problem_type") or "single_label_classification"
    if kind != "single_label_classification":
        raise CutawayError(
            f"problem_type is {kind!r}, and only single_label_classification is supported: one class for each text."
        )
    given = config.get("id2label")
    if given is None:
        count = config.get("num_labels", 2)
        if type(count) is not int or count < 1:
            raise CutawayError(f"num_labels must be a whole number of 1 or more, not {count!r}.")
        given = {str(number): f"LABEL_{number}" for number in range(count)}
    if not isinstance(given, dict):
        raise CutawayError(f"id2label should be a table of numbers and labels, not {given!r:.60}.")
    wanted = [str(number) for number in range(len(given))]
    if sorted(given, key=str) != sorted(wanted):
        raise CutawayError(f"id2label should name the classes 0 to {len(given) - 1}, and names {', '.join(given):.60}.")
    if len(given) == 1:
        raise CutawayError(
            "there is one label, so that the model gives a number for a text (a regression), not a class."
        )
    return tuple(str(given[number]) for number in wanted)


def padding_of(config: dict[str, Any]) -> int | None:
    """The token that transformers passes over when it looks for the last of a text."""
    given = config.get("pad_token_id")
    if given is not None and type(given) is not int:
        raise CutawayError(f"pad_token_id must be a whole number, not {given!r}.")
    return given
