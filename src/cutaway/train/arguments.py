"""What `cutaway.train.run` is given, put in order: data in memory or in files, and keyword arguments as a recipe."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from cutaway.errors import CutawayError, nearest
from cutaway.tasks.task import Record
from cutaway.train.recipe import SECTIONS, attribute, keys


def records_of(
    texts: Iterable[str] | None, records: Iterable[Record] | None, files: object, resume: bool
) -> Iterator[Record] | None:
    """The records in memory, of which the first has been looked at; None where the data is in files."""
    given = [name for name, one in (("texts", texts), ("records", records), ("files", files)) if one is not None]
    if len(given) > 1 or not (given or resume):
        had = " and ".join(given) or "nothing"
        raise CutawayError(f"Give texts, records or files to train on, exactly one of these; given: {had}.")
    if texts is not None:
        return begun((as_text(number, one) for number, one in enumerate(several(texts, "texts"))), "texts")
    if records is not None:
        return begun((as_record(number, one) for number, one in enumerate(several(records, "records"))), "records")
    return None


def several(given: Any, name: str) -> Iterable[Any]:
    """Refuses what is one text or record, where many are meant."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise CutawayError(f"{name} is a list of {name} or an iterator over them, not {type(given).__name__}.")
    return given


def begun(items: Iterator[Record], name: str) -> Iterator[Record]:
    """The same items, refused if there are none: before a folder is made for them."""
    first = next(items, None)
    if first is None:
        raise CutawayError(f"There is nothing to train on: {name} is empty.")
    return chain([first], items)


def as_text(number: int, one: object) -> Record:
    if not isinstance(one, str):
        raise CutawayError(f"texts[{number}] is {type(one).__name__}, not a text; records are given as records=.")
    return {"text": one}


def as_record(number: int, one: object) -> Record:
    if not isinstance(one, Mapping):
        raise CutawayError(
            f"records[{number}] is {type(one).__name__}, not a record like {{'source': ..., 'target': ...}}; "
            "plain texts are given as texts=."
        )
    return one


def tables(settings: Mapping[str, Any], task: str | Mapping[str, Any] | None, files: Any) -> dict[str, dict[str, Any]]:
    """Keyword arguments as the tables of a recipe: `steps=5` belongs in [train], `lora={...}` is one itself."""
    made: dict[str, dict[str, Any]] = {}
    home = {attribute(key): (section, key) for section in ("data", "model", "train") for key in keys(section)}
    for name, value in settings.items():
        if name in SECTIONS and isinstance(value, Mapping):
            plain = {key: os.fspath(one) if isinstance(one, os.PathLike) else one for key, one in value.items()}
            made[name] = {**made.get(name, {}), **plain}
            continue
        if name not in home or name == "paths":
            known = [one for one in (*home, *SECTIONS, "texts", "records", "files", "task") if one != "paths"]
            if name in SECTIONS and name not in ("data", "model"):
                raise CutawayError(f"{name} is a table of settings, as in a recipe: {name}={{...}}, not {value!r}.")
            instead = " Files are given as files=." if name in ("paths", "data") else nearest(name, known)
            raise CutawayError(f"Training has no setting {name!r}.{instead}")
        section, key = home[name]
        if name == "validation":
            value = absolute(value, name)
        made.setdefault(section, {})[key] = os.fspath(value) if isinstance(value, os.PathLike) else value
    if files is not None:
        made.setdefault("data", {})["paths"] = absolute(files, "files")
    if task is not None:
        made["task"] = {"name": task} if isinstance(task, str) else dict(task)
    return made


def absolute(files: Any, name: str) -> list[str]:
    """One file or several, by their whole paths."""
    paths = [files] if isinstance(files, str | os.PathLike) else list(several(files, name))
    return [str(Path(path).absolute()) for path in paths]
