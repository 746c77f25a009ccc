"""The whole command line, as Typer reads it: help, mistakes, and every line that is not plain (see by_hand.py)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from cutaway import __version__, cli
from cutaway.cli.options import Argument, Option, option
from cutaway.errors import CutawayError


def run(args: list[str], verbs: Iterable[str]) -> Any:
    """Carry out a command line with one of these verbs, or say what is wrong with it."""
    try:
        return build(verbs)(args, prog_name="cutaway", standalone_mode=False)
    except typer.TyperException as error:  # an option or a verb that is not there, a number that is none
        raise CutawayError(usage(error)) from None
    except typer.Abort:
        raise KeyboardInterrupt from None


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


def build(verbs: Iterable[str]) -> typer.Typer:
    """The command line with these verbs."""
    app = typer.Typer(
        name="cutaway",
        cls=Verbs,
        help="GPT-2 with the casing off: run it, look inside, train and export your own.",
        epilog='Start with: cutaway explore, or cutaway generate "Once upon a time"',
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(for_typer(cutaway))
    for verb in verbs:
        if verb != "inspect":
            app.command(cls=Verb)(for_typer(cli.find(verb)))
            continue
        from cutaway.cli import inspect as looking

        views = typer.Typer(cls=Verbs, callback=looking.alone, invoke_without_command=True)
        for view in looking.VIEWS:
            views.command(cls=Verb)(for_typer(view))
        app.add_typer(views, name="inspect", help="Look inside the model as it processes a text, in thirteen views.")
    return app


def cutaway(
    context: typer.Context,
    version: Annotated[bool, option("--version", "-V", help="Show the version and exit.")] = False,
) -> None:
    if version:
        print(f"cutaway {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help(), end="")


def for_typer(verb: Callable[..., Any]) -> Callable[..., Any]:
    """The verb, its options and arguments said in Typer's words."""

    @functools.wraps(verb)
    def call(*args: Any, **values: Any) -> Any:
        return verb(*args, **values)

    hints = {name: in_its_words(hint) for name, hint in get_type_hints(verb, include_extras=True).items()}
    signature = inspect.signature(verb)
    parameters = [one.replace(annotation=hints[name]) for name, one in signature.parameters.items()]
    call.__annotations__ = hints
    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return call


def in_its_words(hint: Any) -> Any:
    if get_origin(hint) is not Annotated:
        return hint
    kind, info = get_args(hint)
    if isinstance(info, Option):
        info = typer.Option(*info.names, metavar=info.value, help=info.help, rich_help_panel=info.panel)
    elif isinstance(info, Argument):
        info = typer.Argument(metavar=info.metavar, help=info.help, show_default=info.show_default)
    return Annotated[kind, info]


def usage(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "cutaway"
    message = error.format_message()
    return f"{message}{'' if message.endswith(('.', '?')) else '.'} See {path} --help."
