"""A page on paper: light, whole, and without what would be pressed."""

from __future__ import annotations

from urllib.parse import quote

import pytest

TEXT = "Once upon a time, there was a little girl named Lily. She"
LEFT_OUT = "nav, .turns, .tools, .player, .reader, .textbox .side"


@pytest.mark.parametrize("name", ["predict", "walk", "attention", "layers", "causes", "neurons", "weights", "gallery"])
def test_a_page_is_printed_whole_and_light_without_its_controls(show, settle, name):
    page = show(f"#/{name}?text={quote(TEXT)}", width=720, dark=True)
    page.emulate_media(media="print", color_scheme="dark", reduced_motion="reduce")
    page.wait_for_function("document.documentElement.dataset.theme === 'light'")
    settle(page)
    assert page.locator("h1").is_visible() and page.locator(".picture").is_visible()
    assert page.locator(".textbox .chips button").last.is_visible()
    assert page.locator(LEFT_OUT).filter(visible=True).count() == 0
    # Nothing scrolls inside the page: all of it is in the document.
    hidden = page.evaluate(
        """() => [document.querySelector('.app'), document.querySelector('main')].map((one) =>
          getComputedStyle(one).overflowY + ' ' + (one.scrollHeight <= one.clientHeight + 1))"""
    )
    assert hidden == ["visible true", "visible true"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 720
    assert page.pdf().startswith(b"%PDF")


def test_the_living_view_is_painted_light_before_it_is_printed(show, settle):
    page = show(f"#/walk?text={quote(TEXT)}", dark=True)
    page.wait_for_function("document.querySelector('canvas.living').describe().river.length > 0")
    settle(page)
    corner = """() => {
      const canvas = document.querySelector('canvas.living');
      return canvas.getContext('2d').getImageData(canvas.width - 4, 4, 1, 1).data[0];
    }"""
    assert page.evaluate(corner) < 60
    page.emulate_media(media="print", color_scheme="dark", reduced_motion="reduce")
    page.wait_for_function(f"({corner})() > 240")
    page.emulate_media(media="screen", color_scheme="dark", reduced_motion="reduce")
    page.wait_for_function(f"({corner})() < 60")
