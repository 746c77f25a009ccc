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

from cutaway.cli import by_hand, screen
from cutaway.errors import CutawayError

VERBS = (
    "explore", "generate", "predict", "tokens", "parameters", "train", "evaluate", "translate", "summarize", "classify",
    "pull", "convert", "bench", "inspect",
)  # fmt: skip
"""In the order of the help; each is a file, and a function in it (`inspect` is a family of them)."""


def find(verb: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(importlib.import_module(f"cutaway.cli.{verb}"), verb)
    return found


def carry_out(args: list[str]) -> Any:
    """Call the verb that the command line names; the exit code, if it has one."""
    verb = args[0] if args and args[0] in VERBS else None
    if verb and verb != "inspect":
        values = by_hand.read(find(verb), args[1:])
        if values is not None:
            return find(verb)(**values)
    from cutaway.cli import app

    return app.run(args, [verb] if verb else VERBS)


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
