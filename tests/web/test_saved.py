"""What is saved is what is shown: lines as lines, names and numbers with the picture, each thing called what it is."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest

from cutaway.inspect.runs import run
from cutaway.models.gpt2.shape import SIZES
from cutaway.models.steps import model_map

TEXT = "A robot must obey orders"
STEPS = [step.name for step in model_map(SIZES["gpt2"]).steps]


def at(page: str, **more: object) -> str:
    return f"#/{page}?text={quote(TEXT)}" + "".join(f"&{name}={quote(str(value))}" for name, value in more.items())


def saved(page, kind: str, nth: int = 0) -> str:
    menu = page.locator("details", has_text="Save").nth(nth)
    menu.locator("summary").click()
    with page.expect_download() as download:
        menu.get_by_role("button", name=kind).click()
    return Path(download.value.path()).read_text()


def words(svg: str) -> list[str]:
    """Every text of the drawing, its title left out."""
    return [unescape(one) for one in re.findall(r"<text[^>]*>([^<]*)</text>", svg)]


def said(share: float) -> str:
    """A share as the page writes it."""
    value = 100 * share
    return "<0.01%" if value < 0.01 else f"{value:.2f}%" if value < 1 else f"{value:.1f}%"


@pytest.mark.parametrize("lines", ["upright", "level"])
def test_lines_are_saved_as_lines_with_the_shares_of_the_chosen_token(show, builtin, lines):
    page = show(at("attention", view="lines", lines=lines, layer=1, head=2))
    svg = saved(page, "SVG", 1)
    seen = run(builtin, TEXT)
    names = [one.text.replace(" ", "·") for one in seen.tokens]
    assert svg.count("<path") >= len(names) and svg.count("<rect") <= 1 + 2 * len(names)  # curves, not a table
    for name in names:
        assert words(svg).count(name) >= 2  # once where it looks, once where it is looked at
    weights = seen["blocks.1.attention.weights"][2, -1]
    for weight in weights:
        if float(weight) > 0.006:
            assert said(float(weight)) in words(svg)


def test_the_table_is_saved_as_a_table(show):
    svg = saved(show(at("attention", layer=1, head=2)), "SVG", 1)
    assert "<path" not in svg


def test_heads_are_saved_as_they_are_sorted(show):
    page = show(at("attention", sort="kind"))
    groups = page.locator(".glance .name").all_inner_texts()
    assert len(groups) > 1
    assert [one for one in words(saved(page, "SVG")) if one in groups] == groups


@pytest.mark.parametrize("step", STEPS)
def test_every_step_of_the_walk_is_saved_with_names_and_numbers(show, settle, builtin, step):
    page = show(at("walk", step=step, layer=1, head=2))
    svg = words(saved(page, "SVG"))
    for label in page.locator(".scene .label").all_inner_texts():
        name = re.match(r"\W*([^\W\d][^\d×·\n]*)?", label).group(1)  # without signs and sizes
        if name and step != "logits":
            assert any(one.startswith(name.strip()) for one in svg), f"{name} is not in {svg}"
    assert any(re.search(r"\d", one) for one in svg[2:])
    if step in ("scores", "mask", "softmax", "mix"):
        for token in run(builtin, TEXT).tokens:
            assert token.text.replace(" ", "·") in svg


def test_probabilities_are_not_called_scores(show, builtin):
    svg = words(saved(show(at("walk", step="choice")), "SVG"))
    assert "probability" in svg and "score" in svg
    for guess in builtin.predict(TEXT, k=10):
        assert guess.text.replace(" ", "·").replace("\n", "⏎") in svg
        assert said(guess.probability) in svg
    whole = words(saved(show(at("walk", step="whole")), "SVG"))
    assert said(builtin.predict(TEXT, k=1)[0].probability) in whole
    assert [one for one in whole if one.startswith("Block")] == [
        f"Block {layer}" for layer in reversed(range(builtin.config.layers))
    ]


def test_the_data_of_a_table_is_saved_with_it(show, builtin):
    page = show(at("walk", step="softmax", layer=1, head=2))
    table = json.loads(saved(page, "JSON"))["table"]
    weights = run(builtin, TEXT)["blocks.1.attention.weights"][2]
    assert table == [pytest.approx(row.tolist(), abs=1e-5) for row in weights]


@pytest.mark.parametrize(("width", "height", "language"), [(375, 667, "en"), (390, 844, "zh-CN"), (360, 640, "ru")])
def test_on_a_phone_the_card_hides_none_of_the_bars(show, settle, width, height, language):
    """The way a stranger comes: by the offer, with the page there already."""
    page = show("", width=width, height=height, language=language, touch=True)
    page.locator(".offer a").tap()
    page.locator(".ask button.plain").tap()  # the bars come after a guess, or without one
    page.wait_for_selector("[data-toured] .bars .row")
    settle(page)
    page.wait_for_function("""() => {
      const bottom = document.querySelector('.card').getBoundingClientRect().bottom;
      const top = document.querySelector('.bars .row').getBoundingClientRect().top;
      return bottom <= top && top < 0.6 * innerHeight;
    }""")
    page.wait_for_selector(".ahead button .word")
    wide = page.evaluate("[...document.querySelectorAll('.ahead .word')].map((one) => one.clientWidth)")
    assert min(wide) > 5, "a word of the tree has no room beside its share"
