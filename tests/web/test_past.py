"""Undo, redo and the browser's way back go from moment to moment; single keys can be turned off."""

from __future__ import annotations

from urllib.parse import quote

import pytest

TEXT = "Once upon a time"
SHOWS = "want => document.querySelectorAll('.turns output')[1].textContent >= want"
CHIPS = ".textbox .chips button"


def at(page: str, text: str = TEXT, more: str = "") -> str:
    return f"#/{page}?text={quote(text)}{more}"


def until(page, part: str, there: bool = True) -> None:
    page.wait_for_function("([part, there]) => location.hash.includes(part) === there", arg=[part, there])


def pick(page, settle, nth: int) -> int:
    settle(page)
    row = page.locator(".bars .row").nth(nth)
    token = int(row.get_attribute("data-token"))
    row.click()
    settle(page)
    return token


@pytest.mark.parametrize("control", ["Control", "Meta"])
def test_picks_are_undone_and_done_again(show, settle, control):
    page = show(at("predict"))
    first = pick(page, settle, 0)
    until(page, f"more={first}")
    second = pick(page, settle, 1)
    until(page, f"more={first}.{second}")
    page.keyboard.press(f"{control}+z")
    until(page, f"more={first}.{second}", there=False)
    until(page, f"more={first}")
    page.keyboard.press(f"{control}+z")
    until(page, "more=", there=False)
    settle(page)
    count = page.locator(CHIPS).count()
    page.keyboard.press(f"{control}+Shift+z")
    until(page, f"more={first}")
    page.keyboard.press(f"{control}+Shift+z")
    until(page, f"more={first}.{second}")
    settle(page)
    assert page.locator(CHIPS).count() == count + 2


def test_undo_stops_where_the_visit_began(show, settle):
    page = show(at("predict"))
    begun = page.url
    first = pick(page, settle, 0)
    until(page, f"more={first}")
    for _ in range(4):
        page.keyboard.press("Control+z")
        page.wait_for_function("history.state.n === 0")
    page.wait_for_function("address => location.href === address", arg=begun)


def test_the_browsers_way_back_goes_to_the_moment_before(show, settle):
    page = show(at("predict"))
    first = pick(page, settle, 0)
    until(page, f"more={first}")
    page.locator(CHIPS).nth(1).click()
    until(page, "position=1")
    page.go_back()
    until(page, "position=", there=False)
    until(page, f"more={first}")
    page.go_back()
    until(page, "more=", there=False)
    page.go_forward()
    until(page, f"more={first}")


def test_backspace_takes_the_last_pick_back_and_nothing_else(show, settle):
    page = show(at("predict"))
    first = pick(page, settle, 0)
    second = pick(page, settle, 0)
    until(page, f"more={first}.{second}")
    page.keyboard.press("Backspace")
    until(page, f"more={first}.{second}", there=False)
    until(page, f"more={first}")
    settle(page)
    page.keyboard.press("Backspace")
    until(page, "more=", there=False)
    settle(page)
    page.keyboard.press("Backspace")
    settle(page)
    assert "text=Once+upon+a+time" in page.url
    page.keyboard.press("Control+z")
    until(page, f"more={first}")


def test_what_was_typed_is_one_deed_and_a_field_undoes_for_itself(show, settle):
    page = show(at("predict", "The cat"))
    entries = page.evaluate("history.length")
    page.keyboard.press("e")
    field = page.locator("#text-field")
    field.press_sequentially(" sat on", delay=80)
    until(page, "text=The+cat+sat+on")
    assert page.evaluate("history.length") == entries + 1
    field.press("Control+z")
    page.wait_for_function("document.querySelector('#text-field').value !== 'The cat sat on'")
    assert page.locator("#text-field").count() == 1 and page.evaluate("history.length") == entries + 1
    field.fill("The cat sat down")
    until(page, "text=The+cat+sat+down")
    field.press("Enter")
    settle(page)
    page.keyboard.press("Control+z")
    page.wait_for_function("new URLSearchParams(location.hash.split('?')[1]).get('text') === 'The cat'")


def test_the_caret_stays_where_one_types(show, settle):
    page = show(at("predict", "The sat"))
    page.keyboard.press("e")
    field = page.locator("#text-field")
    field.evaluate("one => one.setSelectionRange(3, 3)")
    field.press_sequentially(" cat", delay=80)
    until(page, "text=The+cat+sat")
    settle(page)
    assert field.evaluate("one => one.selectionStart") == len("The cat")


def test_settings_are_undone_a_drag_at_once_and_pages_turn_back(show, settle):
    page = show(at("attention"))
    page.get_by_text("lines", exact=True).click()
    until(page, "view=lines")
    page.locator('[data-head="2.1"]').click()
    until(page, "layer=2")
    box = page.get_by_role("slider", name="head").bounding_box()
    entries = page.evaluate("history.length")
    page.mouse.move(box["x"] + 4, box["y"] + box["height"] / 2)
    page.mouse.down()
    for step in range(1, 9):
        page.mouse.move(box["x"] + step * box["width"] / 8, box["y"] + box["height"] / 2)
        page.wait_for_function(SHOWS, arg=str(max(0, step // 2 - 1)))
    page.mouse.up()
    until(page, "head=5")
    assert page.evaluate("history.length") == entries + 1
    page.get_by_role("link", name="Layers").click()
    until(page, "#/layers")
    page.keyboard.press("Control+z")
    until(page, "#/attention")
    until(page, "head=5")
    page.keyboard.press("Control+z")
    until(page, "head=1")
    page.keyboard.press("Control+z")
    until(page, "layer=2", there=False)
    page.keyboard.press("Control+z")
    until(page, "view=lines", there=False)


def test_a_step_of_the_tour_is_undone_too(show, settle):
    page = show(at("predict", more="&tour=next-word"))
    page.get_by_role("link", name="Next", exact=True).click()
    until(page, "tour=tokens")
    page.wait_for_function("history.state?.n === 1")
    page.keyboard.press("Control+z")
    until(page, "tour=next-word")
    page.wait_for_function("history.state.n === 0")


def test_the_branches_of_predict_come_back_with_the_text_undone_elsewhere(show, settle):
    page = show(at("predict"))
    first = pick(page, settle, 0)
    until(page, f"tree={first}")
    page.get_by_role("link", name="Layers").click()
    until(page, "#/layers")
    settle(page)
    page.keyboard.press("e")
    page.locator("#text-field").fill("Another text")
    page.locator("#text-field").press("Enter")
    until(page, "text=Another+text")
    page.keyboard.press("Control+z")
    until(page, f"more={first}")
    page.get_by_role("link", name="Predict").click()
    until(page, f"tree={first}")


@pytest.mark.parametrize("language", ["en", "zh-CN", "ru"])
def test_single_keys_can_be_turned_off_and_stay_so(show, settle, axe, language):
    page = show(at("predict"), language=language)
    page.keyboard.press("?")
    switch = page.get_by_role("dialog").get_by_role("switch")
    assert switch.is_checked()
    page.add_script_tag(content=axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert [(one["id"], one["nodes"][0]["html"][:160]) for one in found["violations"]] == []
    switch.click()
    page.keyboard.press("Escape")
    for key in ("n", "1", "e", "?", "/", "r", "]"):
        page.keyboard.press(key)
    settle(page)
    assert "#/predict" in page.url and "more=" not in page.url
    assert page.locator("#text-field").count() == 0 and not page.get_by_role("dialog").is_visible()
    page.keyboard.press("ArrowLeft")  # not a sign: it still works
    until(page, "position=")
    page.reload()
    settle(page)
    page.keyboard.press("n")
    page.keyboard.press("ArrowLeft")
    settle(page)
    assert "#/predict" in page.url
    page.locator("header .round").last.click()
    page.get_by_role("dialog").get_by_role("switch").click()
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    until(page, "#/walk")
