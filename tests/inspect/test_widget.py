"""A widget carries what the view says, draws it with the page's own script, and says what is missing."""

from __future__ import annotations

import sys

import pytest

from cutaway.errors import CutawayError
from cutaway.inspect.attention import attention, heads
from cutaway.inspect.cache import cache
from cutaway.inspect.lens import lens
from cutaway.inspect.page import titles
from cutaway.inspect.path import attribution, path
from cutaway.inspect.view import views
from cutaway.inspect.widget import _kind, module, widget


def test_every_picture_of_the_page_can_be_a_widget():
    drawn = [view for view in views().values() if view.name in titles()]
    assert len({view.result_name for view in drawn}) == len(drawn) == len(titles())
    assert all(view.Result.__name__ == view.result_name for view in drawn)


def test_it_carries_the_run_and_what_the_view_says(tiny_lm, seen):
    pytest.importorskip("anywidget", reason="the extra `notebook` is not installed")
    for found, name in ((attention(seen, 0, 1), "attention"), (heads(seen, picture=8), "heads"), (lens(seen), "lens")):
        assert widget(found, seen).given == {"view": name, "run": seen.to_dict(), "data": found.to_dict()}
    both = widget(path(seen), seen, attribution(seen)).given["data"]
    assert both == {"path": path(seen).to_dict(), "attribution": attribution(seen).to_dict()}
    assert widget(cache(tiny_lm, "ab", max_tokens=2)).given["run"] is None


def test_its_style_stays_inside_and_its_script_fetches_nothing():
    script = module()
    assert ":host" in script and ":root" not in script and "\\nbody " not in script
    assert "attachShadow" in script and "export default" in script
    assert "http://" not in script and "https://" not in script


def test_what_is_missing_is_said(seen, monkeypatch):
    with pytest.raises(CutawayError, match=r"widget\(result, run\)"):
        widget(lens(seen))
    with pytest.raises(CutawayError, match="two parts"):
        widget(path(seen), seen)
    with pytest.raises(CutawayError, match="no picture of a Run"):
        widget(seen, seen)
    _kind.cache_clear()
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(CutawayError, match=r"cutaway\[notebook\]"):
        widget(lens(seen), seen)
    _kind.cache_clear()
