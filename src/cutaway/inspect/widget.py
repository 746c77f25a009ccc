"""The views in a notebook: the same drawing as the offline page, as a widget of Jupyter, VS Code, Colab or marimo."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from cutaway.errors import CutawayError
from cutaway.inspect.page import DATA, titles
from cutaway.inspect.path import Path
from cutaway.inspect.view import views
from cutaway.inspect.views import LONG

if TYPE_CHECKING:
    from cutaway.inspect.runs import Run

# A notebook has a style of its own: ours stays inside a shadow root. Colours can be read once the element is attached.
RENDER = """
export default {
  render({ model, el }) {
    const root = el.attachShadow({ mode: "open" });
    const style = document.createElement("style");
    style.textContent = STYLE;
    const page = document.createElement("div");
    page.className = "page";
    root.append(style, page);
    let left = false;
    const begin = () => {
      if (left) return;
      if (!el.isConnected) return void requestAnimationFrame(begin);
      const given = model.get("given");
      draw(page, given.view, given.run, given.data);
    };
    model.on("change:given", begin);
    begin();
    return () => { left = true; model.off("change:given", begin); };
  },
};
"""


class Result(Protocol):
    """What a view gives."""

    def to_dict(self) -> dict[str, Any]: ...


def widget(result: Result, run: Run | None = None, attribution: Result | None = None) -> Any:
    """A view's result as a widget: the last line of a cell shows it.

    `run` is the run it was made from; a path is drawn with its attribution.
    """
    drawn = {one.result_name: one for one in views().values() if "verb" in one.surfaces}
    kind = "Explained" if isinstance(result, Path) else type(result).__name__
    if kind not in drawn and kind != "Sweep":
        known = ", ".join(sorted({*drawn, "Path", "Sweep"}))
        raise CutawayError(f"There is no picture of a {kind}. There is one of: {known}.")
    name = "sweep" if kind == "Sweep" else drawn[kind].name
    if run is None and name != "sweep" and drawn[kind].of == "run":
        raise CutawayError(f"The picture of {name} shows the text, too: widget(result, run).")
    data = _data(name, result, run, attribution)
    return _kind()(given={"view": name, "run": run.to_dict() if run else None, "data": data})


def _data(name: str, result: Result, run: Run | None, attribution: Result | None) -> dict[str, Any]:
    if name == "path" and isinstance(result, Path):
        if attribution is None:
            raise CutawayError("The picture of a path has two parts: widget(path(run), run, attribution(run)).")
        return {"path": result.to_dict(), "attribution": attribution.to_dict()}
    if name == "attention" and run is not None and len(run) > LONG:
        return result.to_dict(("scores", "weights"))  # type: ignore[call-arg]
    return result.to_dict()


def module() -> str:
    """The script of the widget: one module that fetches nothing."""
    style = (DATA / "page.css").read_text("utf8").replace(":root", ":host")
    style = re.sub(r"^body ", ".page ", style, flags=re.MULTILINE)
    return (DATA / "draw.js").read_text("utf8") + f"const STYLE = {json.dumps(style)};\n" + RENDER


@cache
def _kind() -> Any:
    try:
        anywidget: Any = import_module("anywidget")
        traitlets: Any = import_module("traitlets")
    except ImportError:
        raise CutawayError(
            "Widgets in a notebook need anywidget, which is not installed. Install it: pip install 'cutaway[notebook]'"
        ) from None

    class View(anywidget.AnyWidget):  # type: ignore[misc]
        """One view; `given` holds what is drawn."""

        _esm = module()
        given = traitlets.Dict().tag(sync=True)

        def __repr__(self) -> str:
            return f"<{titles()[self.given['view']]}>"

    return View
