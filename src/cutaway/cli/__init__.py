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
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from cutaway import __version__
from cutaway.cli import by_hand, screen
from cutaway.cli.options import option
from cutaway.errors import CutawayError

VERBS = (
    "explore", "generate", "predict", "tokens", "parameters", "train", "evaluate", "translate", "summarize", "classify",
    "pull", "convert", "bench", "inspect",
)  # fmt: skip
"""In the order of the help; each is a file, and a function in it (`inspect` is a family of them)."""


class PlainFlag:
    """Typer would write `<bool>` after --help; our other flags say nothing there."""

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.metavar = ""
        return option


class Verb(PlainFlag, TyperCommand):
    pass


class Verbs(PlainFlag, TyperGroup):
    pass


def find(verb: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(importlib.import_module(f"cutaway.cli.{verb}"), verb)
    return found


def build(verbs: Iterable[str]) -> typer.Typer:
    """The command line with these verbs."""
    app = typer.Typer(
        name="cutaway",
        cls=Verbs,
        help="GPT-2 with the casing off: run it, look inside, take it along.",
        epilog='Begin with: cutaway explore, or cutaway generate "Once upon a time"',
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(cutaway)
    for verb in verbs:
        if verb != "inspect":
            app.command(cls=Verb)(find(verb))
            continue
        from cutaway.cli import inspect

        views = typer.Typer(cls=Verbs, callback=inspect.alone, invoke_without_command=True)
        for view in inspect.VIEWS:
            views.command(cls=Verb)(view)
        app.add_typer(views, name="inspect", help="Look inside: what the model makes of a text, in twelve views.")
    return app


def cutaway(
    context: typer.Context,
    version: Annotated[bool, option("--version", "-V", help="Show the version and leave.")] = False,
) -> None:
    if version:
        print(f"cutaway {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help(), end="")


def carry_out(args: list[str]) -> Any:
    """Call the verb that the command line names; the exit code, if it is not 0."""
    verb = args[0] if args and args[0] in VERBS else None
    if verb and verb != "inspect":
        values = by_hand.read(find(verb), args[1:])
        if values is not None:
            try:
                return find(verb)(**values)
            except typer.Exit as left:
                return left.exit_code
    return build([verb] if verb else VERBS)(args, prog_name="cutaway", standalone_mode=False)


def main() -> None:
    """The entry point: run the command line and leave with its exit code."""
    sys.exit(run(sys.argv[1:]))


def run(args: list[str]) -> int:
    """Run one command line: 0 when done, 2 for a mistake, 130 when interrupted, 1 for a bug (with its traceback)."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that cannot show a character shows a mark, never a crash
            stream.reconfigure(errors="replace")
    as_json = "--json" in args
    try:
        code = carry_out(args)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except CutawayError as error:
        return refuse(str(error), as_json)
    except typer.TyperException as error:  # an option or a verb that is not there, a number that is none
        return refuse(usage(error), as_json)
    except (KeyboardInterrupt, typer.Abort):
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


def usage(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "cutaway"
    message = error.format_message()
    return f"{message}{'' if message.endswith(('.', '?')) else '.'} See {path} --help."
