"""A page is one file: nothing fetched, nothing in the data can break out of it, and every view draws."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess

import pytest

from cutaway.cli import run as cutaway_run
from cutaway.inspect.attention import attention, heads
from cutaway.inspect.beams import tree
from cutaway.inspect.cache import cache
from cutaway.inspect.change import AblateHead, changed
from cutaway.inspect.circuit import edges, paths
from cutaway.inspect.contexts import contexts
from cutaway.inspect.gaps import gaps
from cutaway.inspect.lens import lens
from cutaway.inspect.metric import LogitDifference
from cutaway.inspect.neurons import neurons
from cutaway.inspect.page import page, titles
from cutaway.inspect.pairs import attentions, learned, pair_run, sinusoids, stacks, translation, unrolled
from cutaway.inspect.path import attribution, direct, path
from cutaway.inspect.picture import picture
from cutaway.inspect.roles import roles
from cutaway.inspect.runs import Run, run
from cutaway.inspect.saliency import saliency
from cutaway.inspect.senses import senses
from cutaway.inspect.sentences import sentences
from tests.inspect.test_pairs import make

WICKED = "</script><script>alert(1)</script><!-- & \u2028 <img src=x>"


@pytest.fixture(scope="session")
def framed(bert_lm) -> Run:
    """A text in a tiny encoder, with a gap of its own."""
    return run(bert_lm, "the robot must [MASK] a little fox")


@pytest.fixture(scope="session")
def pairs() -> dict[str, Run]:
    """Two texts in tiny models with random weights, by the name of their shape."""
    models = {name: make(name) for name in ("pre", "attention", "plain")}
    return {name: pair_run(lm, lm.pair("The fox runs.", "Le renard")) for name, lm in models.items()}


@pytest.fixture(scope="session")
def views(tiny_lm, seen, framed, pairs) -> dict[str, dict]:
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
        "gaps": gaps(framed, [2]).to_dict(),
        "sentences": sentences(framed, ["a fox sat", "robots must obey the cat"]).to_dict(),
        "translation": translation(pairs["pre"], max_tokens=6).to_dict(),
        "attentions": attentions(pairs["pre"]).to_dict(),
        "unrolled": unrolled(pairs["attention"]).to_dict(),
        "stacks": stacks(pairs["pre"]).to_dict(),
        "learned": learned(pairs["pre"], "Le renard court.").to_dict(),
        "sinusoids": sinusoids(pairs["pre"]).to_dict(),
    }  # fmt: skip


@pytest.fixture(scope="session")
def runs(views, seen, framed, pairs) -> dict[str, dict]:
    """What each view's page is of."""
    pair = ("translation", "attentions", "stacks", "learned", "sinusoids")
    own = {"gaps": framed, "sentences": framed, "unrolled": pairs["attention"], **dict.fromkeys(pair, pairs["pre"])}
    return {view: own.get(view, seen).to_dict() for view in views}


@pytest.fixture(scope="session")
def cases(views, runs, seen, framed, pairs) -> dict[str, tuple[str, dict | None, dict]]:
    """Every view once, and what is drawn in another way: nothing found, one head, no run. Name: view, run, data."""
    return {
        **{view: (view, runs[view], data) for view, data in views.items()},
        "gaps_none": ("gaps", seen.to_dict(), {"gaps": []}),
        "sentences_one": ("sentences", framed.to_dict(), sentences(framed).to_dict()),
        "senses_unknown": ("senses", seen.to_dict(), {**views["senses"], "static": [], "static_neighbours": []}),
        "attentions_one": ("attentions", pairs["attention"].to_dict(), attentions(pairs["attention"]).to_dict()),
        "unrolled_plain": ("unrolled", pairs["plain"].to_dict(), unrolled(pairs["plain"]).to_dict()),
        "stacks_alone": ("stacks", None, views["stacks"]),
    }  # fmt: skip


def test_there_is_a_page_for_every_view(views, runs):
    assert set(views) == set(titles())
    for view, data in views.items():
        made = page(view, runs[view], data)
        assert made.startswith("<!doctype html>") and html.escape(titles()[view]) in made


def test_the_page_of_two_texts_says_which_and_whose(pairs, tmp_path, capsys):
    pairs["pre"].lm.save(tmp_path / "pre")
    out = tmp_path / "stacks.html"
    told = ["The fox runs.", "--target", "Le renard", "--model", str(tmp_path / "pre"), "--html", str(out)]
    assert cutaway_run(["inspect", "stacks", *told]) == 0, capsys.readouterr().err
    given = json.loads(re.search(r'id="data">(.*?)</script>', out.read_text("utf8"), re.DOTALL)[1])
    assert [one["id"] for one in given["run"]["tokens"]] == list(pairs["pre"].ids) and given["run"]["model"]


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
def test_every_view_draws_in_a_browser(views, seen, cases, tmp_path):
    """All of them on one page, each in a place of its own; an error, a number that is none and a view
    that is only listed as JSON would be written where its picture should be.
    """
    made = page("cache", seen.to_dict(), views["cache"])
    one = 'draw(document.getElementById("view"), given.view, given.run, given.data);'
    assert one in made
    every = """for (const [name, [view, run, data]] of Object.entries(given.data)) {
      const place = document.getElementById("view").appendChild(document.createElement("section"));
      try { draw(place, view, run, data); } catch (error) { place.textContent = `FAILED ${name}: ${error}`; }
      if (place.querySelector("pre")) place.textContent = `FAILED ${name}: it has no drawing`;
      const wrong = /NaN|undefined|\\[object/.exec(place.innerHTML);
      if (wrong) place.textContent = `FAILED ${name}: ${wrong[0]}`;
      const parts = place.querySelectorAll("*").length - (run ? run.tokens.length + 1 : 0);
      place.prepend(`view ${name} has ${parts} parts. `);
    }"""
    given = {"run": None, "data": cases}
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
    assert set(parts) == set(cases)
    assert [view for view in titles() if parts[view] < 6] == ["contexts"]  # nothing has been recorded for this model
