"""Two sides: the page twice, in step, with what differs marked and listed as Python finds it."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from cutaway.inspect.beside import beside
from cutaway.inspect.runs import run

LEFT, RIGHT = "Tom had a red ball. He liked it", "Tom had a big blue ball. He liked it"
NUMBERS = "[...document.querySelectorAll('.differences .number data')].map(one => Number(one.value))"


def at(page: str, **more: object) -> str:
    return f"#/{page}?text={quote(LEFT)}&beside=1" + "".join(
        f"&{name}={quote(str(value))}" for name, value in more.items()
    )


def shown(found) -> list[float]:
    return [value for row in found.to_dict()["rows"] for value in (row["left"], row["right"]) if value is not None]


def listed(page, found) -> None:
    """Wait until the list has Python's numbers."""
    page.wait_for_function(
        f"""wanted => {{
          const found = {NUMBERS};
          const near = (a, b) => Math.abs(a - b) <= 1e-7 + 1e-4 * Math.abs(b);
          return found.length === wanted.length && found.every((one, i) => near(one, wanted[i]));
        }}""",
        arg=shown(found),
    )


def test_two_texts_are_shown_in_step_and_their_differences_are_pythons(show, builtin):
    runs, longer = (run(builtin, LEFT), run(builtin, RIGHT)), run(builtin, LEFT + " very")  # while the server rests
    page = show(at("attention", text2=RIGHT, layer=2, head=3), wait=False)
    left, right = page.frame_locator("iframe.left"), page.frame_locator("iframe.right")
    found = beside(*runs, "attention", layer=2, head=3)
    listed(page, found)
    assert found.distance == pytest.approx(float(page.locator("header data").get_attribute("value")), rel=1e-4)
    differ = [pair.right for pair in found.pairs if not pair.same and pair.right is not None]
    right.locator(".chips .marked").first.wait_for()
    assert right.locator(".chips .marked").count() == len(differ)
    assert left.locator(".chips .marked").count() == sum(
        not pair.same and pair.left is not None for pair in found.pairs
    )
    # A hand on the right: the token beside it is chosen on the left, and both are compared there.
    one = next(pair for pair in found.pairs if pair.same and pair.right != pair.left)
    right.locator(".chips button").nth(one.right).click()
    left.locator(f".chips li:nth-child({one.left + 1}) button.chosen").wait_for()
    page.wait_for_function("at => location.hash.includes(`position=${at}&`)", arg=one.left)
    listed(page, beside(*runs, "attention", one.left, None, 2, 3))
    # A hand on the left: the layer is turned on both.
    left.get_by_role("slider", name="layer").fill("1")
    right.locator("input[type=range]").first.wait_for()
    page.wait_for_function("location.hash.includes('layer=1&')")
    assert right.get_by_role("slider", name="layer").input_value() == "1" or right.locator("text=Layer 1").count()
    listed(page, beside(*runs, "attention", one.left, None, 1, 3))
    # Another page is another page on both, and its differences are its own.
    page.get_by_role("link", name="Layers").click()
    for frame in (left, right):
        frame.locator("#page-title", has_text="layer").wait_for()
    listed(page, beside(*runs, "layers", one.left))
    # Another text is written on the right; the address knows it.
    right.get_by_role("button", name="Write").click()
    right.locator("#text-field").fill(LEFT + " very")
    right.locator("#text-field").press("Enter")
    page.wait_for_function("location.hash.includes('text2=') && location.hash.includes('very')")
    listed(page, beside(runs[0], longer, "layers"))  # a new text is looked at from its end
    page.get_by_role("button", name="One side").click()
    page.wait_for_selector(".sides", state="detached")
    page.wait_for_function("!location.hash.includes('text2')")


@pytest.mark.parametrize("dark", [False, True])
def test_two_models_side_by_side_on_a_phone_stand_one_above_the_other(show, builtin, long_lm, axe, dark):
    page = show(at("weights", model2="long"), width=390, height=800, wait=False, dark=dark)
    page.wait_for_selector(".found .note, .differences li")
    page.frame_locator("iframe.right").locator("header .model", has_text="long").wait_for()
    page.frame_locator("iframe.left").locator("#page-title").wait_for()
    boxes = [page.locator(f"iframe.{side}").bounding_box() for side in ("left", "right")]
    assert boxes[0]["y"] + boxes[0]["height"] <= boxes[1]["y"] + 1 and boxes[0]["x"] == boxes[1]["x"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.add_script_tag(content=axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations'], iframes: false})")
    assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []


def test_where_no_view_compares_the_numbers_that_differ_are_marked_where_they_stand(show):
    page = show(at("gallery", model2="long"), wait=False)
    page.wait_for_function("""() => {
      const said = Number(document.querySelector('[data-marked]')?.dataset.marked ?? 0);
      const marked = (frame) => [...frame.contentDocument.querySelectorAll('[data-differs]')];
      const [left, right] = [...document.querySelectorAll('iframe')].map(marked);
      const words = (one) => one.textContent.trim();
      const told = (one, other) => words(one) !== words(other) && one.title.includes(words(other));
      return said > 0 && left.length === said && right.length === said
        && left.every((one, i) => told(one, right[i]) && told(right[i], one));
    }""")
    alike = show(at("gallery"), wait=False)
    alike.locator("[data-marked='0']", has_text="the same on both sides").wait_for()
    show(at("jobs"), wait=False).get_by_text("belongs to the server").wait_for()
