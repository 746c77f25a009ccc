"""The classroom: a tour somebody wrote, guesses before the picture, presenting, and a remote control in a second browser."""

from __future__ import annotations

from typing import Any

import pytest

from cutaway.inspect.facts import facts
from cutaway.inspect.runs import run

TOUR = """
title = "A lesson"
[[steps]]
name = "guess"
page = "predict"
title = "What comes next?"
words = "The model says how likely each token is."
place = { text = "Once upon a" }
facts = { next = { of = "next" } }
ask = { question = "Which word?", answer = "next.token" }
here = "It says {next.token}: {next.share}."
notes = "Ask the third row."

[[steps]]
page = "attention"
title = "Sure?"
words = "Look back."
place = { text = "Tom had a red ball. He liked it", from = "look" }
facts = { look = { of = "looking", start = "it", end = "ball" } }
point = "head"
try = "Try it."
[steps.ask]
question = "Is the weight below two?"
options = ["No", { say = "Yes", if = { look.weight = [0, 2] } }]

[[steps]]
use = "up-the-stack"
"""


@pytest.fixture(scope="module")
def school(server, builtin, long_lm, tmp_path_factory) -> Any:
    file = tmp_path_factory.mktemp("lesson") / "lesson.toml"
    file.write_text(TOUR)
    served = server(builtin, long_lm, tour=file)
    served.file = file
    yield served
    served.stop()


def shares(page) -> list[float]:
    return [float(one.get_attribute("value")) for one in page.query_selector_all("p.here data")]


def test_a_tour_of_ones_own_asks_before_it_shows(show, settle, school, builtin):
    page = show("#/?tour=guess", at=school)
    page.wait_for_selector(".ask input")
    assert "A lesson" in page.locator(".where").inner_text() and "step 1 of 3" in page.locator(".where").inner_text()
    page.wait_for_function("location.hash.includes('text=Once+upon+a&')")  # the link named the step alone
    assert not page.locator(".bars").first.is_visible() and page.locator("p.here").count() == 0
    found = facts(run(builtin, "Once upon a"), {"next": {"of": "next"}})["next"]
    page.locator(".ask input").fill(found["token"].value[0].text.strip().upper())
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-verdict=right]")
    page.wait_for_selector("p.here data")
    assert page.locator(".bars").first.is_visible()
    assert shares(page) == pytest.approx([found["share"].value], rel=1e-5)
    page.get_by_role("link", name="Next", exact=True).click()
    settle(page)
    page.wait_for_function("location.hash.includes('tour=2')")
    page.get_by_role("button", name="No", exact=True).click()
    page.wait_for_selector("[data-verdict=wrong]")
    assert "✓" in page.get_by_role("button", name="Yes").inner_text()
    looked = facts(
        run(builtin, "Tom had a red ball. He liked it"), {"l": {"of": "looking", "start": "it", "end": "ball"}}
    )["l"]
    assert f"layer={looked['layer'].value}" in page.url or looked["layer"].value == 0
    page.get_by_role("link", name="Next", exact=True).click()  # a step of the built-in tour, used here
    settle(page)
    page.wait_for_selector("p.here[data-claim]:not([data-claim='-1'])")
    assert "step 3 of 3" in page.locator(".where").inner_text() and "/layers?" in page.url


def test_the_tour_is_taken_on_a_text_of_ones_own(show, settle, builtin):
    """Its sentences then speak of that text, and those about another are not said."""
    page = show("#/?tour=why-attention")
    page.get_by_role("button", name="Show without a guess").click()
    page.wait_for_selector("p.here data")
    page.get_by_role("checkbox", name="On my own text").check()
    page.locator("#text-field").fill("The owl sat in the old tree and sang")
    page.keyboard.press("Enter")
    page.wait_for_function("location.hash.includes('own=1') && location.hash.includes('owl')")
    settle(page)
    page.get_by_role("button", name="Show without a guess").click()
    page.wait_for_selector("p.here data")
    settle(page)
    found = facts(run(builtin, "The owl sat in the old tree and sang"), {"l": {"of": "looking"}}, own=True)["l"]
    said = [found[one].value for one in ("head", "layer", "weight")]
    assert sorted(shares(page)) == pytest.approx(sorted(said), rel=1e-5)
    assert "Tom" not in page.locator(".card").inner_text()
    page.get_by_role("link", name="Next", exact=True).click()
    page.wait_for_function("location.hash.includes('tour=query-key-value') && location.hash.includes('owl')")


def test_a_phone_turns_the_pages_of_a_presentation(show, settle, school, axe):
    wall = show("#/?tour=guess&present=1", at=school)
    wall.wait_for_selector(".presented")
    assert wall.locator(".app > nav").is_hidden() and wall.locator(".veil").is_visible()
    size = wall.evaluate("parseFloat(getComputedStyle(document.querySelector('.card')).fontSize)")
    assert size >= 24 and wall.locator(".ask").count() == 0  # large, and one thing at a time
    wall.get_by_role("button", name="Remote").click()
    wall.wait_for_selector("dialog svg path")
    link = wall.locator("dialog .link a").get_attribute("href")
    wall.wait_for_selector(".bar .dot", state="attached")
    wall.keyboard.press("Escape")
    phone = show(link.split("/", 3)[3], at=school, width=375, height=720, wait=False, touch=True)
    phone.wait_for_function("document.querySelector('h1')?.textContent === 'What comes next?'")
    assert "Ask the third row." in phone.locator(".notes").inner_text()
    assert (
        "words" in phone.locator(".where").inner_text()
        and phone.evaluate("document.documentElement.scrollWidth") <= 375
    )
    phone.get_by_role("button", name="Next").click()
    wall.wait_for_selector(".ask")
    phone.wait_for_function("document.querySelector('.where').textContent.includes('question')")
    phone.get_by_role("button", name="Next").click()  # shows, whether somebody guessed or not
    wall.wait_for_selector(".veil", state="detached")
    wall.wait_for_selector("p.here data")
    phone.get_by_role("button", name="Next").click()
    wall.wait_for_function("location.hash.includes('tour=2') && location.hash.includes('present=1')")
    phone.get_by_role("button", name="Back").click()
    wall.wait_for_function("location.hash.includes('tour=guess')")
    settle(wall)
    for page in (wall, phone):
        page.add_script_tag(content=axe)
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []
    wall.goto(school.address + "#/walk?text=Once+upon&present=1")
    wall.reload()
    wall.wait_for_selector(".bar .dot")  # the remote goes on when the page has been loaded anew
    wall.wait_for_selector("[data-play]")
    before = wall.locator("[data-play]").get_attribute("aria-label")
    phone.get_by_role("button", name="Play").click()
    wall.wait_for_function("was => document.querySelector('[data-play]').ariaLabel !== was", arg=before)
    wrong = show("#/remote?token=guessed", at=school, wait=False)
    wrong.wait_for_function("document.querySelector('[role=status]')?.textContent.includes('over')")
    assert wrong.get_by_role("button", name="Next").is_disabled()


def test_a_mistake_made_while_writing_is_said_on_the_page(show, school):
    before = school.file.read_text()
    school.file.write_text(before.replace('page = "attention"', 'page = "atention"'))
    try:
        page = show("#/predict?text=hello", at=school)
        page.wait_for_selector(".guide [role=alert]")
        assert "lesson.toml, step 2 (Sure?), page: there is no page 'atention'" in page.locator(".guide").inner_text()
    finally:
        school.file.write_text(before)
