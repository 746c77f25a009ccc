"""What the documentation shows works: every Python block is run, and every `$ cutaway` line that needs no network."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
NEEDS_NETWORK_OR_A_PERSON = re.compile(r"cutaway (pull (?!--list)|explore|generate --interactive)|\| *head|gpt2")


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf8"), re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[str]:
    lines = "".join(blocks(page, "console")).splitlines()
    found = [line[2:] for line in lines if line.startswith("$ cutaway ")]
    return [line for line in found if not NEEDS_NETWORK_OR_A_PERSON.search(line)]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name)
def test_every_python_block_runs_as_it_stands(page, tmp_path):
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks(page, "python")), encoding="utf8")
    done = subprocess.run(
        [sys.executable, script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "CUTAWAY_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]


# docs/cli.md shows mistakes as well, and has a test of its own: tests/cli/test_docs.py.
WITH_COMMANDS = [page for page in PAGES if commands(page) and page.name != "cli.md"]


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.name)
def test_every_command_line_runs_as_it_stands(page, tmp_path):
    for line in commands(page):
        done = subprocess.run(
            [sys.executable, "-m", *shlex.split(line.split(" <")[0].split(" |")[0].split(" >")[0])],
            cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stderr[-2000:]}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_of_the_project_leads_there(page):
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text("utf8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_a_percentage_is_written_in_one_way(page):
    found = re.findall(r".{0,20}\d\s%.{0,10}", page.read_text("utf8"))
    assert not found, f"81.2%, without a space: {found}"
