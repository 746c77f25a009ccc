"""Nothing scrolls the frame away and nothing in it is cut off, whatever the shape of the model and of the screen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

TEXT = "Once upon a time, there was a little girl named Lily. She"
PAGES = ("predict", "walk", "attention", "layers", "causes", "neurons", "generate", "change", "weights", "tasks")
WATCH = """() => {
  window.jumped = 0;
  const moved = event => event.target === document && document.scrollingElement.scrollTop > 0;
  document.addEventListener('scroll', event => { if (moved(event)) window.jumped++; }, true);
}"""


def at(page: str, text: str = TEXT, more: str = "") -> str:
    return f"#/{page}?text={quote(text)}{more}"


@pytest.mark.parametrize("name", PAGES)
def test_nothing_unseen_makes_the_document_longer_than_the_window(show, name):
    page = show(at(name), height=700)
    page.evaluate("document.querySelector('main').scrollTop = 1e6")
    assert page.evaluate("document.scrollingElement.scrollHeight - innerHeight") == 0


def test_a_choice_far_down_is_made_without_a_jump(show):
    page = show(at("neurons"), height=700)
    page.evaluate(WATCH)
    choice = page.get_by_text("groups", exact=True)
    choice.scroll_into_view_if_needed()
    page.evaluate("document.querySelector('main').scrollBy(0, 60)")
    before = page.evaluate("document.querySelector('main').scrollTop")
    assert before > 0
    choice.click()
    page.wait_for_function("location.hash.includes('kind=groups')")
    assert page.evaluate("[document.querySelector('main').scrollTop, document.scrollingElement.scrollTop, jumped]") == [
        before,
        0,
        0,
    ]
    assert page.locator("header").first.bounding_box()["y"] == 0


@pytest.mark.parametrize("name", ["neurons", "attention", "change", "generate", "weights", "tasks"])
def test_tab_goes_through_the_page_without_moving_the_frame(show, name):
    page = show(at(name, "I am happy." if name == "tasks" else TEXT), height=600)
    page.evaluate(WATCH)
    radios = page.locator("fieldset").count()
    assert radios
    met = set()
    for _ in range(80):
        page.keyboard.press("Tab")
        met.add(page.evaluate("document.activeElement.type === 'radio' ? document.activeElement.name : ''"))
    assert len(met - {""}) == radios
    assert page.evaluate("[document.scrollingElement.scrollTop, jumped]") == [0, 0]


@pytest.mark.parametrize(("width", "height"), [(1280, 700), (1280, 900), (375, 740)])
def test_the_field_for_a_folder_is_whole_in_the_menu(show, width, height):
    page = show(at("predict"), width=width, height=height)
    page.locator("summary").first.click()
    page.wait_for_selector(".entry")
    menu, field, button = (
        page.locator(one).bounding_box() for one in ("header .menu", "#other-model", "header form button")
    )
    for box in (field, button):
        assert menu["y"] <= box["y"] and box["y"] + box["height"] <= menu["y"] + menu["height"]
    assert menu["x"] >= 0 and menu["x"] + menu["width"] <= width and menu["y"] + menu["height"] <= height


@pytest.mark.parametrize("width", [1280, 375])
def test_the_words_over_the_last_columns_are_whole(show, width):
    words = "The cat was international"  # its last tokens are long, or many
    page = show(at("attention", words), width=width)
    page.wait_for_selector(".heatmap .label.column")
    rights = page.evaluate(
        "[...document.querySelectorAll('.label.column')].map(one => one.getBoundingClientRect().right)"
    )
    box = page.locator(".heatmap").first.bounding_box()
    assert max(rights) <= box["x"] + box["width"] + 0.5
    clipped = "one => getComputedStyle(one.parentElement).overflowX !== 'visible'"
    assert not page.locator(".heatmap .label.column").last.evaluate(clipped)


@pytest.mark.parametrize("language", ["en", "zh-CN", "ru"])
def test_the_last_column_of_the_weights_is_in_sight(show, language):
    page = show(at("weights"), language=language)
    page.wait_for_selector("tbody tr")
    box = page.locator(".scroll:has(tbody)").first
    assert box.evaluate("one => one.scrollWidth - one.clientWidth") <= 0


@pytest.mark.parametrize("language", ["en", "zh-CN", "ru"])
def test_the_branches_show_their_whole_words_and_the_one_being_read(show, settle, builtin, language):
    ids = [builtin.ids(word)[0] for word in (" something", " suddenly", "©", "\U0001f600")]
    path = [ids[0], *(ids * 4)]
    tree = "".join(f"{one}(" for one in path[:-1]) + str(path[-1]) + ")" * (len(path) - 1)
    page = show(at("predict", more=f"&more={'.'.join(map(str, path))}&tree={quote(tree)}"), language=language)
    page.wait_for_function("document.querySelectorAll('.tree data').length > 10")
    narrow = "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.textContent)"
    cut = page.locator(".tree button").evaluate_all(narrow)
    assert cut == []
    box, here = page.locator(".scroll:has(.tree)").bounding_box(), page.locator(".tree [aria-current]").bounding_box()
    assert box["x"] <= here["x"] and here["x"] + here["width"] <= box["x"] + box["width"] + 1


SMALLEST = {"en": "<0.01%", "zh-CN": "<0.01%", "ru": "<0,01\N{NO-BREAK SPACE}%"}
"""The longest that a share is written."""


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("language", SMALLEST)
def test_the_longest_share_fits_beside_its_bar(show, settle, language, width):
    page = show(at("predict"), language=language, width=width, height=844)
    for place in ("predict?", "change?", "walk?step=22"):
        page.evaluate("at => { location.hash = at }", f"#/{place}&text={quote(TEXT)}")
        page.wait_for_selector(f"nav a[href*='#/{place.split('?')[0]}'][aria-current]")
        settle(page)
        cut = page.evaluate(
            """longest => {
              const shares = [...document.querySelectorAll('main .share')].filter(one => one.checkVisibility());
              for (const one of shares) one.querySelector('data').textContent = longest;
              return [shares.length, shares.filter(one => one.scrollWidth > one.clientWidth).length];
            }""",
            SMALLEST[language],
        )
        assert cut[0] >= 10 and cut[1] == 0, place


@pytest.mark.parametrize("language", ["en", "zh-CN", "ru"])
def test_on_a_phone_the_machine_fits_and_its_stops_can_be_read(show, language):
    page = show(at("walk"), language=language, width=390, height=844)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator(".list summary").click()
    cut = "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.textContent)"
    page.wait_for_selector(".stops [data-length]")
    assert page.locator(".stops .title").evaluate_all(cut) == []


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("language", ["en", "zh-CN", "ru"])
def test_what_a_field_is_for_can_be_read_whole(show, settle, language, width):
    page = show(at("causes"), language=language, width=width, height=844)
    for name in ("causes", "layers", "weights"):
        page.evaluate("at => { location.hash = at }", at(name))
        page.wait_for_selector(f"nav a[href*='#/{name}'][aria-current]")
        settle(page)
        cut = page.evaluate("""() => {
          const pen = document.createElement('canvas').getContext('2d');
          return [...document.querySelectorAll('main input[placeholder]')].filter(one => {
            const look = getComputedStyle(one);
            pen.font = `${look.fontSize} ${look.fontFamily}`;
            const room = one.clientWidth - parseFloat(look.paddingLeft) - parseFloat(look.paddingRight);
            return one.checkVisibility() && pen.measureText(one.placeholder).width > room;
          }).map(one => one.placeholder);
        }""")
        assert cut == [], name


@pytest.mark.parametrize("width", [1280, 1440, 390])
def test_the_numbers_in_the_cells_of_the_walk_stay_in_their_cells(show, settle, width):
    page = show(at("walk"), width=width)
    page.evaluate("""() => {
      window.written = [];
      const { fillText } = CanvasRenderingContext2D.prototype;
      CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
        window.written.push({ text, x, y, width: this.measureText(text).width, on: this.canvas });
        return fillText.call(this, text, x, y);
      };
    }""")
    for step in ("split", "scores", "mask", "softmax", "mix"):
        page.evaluate("window.written = []")
        page.evaluate(
            "at => { location.hash = at }", at("walk", "Tom had a red ball. He lost it", f"&step={step}&layer=1")
        )
        page.wait_for_function("part => location.hash.includes(part)", arg=f"step={step}")
        settle(page)
        touching = page.evaluate("""() => written.filter((one, i) => {
          const next = written[i + 1];
          return one.on.closest('.drawing') && next && next.on === one.on && next.y === one.y && next.x > one.x
            && one.x + one.width / 2 + 1 > next.x - next.width / 2;
        }).map(one => one.text)""")
        assert touching == [], step
    assert page.evaluate("written.length") > 0


def test_the_words_of_the_bars_hold_in_both_themes():
    """Probability is ink: black on light, white on dark. No sentence may call it black."""
    from pathlib import Path

    source = Path(__file__).resolve().parents[2] / "web" / "src"
    for file in [*source.glob("messages/*/*.json"), *source.glob("tour/*.json")]:
        for word in ("black", "чёрн", "черн", "黑"):
            assert word not in file.read_text().lower(), f"{file}: {word}"


class TestShapes:
    """Models as deep and with as many heads as GPT-2's sizes."""

    @pytest.fixture(scope="class", params=[(12, 12), (24, 16), (48, 25)], ids=lambda shape: "x".join(map(str, shape)))
    def served(self, request, server, tiny_lm) -> Iterator[Any]:
        import torch

        from cutaway.language_model import LanguageModel
        from cutaway.models.gpt2.model import GPT
        from cutaway.models.gpt2.shape import Config

        torch.manual_seed(3)
        layers, heads = request.param
        model = GPT(Config(vocabulary=320, context=64, width=4 * heads, layers=layers, heads=heads))
        served = server(LanguageModel(model, tiny_lm.tokenizer, "shaped"))
        served.layers, served.heads = layers, heads
        yield served
        served.stop()

    @pytest.mark.parametrize(("width", "height"), [(1440, 900), (1280, 800), (375, 740)])
    def test_every_head_to_change_is_in_sight_or_a_whole_line_away(self, show, served, width, height):
        page = show(at("change", "the cat", "&model=shaped"), width=width, height=height)
        found = page.evaluate("""() => {
          const box = document.querySelector('.heads');
          const keys = [...box.querySelectorAll('[data-head]')].map(one => one.getBoundingClientRect());
          const { left, right, top, bottom } = box.getBoundingClientRect();
          return {
            keys: keys.length,
            beside: keys.filter(one => one.left < left || one.right > right + 0.5 || one.right > innerWidth).length,
            half: keys.filter(one => one.top < bottom && one.bottom > bottom + 1
              || one.bottom > top && one.top < top - 1).length,
            under: keys.filter(one => one.top >= bottom || one.bottom <= top).length,
            apart: Math.min(...keys.slice(1).map((one, i) => one.top === keys[i].top ? one.left - keys[i].left : 99)),
          };
        }""")  # fmt: skip
        assert found["keys"] == served.layers * served.heads
        assert found["beside"] == 0 and found["half"] == 0 and found["apart"] >= 24
        if served.layers <= 24 and width == 1440:
            assert found["under"] == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= width

    @pytest.mark.parametrize("width", [1440, 375])
    def test_every_head_at_a_glance_is_within_its_box(self, show, served, width):
        page = show(at("attention", "the cat", "&model=shaped"), width=width)
        page.wait_for_selector(".glance button")
        assert page.locator(".glance button").count() == served.layers * served.heads
        assert page.evaluate("(box => box.scrollWidth - box.clientWidth)(document.querySelector('.glance'))") <= 0
