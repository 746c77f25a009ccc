"""The explorer as a folder of files (`cutaway explore --export`): its pages, from a plain file server in a sub-path,
with the network shut off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")

PAGES = (
    "predict",
    "walk",
    "attention",
    "layers",
    "causes",
    "neurons",
    "generate",
    "change",
    "map",
    "weights",
    "tasks",
    "gallery",
)
CALM = """
() => {
  const pictures = [...document.querySelectorAll('.picture')];
  const calm = pictures.every((one) => one.ariaBusy === 'false') && !document.querySelector('.waiting');
  return pictures.length > 0 && calm;
}
"""


@pytest.fixture(scope="module")
def whole(files, builtin) -> str:
    """The whole site of the built-in model, by its address."""
    from cutaway.serve.site import Moment, export_site

    folder, address = files
    moment = Moment("The fox", "#/attention?text=The+fox+saw+the+hill&layer=1&head=1")
    export_site(builtin, folder / "deep" / "below" / "site", moments=[moment])
    return f"{address}deep/below/site/"


@pytest.fixture
def visit(browser, whole, files) -> Iterator[Callable[..., Any]]:
    """A function: an address inside the site -> the page. Nothing but the site's own folder can be reached."""
    contexts, complaints = [], list[str]()

    def visit(place: str = "", language: str = "en", width: int = 1280, dark: bool = False) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, locale=language, reduced_motion="reduce", bypass_csp=True,
            color_scheme="dark" if dark else "light",
        )  # fmt: skip
        contexts.append(context)
        context.route("**/*", lambda route: route.continue_() if route.request.url.startswith(whole) else refuse(route))
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("requestfailed", lambda request: complaints.append(request.url))
        page.goto(whole + place)
        return page

    def refuse(route: Any) -> None:
        complaints.append(f"asked for {route.request.url}")
        route.abort()

    yield visit
    for context in contexts:
        context.close()
    assert not complaints


def test_every_page_works_on_a_text_of_ones_own(visit):
    """Live: none of these was recorded. What cannot be computed says so, and only that."""
    page = visit()
    for name in PAGES:
        page.evaluate(
            "([name, query]) => { location.hash = `/${name}?${query}`; }", [name, "text=My+own+words+are+here"]
        )
        page.wait_for_selector(f"nav a[aria-current=page][href^='#/{name}']")
        page.wait_for_function(CALM)
        said = page.locator("main [role=alert]").all_inner_texts()
        assert all("needs Python" in one for one in said) and bool(said) == (name in ("neurons", "tasks")), (name, said)
        assert page.locator("main").inner_text().strip()
    assert page.locator("nav").first.locator("a").count() == len(PAGES) + 1  # and the tour; nothing that needs a server


def test_the_first_screen_is_written_on_and_opens_the_ways(visit, builtin):
    page = visit()
    page.wait_for_selector(".welcome .word")
    page.get_by_label("Write the beginning of a text").fill("The little fox")
    best = builtin.predict("The little fox", 1)[0]
    word = page.locator(".welcome .word", has_text=f"{best.probability:.1%}".rstrip("%")).first
    word.wait_for()
    word.click()
    page.wait_for_function(
        "(text) => document.getElementById('welcome-text').value === text", arg=f"The little fox{best.text}"
    )
    page.get_by_role("link", name="The fox").click()
    page.wait_for_selector("nav a[aria-current=page][href^='#/attention']")
    page.wait_for_function(CALM)
    assert page.locator(".welcome").count() == 0
    page.locator("header summary").first.click()
    assert (
        "runs in your browser" in page.locator(".menu").first.inner_text() and page.locator(".menu form").count() == 0
    )


def test_the_whole_tour_is_shown_without_a_server(visit):
    """Every step with what it claims: facts that only Python finds were recorded."""
    page = visit()
    page.wait_for_selector(".welcome .word")
    page.get_by_role("link", name="Take the tour").click()
    seen = 0
    while True:
        page.wait_for_function(CALM)
        assert page.locator("main [role=alert]").count() == 0, page.url
        assert "{" not in page.locator("[aria-labelledby=tour-title], .guide").first.inner_text()
        seen += 1
        on = page.locator(".guide").get_by_role("link", name="Next")
        if not on.count():
            break
        before = page.url
        on.click()
        page.wait_for_function("(before) => location.href !== before", arg=before)
    assert seen > 20


@pytest.mark.parametrize(("language", "width", "dark"), [("en", 1280, True), ("ru", 390, False), ("zh-CN", 390, True)])
def test_axe_finds_nothing_on_the_first_screen_and_where_something_is_missing(visit, axe, language, width, dark):
    page = visit(language=language, width=width, dark=dark)
    page.wait_for_selector(".welcome .word")
    for place in ("", "/neurons?text=My+own+words"):
        if place:
            page.evaluate("(place) => { location.hash = place; }", place)
            page.wait_for_selector("main [role=alert]")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.add_script_tag(content=axe)
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        assert not found, [(one["id"], one["nodes"][0]["html"]) for one in found]


def test_a_model_that_does_not_arrive_is_said_and_tried_again(visit, whole):
    page = visit("cutaway-site.json")
    page.context.route("**/weights.bin", lambda route: route.fulfill(status=404, body="gone"))
    page.goto(whole)
    page.wait_for_selector("main [role=alert]")
    assert "404" in page.locator("main [role=alert]").inner_text()
    page.context.unroute("**/weights.bin")
    page.get_by_role("button", name="Try again").click()
    page.wait_for_selector(".welcome .word")
    assert page.locator("main [role=alert]").count() == 0
