"""Every number on the page is the Python result, read from the page; what goes wrong is said there."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest

from cutaway.decoding.sampling import Sampling, probabilities
from cutaway.inspect.attention import attention, heads
from cutaway.inspect.lens import lens
from cutaway.inspect.runs import run

TEXT = "Once upon a time, there was a little girl named Lily. She"
SHORT = "The cat"
PAGES = ("predict", "walk", "attention", "layers", "causes", "neurons", "generate", "change", "weights", "tasks")
ALL = (*PAGES, "map", "gallery", "learn", "senses", "contest")
"""With those that draw from answers of their own, which they say in their tests."""


def at(page: str, text: str = TEXT, **more: object) -> str:
    return f"#/{page}?text={quote(text)}" + "".join(f"&{name}={quote(str(value))}" for name, value in more.items())


def said_count(number: int) -> str:
    """A whole number as the page writes it."""
    return f"{number:,}"


def numbers(page, selector: str) -> list[float]:
    return [float(one.get_attribute("value")) for one in page.query_selector_all(f"{selector} data")]


def test_predict_shows_the_ten_likeliest(show, builtin):
    page = show(at("predict"))
    best = builtin.predict(TEXT, k=10)
    assert [int(row.get_attribute("data-token")) for row in page.query_selector_all(".bars .row")] == [
        one.id for one in best
    ]
    assert numbers(page, ".bars .share") == pytest.approx([one.probability for one in best], rel=1e-4)


def test_predict_follows_temperature_top_k_and_top_p(show, settle, builtin):
    page = show(at("predict", temperature=0.6, top_k=4, top_p=0.95))
    wanted = probabilities(builtin.next_scores(TEXT), Sampling(temperature=0.6, top_k=4, top_p=0.95))
    ids = [one.id for one in builtin.predict(TEXT, k=10)]
    assert numbers(page, ".bars .share") == pytest.approx(wanted[ids].tolist(), rel=1e-4, abs=1e-9)
    page.get_by_role("slider", name="temperature").fill("2")
    settle(page)
    wanted = probabilities(builtin.next_scores(TEXT), Sampling(temperature=2.0, top_k=4, top_p=0.95))
    assert numbers(page, ".bars .share") == pytest.approx(wanted[ids].tolist(), rel=1e-4, abs=1e-9)
    page.get_by_role("slider", name="temperature").fill("0")  # greedy
    settle(page)
    assert numbers(page, ".bars .share") == [1, *[0] * 9]


def test_picking_goes_on_keeps_branches_and_stands_in_the_address(show, settle, builtin):
    page = show(at("predict"))
    first, second = (one.id for one in builtin.predict(TEXT, k=2))
    page.locator(".bars .row").nth(0).click()
    settle(page)
    page.keyboard.press("2")
    settle(page)
    after = builtin.predict([*builtin.ids(TEXT), first], k=2)[1].id
    assert f"more={first}.{after}" in page.url
    page.locator(".tree button").first.click()
    settle(page)
    page.locator(".bars .row").nth(1).click()
    settle(page)
    assert page.locator(".tree button").count() == 4
    chances = [
        builtin.predict(TEXT, k=2)[0].probability,
        builtin.predict([*builtin.ids(TEXT), first], k=2)[1].probability,
    ]
    page.wait_for_function("document.querySelectorAll('.tree data').length === 3")
    assert numbers(page, ".tree")[:1] == pytest.approx(chances[:1], rel=1e-4)
    assert sorted(numbers(page, ".tree")) == pytest.approx(
        sorted([*chances, builtin.predict(TEXT, k=2)[1].probability]), rel=1e-4
    )
    best = builtin.predict([*builtin.ids(TEXT), second], k=10)
    assert numbers(page, ".bars .share") == pytest.approx([one.probability for one in best], rel=1e-4)
    again = show(page.url.split("/", 3)[3])
    assert again.locator(".tree button").count() == 4
    assert again.url == page.url


def test_attention_shows_the_numbers_of_the_cell_and_the_head(show, builtin):
    page = show(at("attention", layer=2, head=5, position=8, key=3))
    whole = run(builtin, TEXT)
    row = attention(whole, 2, 5, 8)
    page.wait_for_selector("[data-step=weight]")
    assert numbers(page, "[data-step=score]") == pytest.approx([row.scores[0][3]], rel=1e-4)
    assert numbers(page, "[data-step=weight]") == pytest.approx([row.weights[0][3]], rel=1e-4)
    found = heads(whole, [2])
    for kind in ("entropy", "distance", "previous", "first"):
        assert numbers(page, f"[data-summary={kind}]") == pytest.approx([getattr(found, kind)[0][5]], rel=1e-4)


def test_the_attention_of_a_long_text_is_seen_named_and_has_a_scale(show, settle, long_lm):
    """450 tokens: beside the first row, which is a weight of 1, weights of a few hundredths were nearly blank."""
    text = "A robot must obey the orders given it by human beings, except where such orders would conflict. " * 12
    count = len(long_lm.ids(text))
    assert count > 300
    page = show(at("attention", text=text, model="long", layer=1, head=2))
    page.wait_for_selector(".heatmap canvas")
    full = """() => {
      const { width, height } = document.querySelector('.heatmap canvas');
      const { data } = document.querySelector('.heatmap canvas').getContext('2d').getImageData(0, 0, width, height);
      const cells = new Uint32Array(data.buffer), most = cells[0];
      const row = (i) => cells.subarray(i * width, (i + 1) * width);
      return [height, Array.from({ length: height }, (_, i) => row(i).includes(most))];
    }"""
    height, rows = page.evaluate(full)
    assert height > 200 and all(rows), "the strongest cell of every row has the colour of the first, which is 1"
    assert "strongest in the row" in page.inner_text(".legend")
    for kind in ("row", "column"):
        named = [one.inner_text() for one in page.query_selector_all(f".heatmap .label.{kind}")]
        places = [int(one.split()[0]) for one in named]
        assert len(named) > 10 and len(set(np.diff(places))) == 1
    page.get_by_text("strongest of all", exact=True).click()
    settle(page)
    assert not all(page.evaluate(full)[1]) and page.inner_text(".legend").split() == ["0", "1.0"]
    assert "tint=whole" in page.url
    told = heads(run(long_lm, text), [1])
    said = page.inner_text("dl:has([data-summary=induction])")
    assert f"from {told.induction_queries:,} queries" in said


def test_attention_has_a_picture_for_every_head_and_the_future_is_masked(show, settle, builtin):
    page = show(at("attention", position=2, key=5))
    assert page.locator(".glance button").count() == builtin.config.layers * builtin.config.heads
    page.wait_for_selector("[data-step=weight]")
    assert numbers(page, "[data-step=weight]") == [0]
    page.locator('[data-head="3.1"]').click()
    settle(page)
    assert "layer=3" in page.url and "head=1" in page.url
    for stage in ("scores", "masked"):
        page.get_by_text(stage, exact=True).click()
        settle(page)
        assert page.locator(".ground canvas").is_visible()
    page.get_by_text("lines", exact=True).click()
    settle(page)
    assert page.get_by_role("img", name="looks mostly at").is_visible()


def test_layers_shows_the_lens_and_its_last_row_is_the_output(show, builtin):
    page = show(at("layers", mode="rank"))
    whole = run(builtin, TEXT)
    found = lens(whole)
    shown = numbers(page, "tbody button")
    assert shown == found.rank[::-1].flatten().tolist()
    best = builtin.predict(TEXT, k=5)
    assert numbers(page, "aside .share") == pytest.approx([one.probability for one in best], rel=1e-4)


def test_two_words_are_watched(show, settle, builtin):
    page = show(at("layers", watch_a="was", watch_b="loved"))
    page.wait_for_selector(".numbers")
    settle(page)
    ids = [builtin.ids(" was")[0], builtin.ids(" loved")[0]]
    found = lens(run(builtin, TEXT), [len(builtin.ids(TEXT)) - 1], watch=ids)
    shown = numbers(page, ".numbers td")
    assert shown[0::2] == [row[0] for row in found.watch[0].rank]
    assert shown[1::2] == [row[0] for row in found.watch[1].rank]


def test_typing_shows_the_last_text_and_never_an_older_one(show, settle, builtin):
    page = show(at("predict", SHORT))
    page.keyboard.press("e")
    field = page.locator("#text-field")
    field.press_sequentially(" sat on the mat", delay=15)
    settle(page)
    best = builtin.predict("The cat sat on the mat", k=10)
    assert numbers(page, ".bars .share") == pytest.approx([one.probability for one in best], rel=1e-4)
    field.press("Enter")
    page.wait_for_selector("#text-field", state="detached")


def test_an_older_answer_that_comes_late_is_dropped(show, settle):
    """The first question's answer is held back until the second has been answered."""
    page = show(at("predict", SHORT))
    held = []

    def hold(route) -> None:
        if '"text":"slow"' in (route.request.post_data or ""):
            held.append(route)
        else:
            route.continue_()

    page.route("**/api/traces", hold)
    page.keyboard.press("e")
    with page.expect_request(lambda asked: '"text":"slow"' in (asked.post_data or "")):
        page.locator("#text-field").fill("slow")
    page.locator("#text-field").fill("quick")
    chips = "[...document.querySelectorAll('.textbox .chips button')].map((one) => one.innerText).join('')"
    page.wait_for_function(f"() => {chips} === 'quick'")
    assert held
    for route in held:
        with suppress(Exception):  # aborted by the page already: as good
            route.continue_()
    settle(page)
    assert "".join(page.locator(".textbox .chips button").all_inner_texts()) == "quick"


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("language", ["en", "zh-CN", "ru"])
def test_every_page_in_every_language_wide_and_narrow(show, name, language):
    for width in (1280, 375):
        page = show(at(name, SHORT), width=width, height=800, language=language, dark=width == 375)
        assert page.locator("h1").inner_text().strip()
        said = re.sub(r"blocks\.\S+", "", page.locator("body").inner_text())  # a matrix is called by its own name
        assert not re.search(r"\b(shell|predict|attention|layers|glossary)\.\w+", said)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("document.documentElement.lang").startswith(language[:2])


@pytest.mark.parametrize("name", PAGES)
def test_a_thousand_tokens(show, settle, long_lm, name):
    text = long_lm.tokenizer.decode(long_lm.ids("the little fox was on the other side of the hill " * 100)[:1_000])
    count = len(long_lm.ids(text))
    assert 990 < count <= 1_024
    page = show(at(name, text, model="long"), wait=False)
    page.wait_for_selector(".textbox .uncut" if name == "tasks" else ".chips button")
    settle(page)
    if name == "tasks":  # its models have tokens of their own: the text stands uncut
        assert page.locator(".textbox .uncut").inner_text().strip() == text.strip()
    else:
        assert page.locator(".textbox .chips button").count() == count
    if name == "attention":
        page.wait_for_selector(".ground canvas")
        page.get_by_text("lines", exact=True).click()
        settle(page)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing(show, axe, name, dark):
    page = show(at(name, watch_a="was", watch_b="loved"), dark=dark)
    page.add_script_tag(content=axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    said = [(one["id"], [node["html"][:160] for node in one["nodes"]][:3]) for one in found["violations"]]
    assert said == []


def test_an_empty_text_is_said_and_predicted_from(show, builtin):
    page = show(at("predict", ""))
    assert page.get_by_text("No text yet").is_visible()
    best = builtin.predict("", k=10)
    assert numbers(page, ".bars .share") == pytest.approx([one.probability for one in best], rel=1e-4)


@pytest.mark.parametrize("name", ALL)
def test_every_page_has_something_to_say_of_no_text_and_of_too_much(show, settle, builtin, name):
    page = show(at(name, ""))
    assert page.locator("[role=alert]").count() == 0
    assert page.get_by_text("No text yet").is_visible()
    page.keyboard.press("e")
    page.locator("#text-field").fill("word " * (builtin.config.context + 100))
    page.wait_for_selector("main > .failure [role=alert]")
    assert said_count(builtin.config.context) in page.locator("[role=alert]").first.inner_text()
    page.locator("#text-field").fill("The cat")
    page.wait_for_selector("main > .failure", state="detached")
    settle(page)
    assert page.locator("[role=alert]").count() == 0


def test_a_text_too_long_is_said_and_can_be_shortened(show, settle, builtin):
    page = show(at("predict", "word " * (builtin.config.context + 100)), wait=False)
    page.wait_for_selector("[role=alert]")
    said = page.locator("[role=alert]").first.inner_text()
    assert said_count(builtin.config.context) in said and "Shorten" in said
    page.keyboard.press("e")
    page.locator("#text-field").fill("Once upon")
    settle(page)
    assert page.locator("[role=alert]").count() == 0
    assert page.locator(".bars .row").count() == 10


def test_a_model_that_fails_is_said_and_another_can_be_chosen(show, settle):
    page = show(at("predict", SHORT, model="/no/such/folder"), wait=False)
    page.wait_for_selector("[role=alert]")
    assert "/no/such/folder" in page.locator("[role=alert]").first.inner_text()
    page.locator("summary").first.click()
    page.locator(".entry", has_text="builtin").click()
    settle(page)
    assert page.locator("[role=alert]").count() == 0
    assert page.locator(".bars .row").count() == 10


def test_a_server_that_goes_away_is_said_and_taken_up_again(show, settle, served):
    page = show(at("predict", SHORT))
    served.stop()
    try:
        page.keyboard.press("e")
        page.locator("#text-field").fill("The dog")
        page.wait_for_selector(".lost")
        assert page.locator(".bars .row").count() == 10  # what was there stays
    finally:
        served.start()
    page.wait_for_selector(".lost", state="detached")
    settle(page)
    assert "".join(page.locator(".textbox .chips button").all_inner_texts()) == "The·dog"


def test_the_keyboard_moves_through_the_moment(show, settle):
    page = show(at("attention"))
    last = page.locator(".textbox .chips button").count() - 1
    page.locator("h1").focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector(f".textbox .chips button[aria-pressed=true][aria-label^='token {last - 1}:']")
    page.keyboard.press("Shift+ArrowUp")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("n")
    settle(page)
    assert page.url.split("#/")[1].startswith("layers") and "layer=1" in page.url and "head=1" in page.url
    page.go_back()
    settle(page)
    assert "#/attention" in page.url
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")


@pytest.mark.parametrize("name", PAGES)
def test_pictures_save_as_png_svg_and_data(show, name, tmp_path):
    text = "I am happy." if name == "tasks" else TEXT
    page = show(at(name, text))
    for kind, starts in (("PNG", b"\x89PNG"), ("SVG", b"<svg"), ("JSON", b"{")):
        menu = page.locator("details", has_text="Save").first
        if not menu.get_attribute("open"):
            menu.locator("summary").click()
        with page.expect_download() as download:
            menu.get_by_role("button", name=kind).click()
        saved = Path(download.value.path()).read_bytes()
        assert saved.startswith(starts) or (starts == b"<svg" and b"<svg" in saved[:200])
        if kind == "JSON":
            assert json.loads(saved)["text"] == text


def test_after_the_last_token_nothing_really_follows(show):
    page = show("#/layers?text=Once+upon+a+time")
    row = [one.inner_text() for one in page.query_selector_all("tfoot td")]
    assert row[:-1] == ["·upon", "·a", "·time"] and "nothing follows yet" in row[-1]


def test_one_token_looks_at_itself_only(show):
    page = show("#/attention?text=Tom")
    page.wait_for_selector("[data-summary=itself]")
    assert page.locator("[data-summary=itself] data").get_attribute("value") == "1"
    assert page.locator("[data-summary=previous], [data-summary=first]").count() == 0


def test_heads_are_sorted_into_kinds_by_what_an_even_look_would_give(show):
    page = show(
        "#/attention?sort=kind&text=" + quote("Tom had a red ball. He liked to play with it. One day, Tom lost his")
    )
    names = [one.inner_text() for one in page.query_selector_all(".glance .name")]
    assert {"first token", "previous token", "mixed"} <= set(names)
    assert "one and a half times" in page.locator("[data-tour=glance]").inner_text()


def test_bytes_stand_under_the_character_they_belong_to(show):
    text = "你 🙂"
    page = show("#/attention?text=" + quote(text))
    shown = [one.inner_text().split() for one in page.query_selector_all("[data-tour=text] .stacked")]
    assert {sign for sign, *_ in shown} == {"你", "🙂"}
    assert b"".join(bytes.fromhex("".join(held)) for sign, *held in shown if sign == "你") == "你".encode()
    assert "你" in page.locator("main").inner_text()  # and in the labels of the picture


def test_each_page_leads_with_something_to_find(show, settle, builtin):
    """The tree of what may come, factors called by their words, neighbours, waves and roles, causes as a skyline."""
    from cutaway.inspect.ahead import ahead
    from cutaway.inspect.discover import neighbours, waves

    page = show(at("predict"))
    page.wait_for_selector(".ahead button")
    ways = ahead(builtin, builtin.ids(TEXT))
    assert numbers(page, ".ahead") == pytest.approx([one.probability for one in ways], rel=1e-3)
    last = page.locator(".ahead button").last
    path = last.get_attribute("data-path")
    last.click()
    settle(page)
    assert f"more={path}" in page.url and len(path.split(".")) == 4
    page = show(at("weights", word="cat"))
    near = neighbours(builtin, "cat")
    page.wait_for_selector(f"[data-neighbours='{near.of.id}']")
    assert numbers(page, "[data-neighbours]") == pytest.approx(near.cosine.tolist(), rel=1e-3)
    assert page.locator("[data-waves] polyline").count() == len(waves(builtin).lines)
    page.locator("[data-role=previous]").click()
    settle(page)
    assert "#/attention" in page.url
    page = show(at("neurons"))
    page.wait_for_selector(".pick .name")
    words = page.locator(".pick .name").all_inner_texts()
    assert all(re.match(r"\d+\. \S", one) for one in words)
    page = show(at("causes"))
    assert page.locator(".sky button.column").count() == len(builtin.ids(TEXT))
