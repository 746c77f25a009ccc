"""The rooms of the house: which imports which. No room is imported by one that it needs itself."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import cutaway
from cutaway.tasks import TASKS

SOURCE = Path(cutaway.__file__).parent


def room(module: str) -> str:
    """The folder of a module below cutaway/; a module at the top is a room of its own."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "cutaway"


def imported(tree: ast.AST) -> set[str]:
    """Every module of ours that is imported, at the top or inside a function, but not for its types alone."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "cutaway":
            whole = node.module == "cutaway"
            found |= {f"cutaway.{one.name}" for one in node.names} if whole else {node.module}
        elif isinstance(node, ast.Import):
            found |= {one.name for one in node.names if one.name.startswith("cutaway.")}
        found |= imported(node)
    return found


def graph() -> dict[str, dict[str, str]]:
    """For each room the rooms it imports, and a file that does."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = ".".join(("cutaway", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        if name in ("cutaway", "cutaway.__main__"):
            continue  # the front door hands on names from everywhere
        here = found.setdefault(room(name), {})
        for other in imported(ast.parse(path.read_text(encoding="utf-8"))):
            if room(other) != room(name):
                here.setdefault(room(other), str(path.relative_to(SOURCE)))
    return found


def test_no_room_is_imported_by_one_that_it_needs():
    rooms = graph()
    try:
        tuple(TopologicalSorter(rooms).static_order())
    except CycleError as error:
        circle = error.args[1][::-1]
        steps = [f"{a} -> {b} ({rooms[a][b]})" for a, b in pairwise(circle)]
        raise AssertionError("a circle of imports: " + ", ".join(steps)) from None


def test_training_knows_no_model_and_no_task_by_name():
    kinds = {kind.__name__ for kind in TASKS.values()} | {"ClassTask", "Labelled", "Classifier", "GPT", "Config"}
    for path in sorted((SOURCE / "train").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert not [one for one in imported(tree) if one.startswith("cutaway.models.gpt2")], path
        taken = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        named = {one.name for node in taken if (node.module or "").startswith("cutaway.tasks") for one in node.names}
        assert not named & kinds, path
