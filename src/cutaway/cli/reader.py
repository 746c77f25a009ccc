"""Reads a command line: the values that a verb is called with, or the sentence that says what is wrong.

A verb is a function whose parameters are annotated with an `Option` or an `Argument` (see options.py); they are all
there is to know, for this reader as for the help (help.py).
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from cutaway.cli.options import Argument, Option
from cutaway.errors import CutawayError

HELP = Option(("--help", "-h"), "", "Show this message and exit.", None)
PARSED: dict[type, tuple[Callable[[str], Any], str]] = {
    int: (int, "Input should be a valid integer, unable to parse string as an integer"),
    float: (float, "Input should be a valid number, unable to parse string as a number"),
    str: (str, ""),
    Path: (Path, ""),
}


@dataclass(frozen=True)
class Parameter:
    """One of a verb's: its name in Python, how it stands on the command line, and what it becomes."""

    name: str
    info: Option | Argument
    kind: type
    many: bool
    default: Any

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty

    @property
    def flag(self) -> bool:
        return self.kind is bool

    @property
    def shown(self) -> str:
        """How a message names it."""
        names = self.info.names if isinstance(self.info, Option) else (self.info.metavar,)
        return " / ".join(f"'{name}'" for name in names)


def parameters_of(verb: Callable[..., Any]) -> list[Parameter]:
    """What a verb takes, in its order."""
    hints, found = get_type_hints(verb, include_extras=True), []
    for name, one in inspect.signature(verb).parameters.items():
        kind, info = get_args(hints[name])
        if isinstance(kind, types.UnionType):
            kind = next(each for each in get_args(kind) if each is not types.NoneType)
        many = get_origin(kind) is list
        found.append(Parameter(name, info, get_args(kind)[0] if many else kind, many, one.default))
    return found


def read_line(command: str, verb: Callable[..., Any], args: list[str]) -> dict[str, Any] | None:
    """The values for a verb called `command`; None if its help is asked for."""
    parameters = parameters_of(verb)
    options = {name: one for one in parameters if isinstance(one.info, Option) for name in one.info.names}
    places = [one for one in parameters if isinstance(one.info, Argument)]
    try:
        given, loose = split(args, options)
        if HELP in (one.info for one, _ in given):
            return None
        filled: dict[str, Any] = {}
        for place in places:
            texts, loose = (loose, []) if place.many else (loose[:1], loose[1:])
            given += [(place, text) for text in texts]
        for one, text in given:
            value = True if one.flag else converted(one, text)
            filled[one.name] = [*filled.get(one.name, ()), value] if one.many else value
        for one in parameters:
            if one.required and one.name not in filled:
                kind = "option" if isinstance(one.info, Option) else "argument"
                raise CutawayError(f"Missing {kind} {one.shown}.")
        if loose:
            raise CutawayError(f"Got unexpected extra argument(s) ({' '.join(loose)}).")
    except CutawayError as error:
        raise wrong(command, error) from None
    return {one.name: filled.get(one.name, one.default) for one in parameters}


def split(args: list[str], options: Mapping[str, Parameter]) -> tuple[list[tuple[Parameter, str]], list[str]]:
    """The options with their values, in order, and what stands by itself. After `--` everything does."""
    known = {**dict.fromkeys(HELP.names, Parameter("help", HELP, bool, False, False)), **options}
    given: list[tuple[Parameter, str]] = []
    loose: list[str] = []
    rest = iter(args)
    for arg in rest:
        if arg == "--":
            return given, [*loose, *rest]
        if len(arg) < 2 or not arg.startswith("-"):
            loose.append(arg)
        elif arg.startswith("--"):
            name, equals, value = arg.partition("=")
            one = find_option(name, known)
            if one.flag and equals:
                raise CutawayError(f"Option '{name}' does not take a value.")
            given.append((one, value if equals or one.flag else next_value(name, rest)))
        else:
            given += short_options(arg[1:], known, rest)
    return given, loose


def short_options(letters: str, known: Mapping[str, Parameter], rest: Iterable[str]) -> list[tuple[Parameter, str]]:
    """`-ik5` is `-i -k 5`."""
    given: list[tuple[Parameter, str]] = []
    for at, letter in enumerate(letters, 1):
        one = find_option(f"-{letter}", known)
        if not one.flag:
            return [*given, (one, letters[at:] or next_value(f"-{letter}", rest))]
        given.append((one, ""))
    return given


def next_value(name: str, rest: Iterable[str]) -> str:
    value = next(iter(rest), None)
    if value is None:
        raise CutawayError(f"Option '{name}' requires an argument.")
    return value


def find_option(name: str, known: Mapping[str, Parameter]) -> Parameter:
    if name in known:
        return known[name]
    near = sorted(get_close_matches(name, [one for one in known if one.startswith("--")]))
    raise CutawayError(f"No such option: {name}" + (f" (Possible options: {', '.join(near)})." if near else "."))


def leading_flags(command: str, args: list[str], flags: Iterable[Option] = ()) -> tuple[set[Option], list[str]]:
    """The flags that stand before the first word of a line, and the line from there on."""
    words = (at for at, arg in enumerate(args) if arg in ("-", "--") or not arg.startswith("-"))
    first = next(words, len(args))
    known = {name: Parameter("", one, bool, False, False) for one in flags for name in one.names}
    try:
        given, _ = split(args[:first], known)
    except CutawayError as error:
        raise wrong(command, error) from None
    rest = args[first:]
    return {one.info for one, _ in given if isinstance(one.info, Option)}, rest[1:] if rest[:1] == ["--"] else rest


def no_command(command: str, name: str, known: Iterable[str]) -> CutawayError:
    """What is wrong with a verb that there is not."""
    near = ", ".join(map(repr, get_close_matches(name, known)))
    return wrong(command, CutawayError(f"No such command {name!r}.{f' Did you mean {near}?' if near else ''}"))


def converted(one: Parameter, text: str) -> Any:
    convert, problem = PARSED[one.kind]
    try:
        return convert(text)
    except ValueError:
        raise CutawayError(f"Invalid value for {one.shown}: {problem}.") from None


def wrong(command: str, error: CutawayError) -> CutawayError:
    return CutawayError(f"{error} See {command} --help.")
