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


def test_principal_components_have_a_sign_and_what_excites_a_neuron_elsewhere_is_shown(
    show, settle, builtin, tmp_path, monkeypatch
):
    pytest.importorskip("sklearn", reason="the extra `inspect` is not installed")
    from cutaway.inspect.contexts import contexts, record, recorded_at
    from cutaway.inspect.factors import factors

    monkeypatch.setenv("CUTAWAY_HOME", str(tmp_path))  # the server is in this process
    texts = ["Once upon a time there was a fox.", "The dog saw a red ball. It was happy.", TEXT]
    record(builtin, texts, recorded_at(builtin), corpus="three texts", top=2)
    page = show(f"#/neurons?text={quote(TEXT)}&parts=3&kind=components&neuron=1.20")
    page.wait_for_selector(".pick[aria-label^=Component]")
    page.wait_for_selector("[data-about=contexts] li")
    settle(page)
    whole = run(builtin, TEXT)
    found = factors(whole, 3, method="pca").factors
    assert values(page, ".pick") == pytest.approx([one.share for one in found], rel=1e-3)
    page.locator(".pick").nth(1).click()
    settle(page)
    line = found[1].tokens.tolist()
    assert lit(page) == pytest.approx(line, rel=1e-3, abs=1e-5) and min(line) < 0 < max(line)
    below = [one.get_attribute("class") for one in page.query_selector_all("[data-lit]")]
    assert ["below" in (one or "") for one in below] == [one < 0 for one in lit(page)]
    assert "kind=components" in page.url and "lit=components.1" in page.url

    excited = contexts(whole, 1, 20)
    rows = page.query_selector_all("[data-about=contexts] li")
    assert len(rows) == len(excited.contexts) == 2 and "three texts" in page.inner_text("aside, main")
    shown = [float(row.query_selector(".value").inner_text().replace("−", "-")) for row in rows]
    assert shown == pytest.approx([one.value for one in excited.contexts], rel=0.02, abs=0.01)
    for row, one in zip(rows, excited.contexts, strict=True):
        peak = row.query_selector(".peak")
        assert (peak.text_content() or "").strip() == (one.tokens[one.at].text or "").strip()
