"""docs/cli.md shows what the commands print. `python tests/cli/test_docs.py` writes their output into it anew."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "cli.md"
BUILTIN = ROOT / "src" / "cutaway" / "data" / "builtin"
BLOCK = re.compile(r"(```console( builtin)?\n)(.*?)```", re.DOTALL)


def blocks(builtin: bool) -> list[str]:
    return [found[3] for found in BLOCK.finditer(PAGE.read_text()) if bool(found[2]) is builtin]


def sessions(block: str) -> list[tuple[str, str]]:
    """The commands of a block, each with what it prints."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(command, printed) for command, _, printed in (part.partition("\n") for part in parts)]


@pytest.mark.parametrize("block", blocks(builtin=False), ids=lambda block: block.splitlines()[0])
def test_what_the_page_shows_is_what_the_command_prints(cutaway, monkeypatch, block):
    monkeypatch.setenv("COLUMNS", "80")
    for command, printed in sessions(block):
        ran = cutaway(*shlex.split(command)[1:])
        assert ran.out + ran.err == printed


@pytest.mark.skipif(not BUILTIN.is_dir(), reason="there is no built-in model yet")
@pytest.mark.parametrize("block", blocks(builtin=True), ids=lambda block: block.splitlines()[0])
def test_commands_with_the_built_in_model_run(cutaway, monkeypatch, block):
    """Not compared: another built-in model writes other words."""
    monkeypatch.chdir(ROOT)
    for command, _ in sessions(block):
        assert cutaway(*shlex.split(command.partition(" < ")[0])[1:], stdin=b"").code == 0


@pytest.mark.parametrize(
    "verb",
    [
        "explore", "serve", "generate", "predict", "tokens", "parameters", "train", "evaluate", "translate",
        "summarize", "classify", "fill", "embed", "words", "compose", "pull", "convert", "bench",
    ],
)  # fmt: skip
def test_every_verb_and_every_option_it_has_is_on_the_page(cutaway, verb):
    section = PAGE.read_text().split(f"\n## {verb}\n")[1].split("\n## ")[0]
    shared = PAGE.read_text().split("\n## Shared\n")[1].split("\n## ")[0]
    options = set(re.findall(r"--[a-z][a-z-]+", cutaway(verb, "--help").out.split("Options")[1])) - {"--help"}
    assert sorted(option for option in options if option not in section and option not in shared) == []


def refresh() -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"COLUMNS": "80", "PATH": path}

    def run(found: re.Match[str]) -> str:
        if found[2] and not BUILTIN.is_dir():
            return found[0]
        block = found[1]
        for command, _ in sessions(found[3]):
            ran = subprocess.run(
                command, shell=True, text=True, env=environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            block += f"$ {command}\n{ran.stdout}"
        return f"{block}```"

    PAGE.write_text(BLOCK.sub(run, PAGE.read_text()))


if __name__ == "__main__":
    refresh()
