"""Reads plain command lines by itself: Typer takes longer to start than a packed model takes to its first token.

What is not plain (a mistake, --help, anything unusual) is left to Typer, which knows what to say.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from cutaway.cli.options import Argument, Option

_PLAIN = {str: re.compile(r"(?!-).*", re.DOTALL), Path: re.compile(r"(?!-).+"), int: re.compile(r"-?\d+")}
_PLAIN[float] = re.compile(r"-?\d+(\.\d+)?")


def read(verb: Callable[..., Any], args: list[str]) -> dict[str, Any] | None:
    """What the verb is to be called with; None if the line is not a plain one."""
    values = {name: one.default for name, one in inspect.signature(verb).parameters.items()}
    options: dict[str, str] = {}
    places: list[str] = []
    kinds: dict[str, tuple[type, bool]] = {}
    for name, hint in get_type_hints(verb, include_extras=True).items():
        if name == "return":
            continue
        if get_origin(hint) is not Annotated:
            return None
        kind, info = get_args(hint)
        kinds[name] = plain_kind(kind)
        if isinstance(info, Option):
            options |= dict.fromkeys(info.names, name)
        elif isinstance(info, Argument):
            places.append(name)
    rest = iter(args)
    for arg in rest:
        given: str | None
        if arg.startswith("-"):
            option, equals, given = arg.partition("=")
            if option not in options or (equals and not option.startswith("--")):
                return None
            name = options[option]
            if kinds[name][0] is bool:
                if equals:
                    return None
                values[name] = True
                continue
            if not equals:
                given = next(rest, None)
        elif places:
            name, given = places.pop(0), arg
        else:
            return None
        kind, many = kinds[name]
        if given is None or kind not in _PLAIN or not _PLAIN[kind].fullmatch(given):
            return None
        values[name] = [*(values[name] or ()), kind(given)] if many else kind(given)
    return None if inspect.Parameter.empty in values.values() else values


def plain_kind(hint: Any) -> tuple[type, bool]:
    """`list[str] | None` -> `str` and that there may be several."""
    if isinstance(hint, types.UnionType):
        hint = next((one for one in get_args(hint) if one is not types.NoneType), hint)
    return (get_args(hint)[0], True) if get_origin(hint) is list else (hint, False)
