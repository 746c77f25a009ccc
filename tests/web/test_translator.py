"""The translator page: both kinds of models of two texts, with Python's numbers; and what it says of other models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

import cutaway
from cutaway.inspect.pairs import attentions, learned, pair_run, sinusoids, stacks, translation, unrolled
from tests.inspect.test_pairs import make

SOURCE = "The fox runs."
KINDS = ("pre", "attention", "plain")


@pytest.fixture(scope="module")
def lms() -> dict[str, Any]:
    return {name: make(name) for name in KINDS}


@pytest.fixture(scope="module")
def translators(server, builtin, lms) -> Iterator[Any]:
    served = server(builtin, *lms.values())
    served.explorer.models.awake.most = 4
    served.wake()
    yield served
    served.stop()


def address(name: str, more: str = "") -> str:
    return f"#/translator?model={name}&text={quote(SOURCE)}{more}"


def whole(lm: Any, page_limit: int = 60) -> tuple[Any, Any]:
    """What the model writes, and the run of both texts."""
    found = translation(pair_run(lm, lm.pair(SOURCE)), max_tokens=page_limit)
    ids = [one.id for one in found.target]
    return found, pair_run(lm, [*lm.pair(SOURCE), *(ids[:-1] if found.ended else ids)])


def values(page: Any, selector: str) -> list[float]:
    return [float(one.get_attribute("value")) for one in page.query_selector_all(f"{selector} data")]


@pytest.mark.parametrize("name", KINDS)
def test_the_translation_is_pythons_and_another_word_can_be_chosen_at_any_step(show, settle, translators, lms, name):
    lm = lms[name]
    found, _ = whole(lm)
    page = show(address(name), at=translators)
    assert page.locator("[data-answer]").inner_text().split() == found.text.split()
    reading = 1 if name == "pre" else len(found.source)
    page.evaluate("place => { location.hash = place }", address(name, f"&time={reading + 1}"))
    settle(page)
    row = page.locator("[data-tour=translation] .bars li")
    shown = [int(one.get_attribute("data-token")) for one in row.locator("[data-token]").all()]
    assert shown == [one.id for one in found.steps[1].top]
    assert values(page, "[data-tour=translation] .bars") == pytest.approx(found.steps[1].probabilities, rel=1e-3)
    row.nth(2).locator("button").click()
    settle(page)
    other = translation(pair_run(lm, [*lm.pair(SOURCE), found.target[0].id, shown[2]]), max_tokens=60)
    assert page.locator("[data-answer]").inner_text().split() == other.text.split()
    page.get_by_role("button", name="Let the model decide").click()
    settle(page)
    assert page.locator("[data-answer]").inner_text().split() == found.text.split()


def test_the_network_is_read_word_by_word_and_its_states_light_up(show, settle, translators, lms):
    lm = lms["attention"]
    found, both = whole(lm)
    looked = attentions(both).weights[0]
    page = show(address("attention", "&time=1"), at=translators)
    read = len(found.source)
    lit = [one.get_attribute("data-state") for one in page.query_selector_all("[data-on]")]
    # The second word from the beginning, and from the end the second to last.
    assert set(lit) == {"encoder.0.0", "encoder.1.0", f"encoder.{read - 1}.1", f"encoder.{read - 2}.1"}
    assert page.locator("[data-look]").count() == 0
    page.locator("h1").click()
    for _ in range(read):
        page.keyboard.press(".")
    page.wait_for_function(f"location.hash.includes('time={read + 1}')")
    settle(page)
    assert page.locator("[data-on][data-state^=decoder]").count() == 2
    widths = {
        int(one.get_attribute("data-look")): float(one.get_attribute("stroke-width"))
        for one in page.query_selector_all("[data-look]")
    }
    for at, share in enumerate(looked[1]):
        if share > 0.011:
            assert widths[at] == pytest.approx(1 + 6 * share, rel=1e-3)
    assert unrolled(both).bidirectional and page.locator("[data-state]").count() == 2 * read + len(found.target)


def test_it_plays_from_the_beginning_to_the_end_and_stops(show, settle, translators, lms):
    found, _ = whole(lms["plain"])
    last = len(found.source) + len(found.target) - 1
    page = show(address("plain", f"&time={last - 1}"), at=translators)
    page.get_by_role("button", name="Play").click()
    page.get_by_role("button", name="Play").wait_for()  # it was Pause meanwhile
    settle(page)
    assert "time=" not in page.evaluate("location.hash")
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("document.querySelectorAll('[data-on]').length === 1")
    page.get_by_role("button", name="Pause").click()
    assert page.locator("[data-no-attention]").count() == 1


@pytest.mark.parametrize("of", ["cross", "encoder", "decoder"])
def test_the_three_attentions_are_pythons_head_by_head(show, settle, translators, lms, of):
    found, both = whole(lms["pre"])
    wanted = attentions(both, of, 0).weights
    page = show(address("pre", f"&of={of}&in=0&time=3&query=2"), at=translators)
    query = 2  # the third token written, or the third of the text that looks at itself
    drawn = {
        one.get_attribute("data-line"): float(one.get_attribute("opacity"))
        for one in page.query_selector_all("[data-line]")
    }
    for head in range(4):
        for key, share in enumerate(wanted[head][query]):
            if share > 0.021:
                assert drawn[f"{head}.{key}"] == pytest.approx(0.25 + 0.75 * share, rel=1e-3)
            elif share < 0.019:
                assert f"{head}.{key}" not in drawn
    page.get_by_role("button", name="head 1").click()
    settle(page)
    assert {one.get_attribute("data-line")[0] for one in page.query_selector_all("[data-line]")} <= {"0", "2", "3"}
    if of == "cross":
        blend = wanted[[0, 2, 3]].mean(0)[: len(found.target)]
        strongest = {
            tuple(map(int, one.get_attribute("data-strongest").split("-")))
            for one in page.query_selector_all("[data-strongest]")
        }
        assert strongest == set(enumerate(blend.argmax(1).tolist()))
        turned = [q for q, k in sorted(strongest) if any(k < other for row, other in strongest if row < q)]
        assert page.locator("path.turned").count() == len(turned)


def test_both_stacks_hold_pythons_vectors(show, translators, lms):
    _, both = whole(lms["pre"])
    page = show(address("pre", "&time=3&source=1"), at=translators)
    for level in stacks(both, 1, 2).levels:
        assert values(page, f"[data-level='{level.name}']") == pytest.approx([level.norm], rel=1e-3)
    order = [one.get_attribute("data-level") for one in page.query_selector_all("[data-stack=decoder] [data-level]")]
    assert order[-1] == "decoder.entry"  # from bottom to top


@pytest.mark.parametrize("name", ["pre", "attention"])
def test_before_training_and_after_are_pythons(show, settle, translators, lms, name):
    lm = lms[name]
    page = show(address(name), at=translators)
    assert page.locator("[data-losses]").count() == 0  # nothing is said to be right yet
    page.get_by_label("The right translation").first.fill("Le renard court.")
    page.wait_for_selector("[data-losses]")
    settle(page)
    found = learned(pair_run(lm, lm.pair(SOURCE)), "Le renard court.")
    assert values(page, "[data-losses]") == pytest.approx([found.loss_before, found.loss_after], rel=1e-3)
    first = found.places[0]
    for at, word in enumerate(first.words):
        right = 1 if word.id == first.token.id else 0
        wanted = [right, first.untrained[at], first.trained[at]]
        assert values(page, f"[data-word='{word.id}']") == pytest.approx(wanted, rel=1e-3, abs=1e-9)


def test_the_sinusoids_are_drawn_in_both_layouts(show, settle, translators, lms):
    _, both = whole(lms["pre"])
    page = show(address("pre", "&layout=halves"), at=translators)
    answers = page.evaluate(
        """async () => {
          const body = JSON.stringify({ model: 'pre', text: 'The fox runs.' });
          const headers = { 'Content-Type': 'application/json' };
          const run = await (await fetch('api/traces', { method: 'POST', headers, body })).json();
          return (await fetch(`api/traces/${run.id}/sinusoids?layout=halves&positions=48`)).json();
        }"""
    )
    np.testing.assert_allclose(answers["values"], sinusoids(both, "halves", 48).values, atol=1e-5)
    assert page.locator("[data-tour=sinusoids] canvas").count() == 1
    page.get_by_text("interleaved").click()
    settle(page)
    assert "layout=interleaved" in page.evaluate("location.hash")


def test_the_machines_that_come_along_are_one_click_apart(show, settle):
    page = show("#/translator?model=rnn&text=I%20am%20tired.&stop=3")
    for label, name in (("Recurrent, without attention", "rnn-plain"), ("Transformer", "transformer")):
        page.get_by_label(label, exact=True).check()
        page.wait_for_url(f"**model={name}*")
        settle(page)
        lm = cutaway.load(name)
        found = translation(pair_run(lm, lm.pair("I am tired.")), max_tokens=60)
        page.wait_for_function("text => document.querySelector('[data-answer]')?.innerText === text", arg=found.text)
        assert "stop=" not in page.url and page.locator("main [role=alert]").count() == 0
    assert page.locator("[data-tour=stacks]").count() == 1 and page.locator("[data-tour=unrolled]").count() == 0


def test_a_model_of_one_text_is_told_what_to_do(show, settle, translators):
    page = show("#/translator?model=builtin&text=Once", at=translators)
    assert "builtin reads one text" in page.locator("[data-absent]").inner_text()
    assert page.locator("main [role=alert]").count() == 0


@pytest.mark.parametrize("name", ["predict", "walk", "gallery"])
def test_every_page_of_one_text_points_to_this_one(show, settle, translators, name):
    page = show(address("pre").replace("translator", name, 1), at=translators)
    assert page.locator(f"[data-unfit={name}]").count() == 1 and page.locator("main [role=alert]").count() == 0
    page.get_by_role("button", name="Open Translator").click()
    settle(page)
    assert page.locator("[data-answer]").count() == 1


@pytest.mark.parametrize(("name", "language"), [("pre", "ru"), ("attention", "zh-Hans"), ("plain", "en")])
def test_on_a_phone_nothing_is_wider_than_the_page(show, translators, name, language, axe):
    page = show(address(name), width=390, height=844, language=language, dark=language == "ru", at=translators)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, { runOnly: ['wcag2a', 'wcag2aa'] })")
    assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []


def test_a_sentence_that_is_empty_or_too_long_is_refused_in_words(show, translators):
    page = show("#/translator?model=plain&text=", at=translators)
    assert "source is empty" in page.locator("main [role=alert]").first.inner_text()
