"""A view as one file that opens anywhere, offline: its data, a small script that draws it, and nothing fetched."""

from __future__ import annotations

import html
import json
from functools import cache
from pathlib import Path
from typing import Any

from cutaway.inspect.view import views

DATA = Path(__file__).parents[1] / "data" / "inspect"

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main>
<h1>{title}</h1>
<p class="faint">{model}</p>
<div id="view"></div>
</main>
<noscript>The picture is drawn by a script in this file.</noscript>
<script type="application/json" id="data">{data}</script>
<script>
{script}
const given = JSON.parse(document.getElementById("data").textContent);
draw(document.getElementById("view"), given.view, given.run, given.data);
</script>
</body>
</html>
"""


def page(view: str, run: dict[str, Any] | None, data: dict[str, Any]) -> str:
    """One HTML file with a view's data (and its run's tokens) and the script that draws them."""
    given = {"view": view, "run": run, "data": data}
    model = (run or data).get("model", "")
    return PAGE.format(
        title=html.escape(titles()[view]),
        model=html.escape(str(model)),
        style=_file("page.css"),
        script=_file("draw.js"),
        data=harmless(json.dumps(given, ensure_ascii=False, allow_nan=False, separators=(",", ":"))),
    )


def titles() -> dict[str, str]:
    """The views that can be drawn, each with its title: those with a verb, of which a sweep has one of its own."""
    return {one.name: one.title for one in views().values() if "verb" in one.surfaces or one.name == "sweep"}


def harmless(text: str) -> str:
    """JSON that can stand inside a script element: nothing in it can end the element or begin a comment."""
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


@cache
def _file(name: str) -> str:
    return (DATA / name).read_text("utf8")
