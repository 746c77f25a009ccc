"""Neurons: the strongest, the chosen one and the factors are those of Python; pointing lights the tokens."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from cutaway.inspect.neurons import neuron, neurons
from cutaway.inspect.runs import run

TEXT = "Once upon a time, there was a little girl named Lily. She"


def values(page, selector: str) -> list[float]:
    return [float(one.get_attribute("value")) for one in page.query_selector_all(f"{selector} data")]


def lit(page) -> list[float]:
    return [float(one.get_attribute("data-lit")) for one in page.query_selector_all("[data-lit]")]


def test_the_strongest_at_a_token_and_the_one_chosen(show, settle, builtin):
    page = show(f"#/neurons?text={quote(TEXT)}&position=9&layer=2")
    page.wait_for_selector("[data-neuron]")
    whole = run(builtin, TEXT)
    best = neurons(whole, top=10, position=9).neurons
    assert [row.get_attribute("data-neuron") for row in page.query_selector_all("[data-neuron]")] == [
        f"{one.layer}.{one.neuron}" for one in best
    ]
    assert values(page, "[data-neuron]") == pytest.approx([one.activations[9] for one in best], rel=1e-4)
    page.locator("[data-neuron] button").nth(3).click()
    settle(page)
    chosen = neuron(whole, best[3].layer, best[3].neuron)
    assert values(page, "[data-about=peak]") == pytest.approx([chosen.peak], rel=1e-4)
    assert values(page, "[data-about=write]") == pytest.approx([logit for _, logit in chosen.writes], rel=1e-4)
    assert lit(page) == pytest.approx(chosen.activations.tolist(), rel=1e-4, abs=1e-6)
    assert f"neuron={best[3].layer}.{best[3].neuron}" in page.url


def test_a_factor_lights_its_tokens(show, settle, builtin):
    pytest.importorskip("sklearn", reason="the extra `inspect` is not installed")
    from cutaway.inspect.factors import factors, groups

    page = show(f"#/neurons?text={quote(TEXT)}&parts=4&from=1&to=3")
    page.wait_for_selector(".pick")
    settle(page)
    whole = run(builtin, TEXT)
    found = factors(whole, 4, [1, 2, 3]).factors
    assert values(page, ".pick") == pytest.approx([one.share for one in found], rel=1e-3)
    page.locator(".pick").nth(2).focus()
    assert lit(page) == pytest.approx(found[2].tokens.tolist(), rel=1e-3, abs=1e-6)
    page.get_by_text("groups", exact=True).click()
    page.wait_for_selector(".pick[aria-label^=Group]")
    assert values(page, ".pick") == [one.size for one in groups(whole, 4, [1, 2, 3]).groups]


def test_no_neuron_is_marked_in_a_layer_that_the_chosen_one_is_not_in(show):
    page = show("#/neurons?text=Tom+had+a+red+ball&layer=1&neuron=3.7")
    field = page.locator(".activations").first
    assert field.locator(".band").count() == 1  # the row of the token only
    page = show("#/neurons?text=Tom+had+a+red+ball&layer=3&neuron=3.7")
    assert page.locator(".activations").first.locator(".band").count() == 2
