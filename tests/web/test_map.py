"""Causal map: the grid fills with what `lm.sweep` says, and a cell that is clicked is made."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from cutaway.inspect.change import Patch, changed
from cutaway.inspect.metric import KL, LogitDifference
from cutaway.inspect.runs import run

TEXT, OTHER = "The big dog saw the cat", "The big dog saw the hat"


def filled(page, layers: int) -> None:
    page.wait_for_function(f"document.querySelectorAll('tr.filled').length === {layers}")


def cells(page) -> dict[str, str]:
    return {
        one.get_attribute("data-cell"): one.get_attribute("aria-label")
        for one in page.query_selector_all("[data-cell]")
    }


def words(lm) -> tuple[int, int]:
    """Two tokens whose lead the two texts change."""
    return int(lm.logits(TEXT)[-1].argmax()), int(lm.logits(OTHER)[-1].argsort(descending=True)[1])


def test_without_another_text_heads_are_taken_out_one_by_one(show, builtin):
    page = show(f"#/map?text={quote(TEXT)}")
    filled(page, builtin.config.layers)
    found = builtin.sweep(TEXT, what="head", how="zero", metric=KL())
    shown = cells(page)
    assert len(shown) == found.values.numel()
    layer, head = found.strongest(1)[0]
    value = float(shown[f"{layer}.{head}"].rpartition(":")[2].replace("−", "-"))
    assert value == pytest.approx(float(found.effect[layer, head]), rel=0.02)
    page.locator(f'[data-cell="{layer}.{head}"]').click()
    page.wait_for_selector("[data-applied]")


def test_the_cell_that_is_clicked_is_patched_and_shown_before_and_after(show, settle, builtin):
    if len(builtin.ids(TEXT)) != len(builtin.ids(OTHER)):
        pytest.fail("choose two texts with as many tokens in any vocabulary of words")
    token, against = words(builtin)
    if token == against:
        against = int(builtin.logits(OTHER)[-1].argsort(descending=True)[2])
    asked = f"&what=residual&other={quote(OTHER)}&answer=id:{token}&rather=id:{against}"
    page = show(f"#/map?text={quote(TEXT)}{asked}")
    filled(page, builtin.config.layers)
    found = builtin.sweep(TEXT, OTHER, "residual", metric=LogitDifference(token, against))
    layer, unit = found.strongest(1)[0]
    value = float(cells(page)[f"{layer}.{unit}"].rpartition(":")[2].replace("−", "-"))
    assert value == pytest.approx(float(found.recovered[layer, unit]), rel=0.02, abs=0.006)
    page.locator(f'[data-cell="{layer}.{unit}"]').click()
    page.wait_for_selector("[data-applied]")
    settle(page)
    name = f"blocks.{layer - 1}.residual" if layer else "residual.0"
    after = run(builtin, OTHER, changes=[Patch(name, TEXT, position=unit)])
    wanted = changed(run(builtin, OTHER), after, k=8)
    rows = page.query_selector_all("[data-applied] .row")
    assert [int(one.get_attribute("data-token")) for one in rows] == [
        one.token.id for one in (*wanted.before, *wanted.after)
    ]


def test_texts_of_other_lengths_are_refused_in_words(show):
    page = show(f"#/map?text={quote(TEXT)}&other={quote(OTHER + ' and more')}")
    page.wait_for_selector("text=same number of tokens")
