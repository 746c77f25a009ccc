"""A model of another kind in a real browser: its walk is drawn from its own map, and what does not fit says so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from cutaway.inspect.arithmetic import explain
from cutaway.inspect.runs import run

TEXT = "A robot must obey"
WALK = f"#/walk?model=encoder&text={quote(TEXT)}"


@pytest.fixture
def served(server, encoder_lm) -> Iterator[Any]:
    """In place of the server that all tests share: one that knows the encoder."""
    served = server(encoder_lm)
    yield served
    served.stop()


def made(page: Any, what: str) -> float:
    return float(page.locator(f"[data-made={what}] data").first.get_attribute("value"))


CELLS = [
    ("token_embedding", "out.0.3", "token_embedding", 3, None),
    ("scores", "out.1.0", "scores", 1, 0),
    ("weights", "out.2.0", "weights", 2, 0),
    ("mixed", "out.0.5", "mixed", 5, None),
    ("hidden", "out.0.6", "hidden", 6, None),
]


def test_every_kind_of_step_shows_pythons_numbers_and_how_they_were_made(show, settle, encoder_lm):
    seen = run(encoder_lm, TEXT)
    page = show(WALK)
    for step, cell, name, column, head in CELLS:
        page.evaluate("place => { location.hash = place }", f"{WALK}&position=1&step={step}&cell={cell}")
        settle(page)
        assert page.locator("#walk-step").inner_text() == step
        wanted = explain(seen, name, 1, column, head)
        assert page.locator("[data-made=address]").inner_text().startswith(name)
        assert made(page, "value") == pytest.approx(wanted.value, rel=1e-4), step
        if page.locator("[data-made=total] data").count():
            assert made(page, "total") == pytest.approx(wanted.value, rel=1e-4), step
    assert page.locator("main [role=alert]").count() == 0


def test_the_walk_is_walked_to_its_end_over_the_tokens_of_the_text(show, settle, encoder_lm):
    page = show(WALK)
    assert page.locator(".turns .slider").count() == 2  # no layers
    drawn = page.evaluate("document.querySelector('canvas.living').describe()")
    assert [floor["kind"] for floor in drawn["floors"]] == ["text"] and len(drawn["stops"]) == 8
    lengths = {(one["name"], one["position"]): one["length"] for one in drawn["river"]}
    seen = run(encoder_lm, TEXT)
    for place in ("token_embedding", "mixed", "hidden"):
        assert lengths[place, 1] == pytest.approx(float(seen[place][1].norm()), rel=1e-4)
    page.locator("h1").focus()
    for _ in range(7):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("location.hash.includes('step=choice')")
    assert page.get_by_role("button", name="Step forward").is_disabled()
    settle(page)
    best = run(encoder_lm, TEXT).logits([-1])[0].topk(10).indices.tolist()
    rows = page.locator("[data-role=out] .row").all()
    assert [int(row.get_attribute("data-token")) for row in rows] == best


@pytest.mark.parametrize("name", ["attention", "layers", "causes", "neurons", "generate", "change"])
def test_a_page_that_does_not_fit_says_so_and_points_to_the_walk(show, settle, name):
    page = show(WALK.replace("walk", name, 1))
    assert page.locator(f"[data-unfit={name}]").count() == 1 and page.locator("main [role=alert]").count() == 0
    page.get_by_role("button", name="Open Walk").click()
    settle(page)
    assert page.locator("#walk-step").count() == 1


@pytest.mark.parametrize("name", ["predict", "weights"])
def test_a_page_that_fits_any_model_is_there(show, name):
    page = show(WALK.replace("walk", name, 1))
    assert page.locator("[data-unfit]").count() == 0
    assert page.locator("main [role=alert]").count() == 0
