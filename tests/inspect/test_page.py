"""A page is one file: nothing fetched, nothing in the data can break out of it, and every view draws."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess

import pytest

from cutaway.inspect.attention import attention, heads
from cutaway.inspect.beams import tree
from cutaway.inspect.cache import cache
from cutaway.inspect.change import AblateHead, changed
from cutaway.inspect.circuit import edges, paths
from cutaway.inspect.contexts import contexts
from cutaway.inspect.lens import lens
from cutaway.inspect.metric import LogitDifference
from cutaway.inspect.neurons import neurons
from cutaway.inspect.page import page, titles
from cutaway.inspect.path import attribution, direct, path
from cutaway.inspect.picture import picture
from cutaway.inspect.roles import roles
from cutaway.inspect.runs import run
from cutaway.inspect.saliency import saliency
from cutaway.inspect.senses import senses

WICKED = "</script><script>alert(1)</script><!-- & \u2028 <img src=x>"


@pytest.fixture(scope="session")
def views(tiny_lm, seen) -> dict[str, dict]:
    """Every view's data; groups and factors without scikit-learn, in their documented form."""
    ones = [0.5] * len(seen)
    return {
        "attention": attention(seen, 1, 1).to_dict(),
        "heads": heads(seen, picture=8).to_dict(),
        "roles": roles(tiny_lm, 5, 2).to_dict(),
        "path": {"path": path(seen).to_dict(), "attribution": attribution(seen).to_dict()},
        "lens": lens(seen, watch=[7]).to_dict(),
        "saliency": saliency(seen, [3, 4]).to_dict(),
        "neurons": neurons(seen, top=2).to_dict(),
        "groups": {"layers": [0], "groups": [{"size": 3, "mean": ones, "by_layer": [3], "examples": [[0, 1]]}]},
        "factors": {
            "count": 1, "method": "nmf", "layers": [0], "unexplained": 0.1,
            "factors": [{"tokens": ones, "share": 1.0, "by_layer": [1.0], "neurons": [[0, 1, 0.5]]}],
        },
        "change": changed(seen, run(tiny_lm, seen.ids, changes=[AblateHead(1, 0)])).to_dict(),
        "sweep": tiny_lm.sweep([1, 2, 3, 4], [1, 5, 3, 4], metric=LogitDifference(7, 9)).to_dict(),
        "edges": edges(tiny_lm, [1, 2, 3, 4], [1, 5, 3, 4], metric=LogitDifference(7, 9)).to_dict(),
        "paths": paths(tiny_lm, [1, 2, 3, 4], [1, 5, 3, 4], metric=LogitDifference(7, 9)).to_dict(),
        "direct": direct(seen).to_dict(),
        "contexts": contexts(seen, 1, 2).to_dict(),
        "senses": senses(seen, seen.text).to_dict(),
        "cache": cache(tiny_lm, "Once", 3).to_dict(),
        "beams": tree(tiny_lm, "Once", 2, 3).to_dict(),
        "parameters": picture(tiny_lm, "token_embedding.weight", 8).to_dict(),
    }  # fmt: skip


def test_there_is_a_page_for_every_view(views, seen):
    assert set(views) == set(titles())
    for view, data in views.items():
        made = page(view, seen.to_dict(), data)
        assert made.startswith("<!doctype html>") and html.escape(titles()[view]) in made


def test_a_page_fetches_nothing(views, seen):
    made = page("lens", seen.to_dict(), views["lens"])
    assert "default-src 'none'" in made
    assert not re.search(r"""(src|href)\s*=|https?://|@import|url\(|fetch\(|import\(""", made)


def test_what_a_text_holds_cannot_leave_the_data(tiny_lm, views):
    about = {**run(tiny_lm, WICKED[:20]).to_dict(), "text": WICKED, "model": WICKED}
    made = page("cache", about, views["cache"])
    assert made.count("</script>") == 2 and "<script>alert" not in made and "<!-- &" not in made and "<img" not in made
    inside = re.search(r'id="data">(.*?)</script>', made, re.DOTALL)[1]
    assert json.loads(inside)["run"]["text"] == WICKED
    assert html.escape(WICKED) in made


@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium to draw with")
def test_every_view_draws_in_a_browser(views, seen, tmp_path):
    """All of them on one page, each in a place of its own; an error would be written where its picture should be."""
    made = page("cache", seen.to_dict(), views["cache"])
    one = 'draw(document.getElementById("view"), given.view, given.run, given.data);'
    assert one in made
    every = """for (const [view, data] of Object.entries(given.data)) {
      const place = document.getElementById("view").appendChild(document.createElement("section"));
      try { draw(place, view, given.run, data); } catch (error) { place.textContent = `FAILED ${view}: ${error}`; }
      place.prepend(`view ${view} has ${place.querySelectorAll("*").length} parts. `);
    }"""
    given = {"run": seen.to_dict(), "data": views}
    data = json.dumps(given).replace("<", "\\u003c")
    made = re.sub(r'(id="data">).*?(</script>)', lambda at: at[1] + data + at[2], made, flags=re.DOTALL)
    (tmp_path / "all.html").write_text(made.replace(one, every), encoding="utf8")
    ran = subprocess.run(
        [
            "chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
            "--virtual-time-budget=5000", "--dump-dom", f"file://{tmp_path / 'all.html'}",
        ],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert re.findall(r"FAILED \w+: [^<]*", ran.stdout) == []
    parts = {view: int(count) for view, count in re.findall(r"view (\w+) has (\d+) parts", ran.stdout)}
    assert set(parts) == set(titles()) and min(parts.values()) > len(seen)
