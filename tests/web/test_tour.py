"""The guided tour: complete in three languages, every step shows what it speaks of, and the reader is free to leave."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote_plus, urlencode

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "web" / "src"
FILES = sorted((SOURCE / "tour").glob("[0-9]*.json"))
STEPS = {file.stem.split("-", 1)[1]: json.loads(file.read_text()) for file in FILES}
LANGUAGES = {"en", "zh-Hans", "ru"}
PAGES = {"predict", "walk", "attention", "layers", "causes", "neurons", "generate", "change", "weights", "tasks"}
THERE = {file.parent.name for file in SOURCE.glob("pages/*/page.ts")}
SHOWN = [name for name, step in STEPS.items() if step["page"] in THERE]
SIZES = {"layers", "heads", "width", "head_width", "mlp_width", "vocabulary", "context"}


def test_steps_are_numbered_without_gaps_and_named_once():
    assert [int(file.stem.split("-")[0]) for file in FILES] == list(range(1, len(FILES) + 1))
    assert len(STEPS) == len(FILES)


@pytest.mark.parametrize("name", STEPS)
def test_a_step_says_everything_in_every_language(name):
    step = STEPS[name]
    assert set(step) == {"page", "place", "point", "title", "words", "try"}
    assert step["page"] in PAGES
    assert set(step["place"]) <= {"text", "position", "layer", "head", "find", "step", "settings"}
    for part in ("title", "words", "try"):
        assert set(step[part]) == LANGUAGES
        gaps = [set(re.findall(r"\{(\w+)\}", words)) for words in step[part].values()]
        assert gaps.count(gaps[0]) == 3 and gaps[0] <= SIZES
        assert all(words.strip() == words and words for words in step[part].values())
    assert re.search("[一-鿿]", step["title"]["zh-Hans"]) and re.search("[а-я]", step["title"]["ru"])
    # Two or three short sentences.
    assert len(step["words"]["en"]) <= 320 and len(step["words"]["ru"]) <= 340 and len(step["words"]["zh-Hans"]) <= 150
    assert 2 <= len(re.findall(r"[.?:](?= |$)", step["words"]["en"])) <= 5


def test_a_head_that_is_looked_for_is_found_by_computation(show, settle, builtin):
    """Whatever the built-in model is: the step shows the head that looks most from one word to the other."""
    from cutaway.inspect.attention import looking
    from cutaway.inspect.run import run

    place = STEPS["why-attention"]["place"]
    seen = run(builtin, place["text"])
    words = [one.text for one in seen.tokens]
    position = len(words) - 1 - words[::-1].index(place["find"]["from"])
    key = position - 1 - words[:position][::-1].index(place["find"]["to"])
    layer, head, _ = looking(seen, position, key)
    for name in ("why-attention", "change"):
        step = STEPS[name]
        settings = {key: re.sub(r"\{\w+\}", "0", value) for key, value in step["place"]["settings"].items()}
        page = show(f"#/{step['page']}?" + urlencode({"text": place["text"], "tour": name, **settings}))
        wanted = [f"{key}={value}" for key, value in (("layer", layer), ("head", head)) if value]
        page.wait_for_function("wanted => wanted.every((one) => location.hash.includes(one))", arg=wanted)
        settle(page)
        assert not page.get_by_role("link", name="Set this step up again").is_visible()
    assert f'"layer":{layer},"head":{head}' in unquote_plus(page.url)


def test_steps_of_the_walk_are_steps_it_has():
    code = SOURCE / "pages" / "walk" / "steps.ts"
    has = set(re.findall(r"\{ name: '(\w+)', group", code.read_text()))
    assert {step["place"]["step"] for step in STEPS.values() if "step" in step["place"]} <= has


def marked(page) -> str | None:
    return page.evaluate("document.querySelector('[data-toured]')?.dataset.tour ?? null")


def progress(page) -> str:
    return page.locator(".card .where").inner_text()


def test_the_tour_is_walked_from_the_offer_to_its_end(show, settle):
    page = show("")
    page.set_default_timeout(60_000)  # factors take their time on a busy machine
    page.get_by_role("link", name="Take the tour").click()
    for i, name in enumerate(SHOWN):
        step = STEPS[name]
        settle(page)
        page.wait_for_selector("[data-toured]")
        assert page.locator("#tour-title").inner_text() == step["title"]["en"], name
        assert progress(page) == f"Tour: step {i + 1} of {len(SHOWN)}"
        assert f"/{step['page']}?" in page.url and f"tour={name}" in page.url
        assert marked(page) == step["point"], name
        assert "{" not in page.locator("#tour-words").inner_text()
        assert page.evaluate("document.activeElement.id") == "tour-title", name
        assert page.locator("main [role=alert]").count() == 0, name
        if i + 1 < len(SHOWN):
            page.keyboard.press("]")
            page.wait_for_url(f"**tour={SHOWN[i + 1]}*")
    page.get_by_role("button", name="Finish").click()
    page.wait_for_selector(".card", state="detached")
    assert "tour=" not in page.evaluate("(new Promise((done) => setTimeout(() => done(location.hash), 200)))")
    assert marked(page) is None


def test_a_link_restores_the_step_and_the_way_back_works(show, settle):
    page = show("#/predict?text=hello&tour=tokens")  # as a reader left it: another text than the step's
    assert page.locator("#tour-title").inner_text() == STEPS["tokens"]["title"]["en"]
    assert page.locator(".chips").first.inner_text().startswith("h")
    page.get_by_role("link", name="Set this step up again").click()
    settle(page)
    assert not page.get_by_role("link", name="Set this step up again").is_visible()
    assert "unbelievably" in page.url
    page.get_by_role("link", name="Next", exact=True).click()
    settle(page)
    page.go_back()
    settle(page)
    assert page.locator("#tour-title").inner_text() == STEPS["tokens"]["title"]["en"]
    page.get_by_role("link", name="Back", exact=True).click()
    settle(page)
    assert page.locator("#tour-title").inner_text() == STEPS["next-word"]["title"]["en"]


def test_the_reader_can_leave_play_and_come_back(show, settle):
    page = show("#/attention?text=Tom&tour=heads")
    page.locator("#tour-title").focus()
    page.keyboard.press("Escape")
    page.wait_for_selector(".card", state="detached")
    assert page.evaluate("document.activeElement.id") == "page-title"
    page.get_by_role("link", name="Predict").click()
    settle(page)
    assert page.locator(".card").count() == 0
    page.get_by_role("link", name="Tour").click()
    settle(page)
    assert page.locator("#tour-title").inner_text() == STEPS["heads"]["title"]["en"]
    page.get_by_role("link", name="Predict").click()  # the words stay while one looks elsewhere
    settle(page)
    assert page.locator("#tour-title").is_visible() and page.evaluate("document.activeElement.id") == "page-title"


def test_the_offer_is_made_once_and_never_to_one_who_follows_a_link(show, served):
    assert show("#/predict?text=hello").locator(".offer").count() == 0
    page = show("")
    page.get_by_role("button", name="Not now").click()
    assert page.locator(".offer").count() == 0
    page.goto("about:blank")
    page.goto(served.address)
    page.wait_for_selector("#page-title")
    assert page.locator(".offer").count() == 0


@pytest.mark.parametrize("language", ["en", "zh-CN", "ru"])
def test_on_a_phone_the_words_and_what_they_point_at_are_both_seen(show, language):
    page = show("#/attention?text=The+robot+must+obey+orders&tour=mask", width=375, height=740, language=language)
    page.wait_for_function(
        """() => {
          const place = (name) => document.querySelector(name)?.getBoundingClientRect();
          const card = place(".card"), point = place("[data-toured]");
          return card && point && card.bottom <= point.top + 1 && point.top < 0.75 * innerHeight;
        }"""
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    card = page.locator(".card").bounding_box()
    point = page.locator("[data-toured]").bounding_box()
    assert card["y"] >= -1 and card["height"] < 0.5 * 740
    assert card["y"] + card["height"] <= point["y"] + 1 < 0.75 * 740
    assert page.get_by_role("link", name={"en": "Next", "zh-CN": "下一步", "ru": "Дальше"}[language]).is_visible()


@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_in_the_tour(show, axe, dark):
    for place in ("", "#/attention?text=Tom&tour=heads"):
        page = show(place, dark=dark)
        page.add_script_tag(content=axe)
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []
