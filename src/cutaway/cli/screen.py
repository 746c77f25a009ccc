"""Drawing in a terminal, shared by the verbs: bars, token chips, JSON. Calm by rule: ink, one green, dim for asides.

Rich leaves colour out when it should (a pipe, NO_COLOR, TERM=dumb); what colour would say is then said by a sign. It is
loaded when something is drawn: a text that goes through a pipe comes sooner without it.
"""

from __future__ import annotations

import json
import math
import os
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from cutaway.errors import CutawayError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

WIDEST = 100
"""Drawings do not grow beyond this many columns: a bar is read against the words beside it."""
CHIPS = ("#10331f on #c3e6cb", "#10331f on #93cfa5")
"""Tokens are green. Ink and ground are both set, so that chips read the same on light and dark terminals."""

FORCED = ("FORCE_COLOR", "TTY_COMPATIBLE")
"""What tells Rich that there is a terminal where none is seen."""


@cache
def out() -> Console:
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


@cache
def err() -> Console:
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, stderr=True)


def in_terminal(console: Callable[[], Console], stream: TextIO | None) -> bool:
    """Whether a person watches: Rich says so, but is not loaded only to say no."""
    possible = (stream is not None and stream.isatty()) or any(map(os.environ.get, FORCED))
    return (possible or "rich.console" in sys.modules) and console().is_terminal


def colourful() -> bool:
    """Whether two greens can be told apart: not among sixteen colours, and not where colour is unwanted."""
    return out().color_system in ("256", "truecolor") and not out().no_color


def unicode() -> bool:
    return out().encoding.startswith("utf")


def width() -> int:
    return min(out().width, WIDEST)


_SIGNS = {" ": "·", "\n": "⏎", "\t": "⇥", "\r": "␍"}


def visible(token: bytes) -> str:
    """A token as it can be seen: spaces as ·, line ends as ⏎, half characters and the invisible as their codes."""
    shown, broken = "", b""
    while token:
        try:
            text, bad, token = token.decode(), b"", b""
        except UnicodeDecodeError as error:
            text, bad, token = token[: error.start].decode(), token[error.start : error.end], token[error.end :]
        if text:
            shown += _codes(broken) + "".join(_sign(character) for character in text)
            broken = b""
        broken += bad
    return shown + _codes(broken)


def _codes(broken: bytes) -> str:
    return f"‹{broken.hex(' ')}›" if broken else ""


def _sign(character: str) -> str:
    if character in _SIGNS:
        return _SIGNS[character]
    if ord(character) < 0x20:
        return chr(0x2400 + ord(character))
    if character.isprintable() and not unicodedata.combining(character):
        return character
    return f"‹U+{ord(character):04X}›"


def harmless(text: str) -> str:
    """Text for a terminal: control characters other than line ends and tabs are shown and move no cursor."""
    return "".join(
        character if character in "\n\t" or unicodedata.category(character) != "Cc" else _sign(character)
        for character in text
    )


def chips(tokens: Sequence[bytes], lines: int | None = None) -> Text:
    """Tokens side by side in alternating colours, broken into lines between tokens; `lines` keeps only the last few."""
    from rich.cells import cell_len
    from rich.text import Text

    room, separator = out().width, "" if colourful() else "│" if unicode() else "|"
    rows, used = [Text()], 0
    for index, token in enumerate(tokens):
        shown = visible(token)
        size = cell_len(shown) + len(separator)
        if used and used + size > room:
            rows.append(Text())
            used = 0
        rows[-1].append(shown, CHIPS[index % 2] if colourful() else "")
        rows[-1].append(separator if index + 1 < len(tokens) else "")
        used += size
        if token.endswith(b"\n") and index + 1 < len(tokens):
            rows.append(Text())
            used = 0
    if lines is not None and len(rows) > lines:
        rows = [Text(f"… {len(rows) - lines + 1} lines above", "dim"), *rows[-(lines - 1) :]]
    return Text("\n", no_wrap=True).join(rows)


def bar(share: float, cells: int) -> str:
    """A bar that is `share` (0 to 1) of so many cells long, exact to an eighth of a cell."""
    if not math.isfinite(share):
        return ""
    eighths = round(min(max(share, 0.0), 1.0) * cells * 8)
    if unicode():
        return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
    return "#" * round(eighths / 8)


def percent(share: float) -> str:
    return f"{100 * share:6.2f}%" if share >= 0.00005 or share == 0 else "<0.01%"


class Row(NamedTuple):
    """A line of a bar chart."""

    label: str
    share: float
    style: str = ""


def bars(rows: Sequence[Row], number: bool = True) -> Text:
    """Labels, percentages and bars, one row a line; numbered from 1 except for rows that are dim."""
    from rich.cells import cell_len, set_cell_size
    from rich.text import Text

    room = width()
    widest = min(max(16, *(cell_len(row.label) for row in rows)), max(8, room - 42))
    lines = []
    for index, row in enumerate(rows, 1):
        mark = f"{index:>4}  " if number and row.style != "dim" else " " * (6 if number else 2)
        label = row.label if cell_len(row.label) <= widest else set_cell_size(row.label, widest - 1) + "…"
        lead = f"{mark}{set_cell_size(label, widest)}  {percent(row.share):>8}  "
        lines.append(Text((lead + bar(row.share, room - cell_len(lead))).rstrip(), row.style))
    return Text("\n", no_wrap=True).join(lines)


def show(text: Text | str = "", style: str = "") -> None:
    """A line on standard output. Sentences are wrapped between words on a terminal; drawings, and pipes, never."""
    from rich.text import Text

    out().print(text, style=style or None, soft_wrap=isinstance(text, Text) or not out().is_terminal)


def aside(text: str) -> None:
    """A dim line on standard error: about the work, not part of it."""
    if in_terminal(err, sys.stderr):
        err().print(text, style="dim")
    elif sys.stderr is not None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def complain(message: str) -> None:
    """What went wrong, on standard error."""
    from rich.text import Text

    err().print(Text.assemble(("cutaway: ", "bold red"), message), soft_wrap=not err().is_terminal)


def put(text: str, style: str = "") -> None:
    """A piece of a text, at once: with its style on a terminal, character for character elsewhere."""
    if in_terminal(out, sys.stdout):
        from rich.text import Text

        out().print(Text(harmless(text), style), end="", soft_wrap=True)
    else:
        sys.stdout.write(text)
    sys.stdout.flush()


def interactive() -> bool:
    """Whether a person types and reads, or a pipe does."""
    return sys.stdin.isatty() and sys.stdout.isatty()


@contextmanager
def working(on: str) -> Iterator[None]:
    """A sign of life on standard error while something takes its time; gone when it is done."""
    if not in_terminal(err, sys.stderr):
        yield
        return
    from rich.text import Text

    with err().status(Text(on, "dim"), spinner="dots", spinner_style="dim"):
        yield


def ask(question: str) -> str | None:
    """One line from the person, or from the pipe; None when there are no more."""
    if interactive():
        with suppress(ImportError):
            import readline  # noqa: F401  (input() then has arrow keys and a history)
        try:
            return input(question)
        except EOFError:
            out().print()
            return None
    if sys.stdin.isatty():
        sys.stderr.write(question)
        sys.stderr.flush()
    line = sys.stdin.buffer.readline()
    if not line:
        return None
    try:
        return line.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise CutawayError(f"Standard input is not UTF-8: {line[error.start]:#04x} is not valid there.") from None


def show_json(value: Any) -> None:
    """One value, one line, nothing else."""
    sys.stdout.write(json.dumps(_finite(value), ensure_ascii=False, allow_nan=False) + "\n")
    sys.stdout.flush()


def _finite(value: Any) -> Any:
    """JSON has no infinity: a forbidding bias of -inf is written as the text "-inf"."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
