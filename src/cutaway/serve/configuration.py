"""The server's settings from the command line, the environment and a TOML file: all from one declaration.

A field of `ServeSettings` called `receive_seconds` is `--receive-seconds` on the command line, which comes first,
`CUTAWAY_SERVE_RECEIVE_SECONDS` in the environment, and `receive_seconds` in the file; sizes in bytes may be written
like 4GiB. The help is what stands below the field.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import tomllib
import types
from collections.abc import Mapping
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from cutaway.errors import CutawayError, nearest
from cutaway.home import cutaway_state
from cutaway.serve.settings import ServeSettings

BYTES = ("memory", "prefix_memory", "body", "upload")
PREFIX = "CUTAWAY_SERVE_"
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def declared() -> dict[str, Field[Any]]:
    return {one.name: one for one in fields(ServeSettings)}


def kind_of(name: str) -> type:
    """str, int, float, bool, or tuple (of texts)."""
    hint = get_type_hints(ServeSettings)[name]
    if isinstance(hint, types.UnionType):
        hint = next(one for one in get_args(hint) if one is not types.NoneType)
    found: type = get_origin(hint) or hint
    return found


def helps() -> dict[str, str]:
    """What stands below each field in the source."""
    [made] = ast.parse(inspect.getsource(ServeSettings)).body
    assert isinstance(made, ast.ClassDef)
    found: dict[str, str] = {}
    for one, below in zip(made.body, made.body[1:], strict=False):
        if isinstance(one, ast.AnnAssign) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found[ast.unparse(one.target)] = " ".join(str(below.value.value).split())
    return found


def read_settings(
    flags: Mapping[str, Any], file: str | None = None, environment: Mapping[str, str] | None = None
) -> ServeSettings:
    """The settings: flags first, then the environment, then the file, then what is usual."""
    environment = os.environ if environment is None else environment
    file = file or environment.get(f"{PREFIX}CONFIG")
    given: dict[str, Any] = read_file(Path(file)) if file else {}
    for name, text in environment.items():
        if name.startswith(PREFIX) and name != f"{PREFIX}CONFIG":
            key = name.removeprefix(PREFIX).lower()
            given[known(key, name)] = from_text(key, text, name)
    given |= {
        name: from_text(name, value, f"--{name.replace('_', '-')}") if isinstance(value, str) else value
        for name, value in flags.items()
        if not (value is None or value is False or value == [])
    }
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    return ServeSettings(**{"state": str(cutaway_state()), **given})


def read_file(path: Path) -> dict[str, Any]:
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CutawayError(f"{path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CutawayError(f"{path} is not valid TOML: {error}.") from None
    return {known(key, str(path)): from_value(key, value, f"{path}: {key}") for key, value in given.items()}


def known(key: str, where: str) -> str:
    if key not in declared():
        raise CutawayError(f"{where}: the server has no setting {key!r}.{nearest(key, declared())}")
    return key


def from_value(key: str, value: Any, where: str) -> Any:
    """A value of TOML's as the type of its setting."""
    kind = kind_of(key)
    if isinstance(value, str):
        return from_text(key, value, where)
    if kind is tuple and isinstance(value, list) and all(isinstance(one, str) for one in value):
        return tuple(value)
    if kind is bool and isinstance(value, bool):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and kind in (int, float):
        return kind(value)
    if kind is float and isinstance(value, float):
        return value
    raise wrong(where, value, kind)


def from_text(key: str, text: str, where: str) -> Any:
    """A text as the type of its setting."""
    kind = kind_of(key)
    if kind is tuple:
        return tuple(one.strip() for one in text.split(",") if one.strip())
    if kind is bool:
        if text.lower() not in WORDS:
            raise wrong(where, text, kind)
        return WORDS[text.lower()]
    if key in BYTES:
        size = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", text.strip(), re.IGNORECASE)
        if not size:
            raise CutawayError(f"{where} must be a size like 4GiB or 512MiB, not {text!r}.")
        return int(float(size[1]) * UNITS[size[2].upper()])
    try:
        return kind(text)
    except ValueError:
        raise wrong(where, text, kind) from None


def wrong(where: str, value: Any, kind: type) -> CutawayError:
    names = {int: "a whole number", float: "a number", bool: "true or false", tuple: "a list of texts", str: "text"}
    return CutawayError(f"{where} must be {names[kind]}, not {value!r}.")
