"""The help of the command and of its verbs, laid out in panels."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.highlighter import RegexHighlighter
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from cutaway.cli.options import Argument, Option
from cutaway.cli.reader import HELP, Parameter, parameters_of

STYLES = {"option": "bold cyan", "switch": "bold green", "types": "bold yellow", "usage": "yellow"}


class Highlighter(RegexHighlighter):
    """Names of options, wherever they stand."""

    highlights = [  # noqa: RUF012
        r"(^|\W)(?P<switch>\-\w+)(?![a-zA-Z0-9])",
        r"(^|\W)(?P<option>\-\-[\w\-]+)(?![a-zA-Z0-9])",
        r"(?P<types>\<[^\>]+\>)",
        r"(?P<usage>Usage: )",
    ]


highlight = Highlighter()


def show_verb(command: str, verb: Callable[..., Any]) -> None:
    """The help of one verb: its docstring, its arguments, its options by their panels."""
    parameters = parameters_of(verb)
    arguments = [one for one in parameters if isinstance(one.info, Argument)]
    options = [one for one in parameters if isinstance(one.info, Option)]
    panels: dict[str, list[Parameter]] = {"Arguments": arguments, "Options": []}
    for one in [*options, Parameter("help", HELP, bool, False, False)]:
        assert isinstance(one.info, Option)
        panels.setdefault(one.info.panel or "Options", []).append(one)
    usage = " ".join([f"Usage: {command} [OPTIONS]", *map(in_usage, arguments)])
    begin(usage, inspect.getdoc(verb) or "")
    for title, some in panels.items():
        if some:
            show_panel(title, [row(one) for one in some])
    console().print()


def show_commands(
    command: str, about: str, options: Iterable[Option], commands: Mapping[str, str], epilog: str = ""
) -> None:
    """The help of a command that others stand below, each with what its help begins with."""
    begin(f"Usage: {command} [OPTIONS] COMMAND [ARGS]...", about)
    flags = [Parameter("", one, bool, False, False) for one in (*options, HELP)]
    show_panel("Options", [row(one) for one in flags])
    table = Table(show_header=False, expand=True, box=None, pad_edge=False, padding=(0, 1))
    table.add_column(style="bold cyan", no_wrap=True, width=max(map(len, commands)))
    table.add_column(ratio=10)
    for name, first in commands.items():
        table.add_row(Text(name), highlight(Text.from_markup(first)))
    console().print(Panel(table, border_style="dim", title="Commands", title_align="left"))
    if epilog:
        console().print(Padding(highlight(Text.from_markup(epilog)), 1))
    console().print()


def begin(usage: str, about: str) -> None:
    first, *others = about.split("\n\n")
    console().print(Padding(highlight(Text(usage)), 1), style="bold")
    texts: list[RenderableType] = [highlight(Text.from_markup(first.replace("\n", " ").strip()))]
    if others:
        texts += [Text(""), highlight(Text.from_markup("\n\n".join(others), style="dim"))]
    console().print(Padding(Group(*texts), (0, 1, 1, 1)))


def show_panel(title: str, rows: list[list[RenderableType]]) -> None:
    table = Table(highlight=True, show_header=False, expand=True, box=None, pad_edge=False, padding=(0, 1))
    required = any(one[0] for one in rows)
    for one in rows:
        table.add_row(*(one if required else one[1:]))
    console().print(Panel(table, border_style="dim", title=title, title_align="left"))


def row(one: Parameter) -> list[RenderableType]:
    """A parameter: whether it must be given, its names, what it takes, and what it means."""
    if isinstance(one.info, Option):
        long, short = (",".join(n for n in one.info.names if n.startswith("--") == long) for long in (True, False))
        takes, default = one.info.value, one.default
    else:
        long, short, takes = "", one.info.metavar, f"<{one.kind.__name__.lower()}>"
        default = one.default if one.info.show_default else None
    about: list[RenderableType] = [highlight(Text.from_markup(one.info.help))]
    if not (one.required or one.flag or default is None or default == ""):
        about.append(Text(f"[default: {default}]", "dim"))
    if one.required:
        about.append(Text("[required]", "dim red"))
    mark = Text("*", "red") if one.required else ""
    return [
        mark,
        highlight(long),
        highlight(short),
        "",
        "",
        Text(takes, "bold yellow", overflow="fold"),
        Columns(about),
    ]


def in_usage(one: Parameter) -> str:
    assert isinstance(one.info, Argument)
    name = one.info.metavar if one.required else f"[{one.info.metavar}]"
    return f"{name}..." if one.many else name


def console() -> Console:
    return Console(theme=Theme(STYLES), highlighter=highlight)
