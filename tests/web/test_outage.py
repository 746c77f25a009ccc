"""A server that goes away and comes back, even as another process that remembers nothing: nothing asked is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

TEXT = "Once upon a time"


@pytest.fixture
def own(server, builtin) -> Iterator[Any]:
    """A server for one test, that may be stopped."""
    own = server(builtin)
    yield own
    own.stop()


@pytest.fixture
def opened(browser, own) -> Iterator[Any]:
    """A function: an address inside the explorer -> the page, as soon as there is one."""
    contexts = []

    def opened(place: str, language: str = "en") -> Any:
        contexts.append(browser.new_context(locale=language, reduced_motion="reduce"))
        page = contexts[-1].new_page()
        page.set_default_timeout(60_000)
        page.goto(own.address + place)
        return page

    yield opened
    for context in contexts:
        context.close()


def restart(own: Any) -> None:
    """Another process with the same address: no model is loaded, no text remembered."""
    from cutaway.serve.explorer import Explorer

    own.explorer = Explorer()
    own.start()


def chips(page: Any) -> str:
    return "".join(page.locator(".textbox .chips button").all_inner_texts())


def test_a_token_picked_while_the_server_is_away_is_applied_when_it_is_back(opened, own, builtin):
    page = opened(f"#/predict?text={quote(TEXT)}")
    first = page.locator(".bars .row").first
    first.wait_for()
    token = int(first.get_attribute("data-token"))
    own.stop()
    first.click()
    page.wait_for_selector(".lost")
    restart(own)
    page.wait_for_selector(".lost", state="detached")
    page.wait_for_function("() => document.querySelectorAll('.textbox .chips button').length === 5")
    assert chips(page).replace("·", " ") == TEXT + builtin.tokenizer.decode([token])
    best = builtin.predict(TEXT + builtin.tokenizer.decode([token]), k=1)[0].id
    page.wait_for_selector(f".bars .row[data-token='{best}']")
    assert page.locator("[role=alert]").count() == 0


def test_what_chance_was_asked_for_meanwhile_is_drawn_when_the_server_is_back(opened, own):
    page = opened(f"#/predict?text={quote(TEXT)}")
    page.locator(".bars .row").first.wait_for()
    own.stop()
    page.keyboard.press("r")
    page.wait_for_selector(".lost")
    restart(own)
    page.wait_for_function("() => document.querySelectorAll('.textbox .chips button').length === 5")
    assert page.locator("[role=alert]").count() == 0


@pytest.mark.parametrize("name", ["attention", "weights", "tasks", "causes"])
def test_a_page_opened_while_the_server_is_away_is_there_when_it_is_back(opened, own, name):
    page = opened(f"#/predict?text={quote(TEXT)}")
    page.locator(".bars .row").first.wait_for()
    own.stop()
    page.locator(f"nav a[href*='#/{name}']").first.click()
    page.wait_for_selector(".lost")
    restart(own)
    page.wait_for_selector(".lost", state="detached")
    page.wait_for_selector(".picture[aria-busy=false]")
    page.wait_for_function("part => location.hash.includes(part)", arg=f"#/{name}")
    shown = page.locator(".textbox .uncut").inner_text() if name == "tasks" else chips(page).replace("·", " ")
    assert shown == TEXT
    assert page.locator("[role=alert]").count() == 0


def test_a_model_that_fails_is_named_in_the_message_and_not_above_the_old_pictures(opened):
    page = opened(f"#/predict?text={quote(TEXT)}", "ru")
    page.locator(".bars .row").first.wait_for()
    page.locator("summary").first.click()
    page.locator("#other-model").fill("/no/such/folder")
    with page.expect_request(lambda one: one.url.endswith("/api/models") and one.method == "POST"):
        page.keyboard.press("Enter")
    late = []  # the text is asked for again, and the answer takes its time
    page.route("**/api/traces", lambda route: late.append(route))
    said = page.locator("[role=alert]")
    said.wait_for()
    assert "Папки /no/such/folder нет." in said.inner_text() and "There is" not in said.inner_text()
    assert page.locator("summary .now").first.inner_text() == "builtin"
    page.wait_for_function("() => !location.hash.includes('model=')")  # the address, too, is that of the pictures
    page.locator(".bars .row").first.click()  # and going on goes on with the model that is shown
    page.wait_for_function("() => location.hash.includes('more=')")
    while late:
        late.pop().continue_()
    page.unroute("**/api/traces")
    page.wait_for_function("() => document.querySelectorAll('.textbox .chips button').length === 5")


@pytest.mark.parametrize(
    ("language", "said", "remedy"),
    [("zh-Hans", "没有文件夹 /no/such/folder。", "请给出"), ("ru", "Папки /no/such/folder нет.", "Укажите")],
)
def test_what_the_server_refuses_is_said_in_the_readers_language(opened, language, said, remedy):
    page = opened(f"#/predict?text={quote(TEXT)}&model=/no/such/folder&lang={language}")
    alert = page.locator("[role=alert]")
    alert.wait_for()
    assert said in alert.inner_text() and remedy in alert.inner_text()


def test_what_has_no_translation_is_said_in_english_and_marked_as_that(opened, own, monkeypatch):
    from cutaway.errors import CutawayError

    def fails(*_: Any) -> None:
        raise CutawayError("The clock is wrong. Set it.")

    page = opened(f"#/predict?text={quote(TEXT)}&lang=zh-Hans")
    page.locator(".bars .row").first.wait_for()
    monkeypatch.setattr(own.explorer, "trace", fails)
    page.locator(".bars .row").first.click()
    alert = page.locator("[role=alert]")
    alert.wait_for()
    assert "英文" in alert.inner_text() and alert.locator("strong[lang=en]").inner_text() == "The clock is wrong."
