"""The guided tour: complete in three languages, every step shows what it speaks of, and the reader is free to leave."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus, urlencode

import numpy as np
import pytest
import torch

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")

from fastapi.testclient import TestClient

import cutaway
from cutaway.inspect.facts import FACTS
from cutaway.models.gpt2.shape import Config
from cutaway.models.steps import model_map
from cutaway.serve.app import create_app
from cutaway.serve.explorer import Explorer
from cutaway.serve.tour import check_step

SOURCE = Path(__file__).resolve().parents[2] / "web" / "src"
FILES = sorted((SOURCE / "tour").glob("[0-9]*.json"))
STEPS = {file.stem.split("-", 1)[1]: json.loads(file.read_text()) for file in FILES}
TO_COME = {
    f"{file.stem}, to come": json.loads(file.read_text())
    for file in sorted((SOURCE.parents[1] / "recipes" / "tour").glob("*.json"))
}
"""Steps for the next built-in model, which is to do what they speak of: held to the same rules."""
LANGUAGES = {"en", "zh-Hans", "ru"}
PAGES = {"predict", "walk", "attention", "layers", "causes", "neurons", "generate", "change", "weights", "tasks",
         "translator", "contest", "encoder", "senses"}  # fmt: skip
THERE = {file.parent.name for file in SOURCE.glob("pages/*/page.ts")}
SHOWN = [name for name, step in STEPS.items() if step["page"] in THERE]
SIZES = {"layers", "heads", "width", "head_width", "mlp_width", "vocabulary", "context"}


def test_steps_are_numbered_without_gaps_and_named_once():
    assert [int(file.stem.split("-")[0]) for file in FILES] == list(range(1, len(FILES) + 1))
    assert len(STEPS) == len(FILES)


GAP = r"\{(\w+(?:\.\w+)?)[^}]*\}"
"""A value put into a sentence: a size of the model, `{width}`, or a fact, `{look.weight}`."""


def short_enough(words: dict[str, str], en: int, zh: int, ru: int) -> bool:
    plain = {language: re.sub(GAP, "000", said) for language, said in words.items()}
    return len(plain["en"]) <= en and len(plain["zh-Hans"]) <= zh and len(plain["ru"]) <= ru


@pytest.mark.parametrize("name", STEPS | TO_COME)
def test_a_step_says_everything_in_every_language(name):
    step = (STEPS | TO_COME)[name]
    assert {"page", "place", "point", "title", "words", "try"} <= set(step)
    assert step["page"] in PAGES
    check_step(step, name, 1)  # as the step of a tour that somebody wrote
    own, ask = step.get("own") or {}, step.get("ask") or {}
    aside = [*own.get("here", []), *filter(None, (own.get("words"), own.get("try"), ask.get("question")))]
    for said in (step["title"], step["words"], step["try"], *step.get("here", []), *aside, *ask.get("options", [])):
        words = {language: said[language] for language in LANGUAGES}
        gaps = [set(re.findall(GAP, one)) for one in words.values()]
        assert gaps.count(gaps[0]) == 3
        if said in (step["title"], step["words"], step["try"]):
            assert gaps[0] <= SIZES  # what holds on any model needs no facts
        assert all(one.strip() == one and one for one in words.values())
    assert re.search("[一-鿿]", step["title"]["zh-Hans"]) and re.search("[а-я]", step["title"]["ru"])
    # Two or three short sentences, and one about what is seen here.
    assert short_enough(step["words"], 320, 150, 340)
    assert all(
        short_enough({language: one[language] for language in LANGUAGES}, 210, 110, 240) for one in step.get("here", [])
    )
    assert 2 <= len(re.findall(r"[.?:](?= |$)", step["words"]["en"])) <= 5


@pytest.mark.parametrize("name", STEPS | TO_COME)
def test_what_a_step_claims_can_be_checked(name):
    """Every bound and value of a sentence is that of a fact which the step asks for; the last one always holds."""
    step = (STEPS | TO_COME)[name]
    asked = set(step.get("facts", {}))
    assert {one["of"] for one in step.get("facts", {}).values()} <= set(FACTS)
    assert step["place"].get("from", next(iter(asked), None)) in asked | {None}
    used = {step["place"]["from"]} if "from" in step["place"] else set()
    own, ask = step.get("own") or {}, step.get("ask") or {}
    guessed = [ask["question"], *ask.get("options", []), {"en": f"{{{ask.get('answer', '')}}}"}] if ask else []
    for claim in (*step.get("here", []), *own.get("here", []), *guessed):
        names = [*claim.get("if", {}), *(one for one in re.findall(GAP, claim["en"]) if "." in one)]
        assert {one.split(".")[0] for one in names} <= asked
        used |= {one.split(".")[0] for one in names}
    assert used == asked
    assert not step.get("here") or "if" not in step["here"][-1] or name == "change"


def answers(lm, step) -> dict[str, dict[str, Any]]:
    """What the server finds for a step, asked as the page asks it."""
    explorer = Explorer()
    explorer.models.add(lm)
    client = TestClient(create_app(explorer), base_url="http://127.0.0.1:8000")
    if name := step["place"].get("model"):  # the step brings its own
        explorer.models.add(cutaway.load(name))
    asked = {"model": name or lm.name, "text": step["place"].get("text", ""), "facts": step.get("facts", {})}
    answer = client.post("/api/facts", json=asked)
    explorer.close()
    assert answer.status_code == 200, answer.text
    return answer.json()


def held(step, found) -> int:
    """Which of a step's sentences holds: the first whose numbers keep their bounds."""
    for at, claim in enumerate(step["here"]):
        numbers = {one: found[one.split(".")[0]][one.split(".")[1]]["value"] for one in claim.get("if", {})}
        bounds = claim.get("if", {}).values()
        if all(
            (low is None or value >= low) and (high is None or value <= high)
            for value, (low, high) in zip(numbers.values(), bounds, strict=True)
        ):
            return at
    raise AssertionError("nothing that the step says holds")


CLAIMING = [name for name, step in STEPS.items() if step.get("here")]


@pytest.mark.parametrize("name", CLAIMING)
def test_what_a_step_says_holds_on_the_model_that_ships_and_on_any_other(name, builtin, long_lm):
    for lm in (builtin, long_lm):
        found = answers(lm, STEPS[name])
        at = held(STEPS[name], found)
        for one in re.findall(GAP, STEPS[name]["here"][at]["en"]):
            assert one in SIZES or found[one.split(".")[0]][one.split(".")[1]]["value"] not in (None, [])


def test_the_model_that_ships_shows_what_the_tour_is_about(builtin):
    """The examples are chosen so that the first sentence of each step holds, the one that makes its point."""
    weaker = {name for name in CLAIMING if held(STEPS[name], answers(builtin, STEPS[name])) > 0}
    assert weaker <= {"weights", "causes"}, weaker  # what is true of GPT-2 itself; for or against: either is a point


def test_what_a_step_says_of_any_model_is_so(builtin):
    """The plain sentences that a number can check, each on the model that ships and at the place of its step."""
    from cutaway.inspect.attention import attention
    from cutaway.inspect.runs import run
    from cutaway.inspect.saliency import saliency

    def seen(name):
        return run(builtin, STEPS[name]["place"]["text"])

    entry = seen("entry")
    assert torch.equal(entry["residual.0"], entry["token_embedding"] + entry["position_embedding"])
    mask, top = seen("mask"), builtin.config.layers - 1
    for head in range(builtin.config.heads):
        table = attention(mask, top, head)
        assert table.weights[0, 0] == 1  # the first token can only look at itself
        assert (table.weights[np.triu_indices(len(mask), 1)] == 0).all()  # the upper triangle is empty
        assert table.weights.sum(-1) == pytest.approx(1)  # shares that add up to 100%
        score, share = table.masked[-1], table.weights[-1]  # a score higher by one: a share 2.7 times as large
        assert np.log(share[0] / share[1]) == pytest.approx(score[0] - score[1], abs=1e-3)
    scores = seen("scores")
    row = attention(scores, top, 0, len(scores) - 1)
    assert row.scores[0] == pytest.approx(
        (row.keys @ row.queries[0]) / builtin.config.head_width**0.5, rel=1e-3, abs=1e-3
    )
    mix = attention(scores, top, 0)
    assert mix.weights @ mix.values == pytest.approx(mix.output, abs=1e-4)
    negative = scores[f"blocks.{top}.mlp.hidden"][-1] < 0  # GELU brings what is negative near zero
    assert float(scores[f"blocks.{top}.mlp.activation"][-1][negative].abs().max()) < 0.2
    assert float(saliency(scores, [len(scores)]).share.sum()) == pytest.approx(1)
    texts = [builtin.generate(STEPS["choice"]["place"]["text"], max_tokens=20, top_k=1, seed=n).text for n in (1, 2)]
    assert texts[0] == texts[1]  # always taking the likeliest gives the same text every time
    from cutaway.inspect.choices import choices

    one, two = (choices(builtin, STEPS["write"]["place"]["text"], 20, seed=n).steps for n in (1, 2))
    assert [c.chance for c in one[0].candidates] == [c.chance for c in two[0].candidates]  # the first token's chances
    first = next(i for i in range(20) if one[i].chosen != two[i].chosen)
    assert [c.chance for c in one[first + 1].candidates] != [c.chance for c in two[first + 1].candidates]


def numbers(page) -> list[float]:
    return [float(one.get_attribute("value")) for one in page.query_selector_all("p.here data")]


def test_the_card_says_the_servers_numbers(show, settle, builtin):
    for name in ("why-attention", "up-the-stack", "change", "weights"):
        step, page = STEPS[name], show(f"#/{STEPS[name]['page']}?" + urlencode({"text": "hello", "tour": name}))
        follow(page, settle, name)
        found = answers(builtin, step)
        at = held(step, found)
        assert page.locator("p.here").get_attribute("data-claim") == str(at), name
        said = [one.split(".") for one in re.findall(GAP, step["here"][at]["en"]) if "." in one]
        values = [found[fact][field] for fact, field in said]
        assert numbers(page) == [one["value"] for one in values if one["as"] != "tokens"], name
        assert page.locator("p.here .chip").count() == sum(len(one["value"]) for one in values if one["as"] == "tokens")
        if "from" in step["place"]:
            place = found[step["place"]["from"]]
            for one in ("layer", "head"):  # the address leaves out a 0
                value = place[one]["value"]
                assert f"{one}={value}" in page.url or (value == 0 and not re.search(rf"[?&]{one}=", page.url))
    page = show("#/change?" + urlencode({"text": "hello", "tour": "change"}))
    follow(page, settle, "change")
    missed = answers(builtin, STEPS["change"])["missed"]
    assert f'"layer":{missed["layer"]["value"]},"head":{missed["head"]["value"]}' in unquote_plus(page.url)


def inside(page, selector: str) -> bool:
    """Whether something is on the screen, under the card of the tour and above the controls at the foot."""
    box, card = page.locator(selector).first.bounding_box(), page.locator(".card").bounding_box()
    return card["y"] + card["height"] <= box["y"] and box["y"] + box["height"] <= page.viewport_size["height"] - 40


def reveal(page, name: str) -> None:
    """See what a step asks to be guessed first."""
    if "ask" in STEPS[name]:
        page.get_by_role("button", name="Show without a guess").click()


def follow(page, settle, name: str) -> None:
    page.get_by_role("link", name="Set this step up again").click()
    reveal(page, name)
    if STEPS[name].get("here"):
        page.wait_for_selector("p.here[data-claim]:not([data-claim='-1'])")
    settle(page)


def test_the_tree_of_the_third_step_is_on_the_screen_and_grows(show, settle):
    page = show("#/predict?text=hello&tour=one-at-a-time")
    follow(page, settle, "one-at-a-time")
    page.wait_for_selector("[data-tour=branches] li")
    assert inside(page, "[data-tour=branches]") and inside(page, ".bars >> nth=0")
    before = page.locator("[data-tour=branches] li").count()
    page.keyboard.press("1")
    page.wait_for_function("n => document.querySelectorAll('[data-tour=branches] li').length > n", arg=before)


def test_on_a_phone_the_whole_tree_of_the_third_step_is_above_the_controls_at_the_foot(show, settle):
    page = show("#/predict?text=hello&tour=one-at-a-time", width=390, height=844, touch=True)
    follow(page, settle, "one-at-a-time")
    page.wait_for_function("""() => {
      const place = name => document.querySelector(name).getBoundingClientRect();
      const tree = place("[data-tour=branches]");
      return document.querySelectorAll("[data-tour=branches] li").length > 5
        && tree.top >= place(".card").bottom && tree.bottom <= place(".dock").top;
    }""")


def test_the_chances_of_the_choice_step_are_those_that_the_bars_show(show, settle):
    """Its example sets a top-k: what is said of temperatures must be said with it, for the reader tries them so."""
    page = show("#/predict?text=hello&tour=choice")
    follow(page, settle, "choice")
    _, cold, hot = numbers(page)
    for heat, chance in ((0.3, cold), (2, hot)):
        page.get_by_role("slider", name="temperature").fill(str(heat))
        page.wait_for_function("part => location.hash.includes(part)", arg=f"temperature={heat}")
        settle(page)
        shown = page.locator(".bars .share data").first.get_attribute("value")
        assert float(shown) == pytest.approx(chance, rel=1e-3)


def test_the_strongest_cause_is_said_to_speak_for_or_against_as_its_sign_does(show, settle, builtin, long_lm):
    for lm in (builtin, long_lm):
        page = show(f"#/causes?text=hello&tour=causes&model={lm.name}")
        follow(page, settle, "causes")
        strongest = page.locator("ol[data-method=gradient] data").first
        against = float(strongest.get_attribute("value")) < 0
        assert ("minus sign" in page.locator("p.here").inner_text()) == against


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1280, 800)])
@pytest.mark.parametrize("name", ["mask", "softmax"])
def test_the_last_row_of_the_famous_table_is_on_the_screen(show, settle, name, width, height):
    page = show(f"#/attention?text=hello&tour={name}", width=width, height=height)
    follow(page, settle, name)
    page.wait_for_function("""() => {
      const place = name => document.querySelector(name).getBoundingClientRect();
      const table = place(".heatmap .ground");
      return table.top >= place(".card").bottom && table.bottom <= place(".turns").top;
    }""")


def test_the_arrow_keys_of_the_position_step_move_along_the_text(show, settle):
    page = show("#/walk?text=hello&tour=position")
    follow(page, settle, "position")
    page.wait_for_function("location.hash.includes('position=')")
    page.locator("[data-tour=text] .chips button").nth(3).click()
    page.wait_for_function("location.hash.includes('position=3')")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("location.hash.includes('position=4')")
    page.wait_for_function("location.hash.includes('step=position')")  # the step of the walk stayed


def test_the_groups_of_neurons_are_on_the_screen_with_the_text_they_light(show, settle):
    page = show("#/neurons?text=hello&tour=neurons")
    follow(page, settle, "neurons")
    page.wait_for_selector("[data-tour=together] ol li")
    page.wait_for_function(
        "document.querySelector('[data-tour=together]').getBoundingClientRect().top < innerHeight * 0.7"
    )
    assert "Group 1" in page.locator("[data-tour=together] ol").inner_text()
    assert inside(page, "[data-tour=together] ol li") and inside(page, ".lit")
    assert page.evaluate("document.scrollingElement.scrollTop") == 0  # the header is still there


def test_the_whole_text_of_the_writing_step_is_shown(show, settle):
    page = show("#/generate?text=hello&tour=write")
    follow(page, settle, "write")
    assert page.locator(".writing .chips li").count() == 20


def test_the_tour_is_of_the_model_being_shown(show, settle, long_lm):
    """On another model it stays on it, finds its places there, and says what holds there."""
    page = show("#/predict?model=long&text=hello")
    page.get_by_role("link", name="Tour").click()
    for name in ("next-word", "why-attention", "heads", "widen", "norm", "logits", "weights", "change"):
        step = STEPS[name]
        page.evaluate("at => (location.hash = at)", f"#/{step['page']}?model=long&text=hello&tour={name}")
        page.wait_for_function("at => location.hash.includes(at)", arg=f"tour={name}")
        follow(page, settle, name)
        assert "model=long" in page.url and page.locator("main [role=alert]").count() == 0, name
        assert page.locator("p.here").get_attribute("data-claim") == str(held(step, answers(long_lm, step))), name


def test_a_step_about_a_model_of_its_own_brings_it_and_the_next_leads_back(show, settle, builtin):
    page = show("#/change?model=long&text=hello&tour=change")
    for name, model in (("recurrent", "rnn"), ("alignment", "rnn"), ("two-stacks", "transformer")):
        page.keyboard.press("]")
        page.wait_for_url(f"**model={model}*tour={name}*")
        page.wait_for_selector("p.here[data-claim='0']")
        settle(page)
        assert marked(page) == STEPS[name]["point"]
    page.keyboard.press("[")
    page.wait_for_url("**model=rnn*tour=alignment*")
    page.wait_for_selector("p.here[data-claim='0'] data")
    found = answers(builtin, STEPS["alignment"])["align"]
    assert numbers(page) == [found["one_weight"]["value"], found["other_weight"]["value"]]
    page = show("#/translator?tour=recurrent")  # a link that says nothing else, and back: to the model of every visit
    page.wait_for_url("**model=rnn*")
    page.wait_for_selector("p.here[data-claim='0']")
    page.keyboard.press("[")
    page.wait_for_url("**tour=change*")
    assert "model=" not in page.url


def test_the_step_of_gaps_speaks_of_the_bert_that_comes_along_and_of_a_model_without_gaps(builtin):
    step = STEPS["gap"]
    found = answers(builtin, step)["gap"]
    wanted = cutaway.load("bert").fill(step["place"]["text"], 1)[0].predictions[0]
    assert found["share"]["value"] == pytest.approx(wanted.probability, rel=1e-4)
    assert held(step, {"gap": found}) == 0
    shown_here = {**step, "place": {"text": step["place"]["text"]}}  # by whoever changes to another model
    assert held(step, answers(builtin, shown_here)) == 1


def test_steps_of_the_walk_are_steps_it_has():
    has = {step.name for step in model_map(Config()).steps}
    assert {step["place"]["step"] for step in STEPS.values() if "step" in step["place"]} <= has


FOCUSED = "id => document.activeElement.id === id"


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
        page.wait_for_selector("[data-toured]", state="attached")
        assert page.locator("#tour-title").inner_text() == step["title"]["en"], name
        assert progress(page) == f"Tour: step {i + 1} of {len(SHOWN)}"
        assert f"/{step['page']}?" in page.url and f"tour={name}" in page.url
        assert marked(page) == step["point"], name
        page.wait_for_function(FOCUSED, arg="tour-title")
        reveal(page, name)
        if step.get("here"):
            page.wait_for_selector("p.here[data-claim]:not([data-claim='-1'])")
        assert "{" not in page.locator("#tour-words").inner_text()
        assert page.locator("main [role=alert]").count() == 0, name
        if i + 1 < len(SHOWN):
            page.keyboard.press("]")
            page.wait_for_url(f"**tour={SHOWN[i + 1]}*")
    page.get_by_role("button", name="Finish").click()
    page.wait_for_selector(".card", state="detached")
    page.wait_for_function("!location.hash.includes('tour=')")
    page.wait_for_selector("[data-toured]", state="detached")


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
    page.wait_for_function(FOCUSED, arg="page-title")
    page.get_by_role("link", name="Predict").click()
    settle(page)
    assert page.locator(".card").count() == 0
    page.get_by_role("link", name="Tour").click()
    settle(page)
    assert page.locator("#tour-title").inner_text() == STEPS["heads"]["title"]["en"]
    page.get_by_role("link", name="Predict").click()  # the words stay while one looks elsewhere
    settle(page)
    page.wait_for_function(FOCUSED, arg="page-title")
    assert page.locator("#tour-title").is_visible()


def test_the_offer_is_made_once_and_never_to_one_who_follows_a_link(show, served):
    assert show("#/predict?text=hello").locator(".offer").count() == 0
    page = show("")
    page.get_by_role("button", name="Not now").click()
    page.wait_for_selector(".offer", state="detached")
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
    for place in ("", "#/attention?text=Tom&tour=heads", "#/?tour=why-attention", "#/?tour=softmax&present=1"):
        page = show(place, dark=dark)
        page.add_script_tag(content=axe)
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []
