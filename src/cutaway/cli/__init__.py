"""The `cutaway` command: one verb, one file.

A verb's file imports torch and the rest of the machine inside its functions, so that help comes at once. Results go to
standard output, everything about the work to standard error; a person's mistake is one line there, and exit code 2.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

from cutaway import __version__
from cutaway.cli import reader, screen
from cutaway.cli.options import Option
from cutaway.errors import CutawayError

VERBS = (
    "explore", "serve", "generate", "predict", "tokens", "parameters", "train", "evaluate", "translate", "summarize",
    "classify", "fill", "embed", "words", "compose", "pull", "convert", "bench", "inspect", "tour",
)  # fmt: skip
"""In the order of the help; each is a file, and a function in it (`inspect` and `tour` are families of them)."""

ABOUT = "GPT-2 with the casing off: run it, look inside, train and export your own."
START = 'Start with: cutaway explore, or cutaway generate "Once upon a time"'
INSPECT = "Look inside the model as it processes a text."
VERSION = Option(("--version", "-V"), "", "Show the version and exit.", None)


def find_verb(verb: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(importlib.import_module(f"cutaway.cli.{verb}"), verb)
    return found


def carry_out(args: list[str]) -> Any:
    """Call the verb that the command line names, or show the help that it asks for; the exit code, if it has one."""
    flags, rest = reader.leading_flags("cutaway", args, (VERSION,))
    if reader.HELP in flags or not (rest or flags):
        return show_commands("cutaway", ABOUT, (VERSION,), {verb: first_line(verb) for verb in VERBS}, START)
    if VERSION in flags:
        return print(f"cutaway {__version__}")
    [verb, *rest] = rest
    if verb not in VERBS:
        raise reader.no_command("cutaway", verb, VERBS)
    if verb == "tour" or (verb == "serve" and rest[:1] == ["keys"]):
        return call_below(verb, rest)
    return call_view(rest) if verb == "inspect" else call(f"cutaway {verb}", find_verb(verb), rest)


def call_view(args: list[str]) -> Any:
    """`cutaway inspect`: a view is a verb below it."""
    from cutaway.cli.inspect import verbs

    flags, rest = reader.leading_flags("cutaway inspect", args)
    views = {view.__name__: view for view in verbs()}
    if reader.HELP in flags or not rest or rest[0] not in views:
        views = {view.__name__: view for view in verbs(installed=True)}
    if reader.HELP in flags or not rest:
        return show_commands("cutaway inspect", INSPECT, (), {name: summary(view) for name, view in views.items()})
    [view, *rest] = rest
    if view not in views:
        raise reader.no_command("cutaway inspect", view, views)
    return call(f"cutaway inspect {view}", views[view], rest)


def call_below(verb: str, args: list[str]) -> Any:
    """`cutaway serve keys` and `cutaway tour`: a few verbs below a name."""
    command, rest = (f"cutaway {verb}", args) if verb == "tour" else (f"cutaway {verb} {args[0]}", args[1:])
    family = importlib.import_module(f"cutaway.cli.{command.split()[-1]}")
    flags, rest = reader.leading_flags(command, rest)
    if reader.HELP in flags or not rest:
        return show_commands(command, family.ABOUT, (), {name: summary(one) for name, one in family.VERBS.items()})
    [verb, *rest] = rest
    if verb not in family.VERBS:
        raise reader.no_command(command, verb, family.VERBS)
    return call(f"{command} {verb}", family.VERBS[verb], rest)


def first_line(verb: str) -> str:
    if verb == "tour":
        return str(importlib.import_module("cutaway.cli.tour").ABOUT)
    return INSPECT if verb == "inspect" else summary(find_verb(verb))


def summary(verb: Callable[..., Any]) -> str:
    """The first paragraph of a verb's help."""
    return " ".join((verb.__doc__ or "").partition("\n\n")[0].split())


def show_commands(*described: Any) -> None:
    from cutaway.cli import help as layout  # with more of Rich than a verb needs

    layout.show_commands(*described)


def call(command: str, verb: Callable[..., Any], args: list[str]) -> Any:
    """Call a verb with what stands on the command line, or show its help."""
    values = reader.read_line(command, verb, args)
    if values is not None:
        return verb(**values)
    from cutaway.cli import help as layout

    return layout.show_verb(command, verb)


def main() -> None:
    """The entry point: run the command line and leave with its exit code."""
    sys.exit(run(sys.argv[1:]))


def run(args: list[str]) -> int:
    """Run one command line: 0 when done, 2 for a mistake, 130 when interrupted, 1 for a bug (with its traceback)."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that cannot show a character shows a mark, never a crash
            stream.reconfigure(errors="replace")
    as_json = "--json" in args
    if sys.stdout is None:  # it was closed: there is nobody to answer
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    try:
        code = carry_out(args)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except CutawayError as error:
        return refuse(str(error), as_json)
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        return 130
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        return refuse(f"{named}{error.strerror or error}", as_json)
    except Exception:
        screen.complain("This is a bug in Cutaway, not a mistake of yours. Please report it with what follows.")
        traceback.print_exc()
        return 1


def refuse(message: str, as_json: bool) -> int:
    if as_json:
        print(json.dumps({"error": message}, ensure_ascii=False), file=sys.stderr)
    else:
        screen.complain(message)
    return 2
