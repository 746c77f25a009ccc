"""The pages that `cutaway inspect --html` writes, read with the keyboard."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from cutaway.inspect.attention import attention
from cutaway.inspect.page import page as write
from cutaway.inspect.runs import run


def test_the_attention_of_a_long_text_is_seen_named_and_has_a_scale(browser, long_lm, tmp_path):
    """450 tokens: beside the first row, which is a weight of 1, weights of a few hundredths were nearly blank."""
    seen = run(long_lm, [*range(40, 265)] * 2)
    assert len(seen) == 450
    found = attention(seen, 1, 2)
    file = tmp_path / "attention.html"
    file.write_text(write("attention", seen.to_dict(), found.to_dict(("scores", "weights"))), encoding="utf8")
    page = browser.new_page()
    page.goto(file.as_uri())
    page.wait_for_selector("canvas")
    alpha = page.evaluate(
        "() => { const canvas = document.querySelector('canvas');"
        "const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);"
        "return [canvas.width, Array.from({ length: data.length / 4 }, (_, i) => data[4 * i + 3])]; }"
    )
    side, cells = alpha
    table = np.array(cells).reshape(side, side) / 255
    wanted = (found.weights / found.weights.max(axis=1, keepdims=True)) ** 0.6
    np.testing.assert_allclose(table, wanted, atol=0.01)
    assert (table.max(axis=1) == 1).all() and "full colour: the strongest of its row" in page.inner_text("main")
    for labels in (".labels div", ".over div"):
        names = page.query_selector_all(labels)
        assert 20 < len(names) < 100
        assert [int(one.inner_text().split()[0]) for one in names] == [7 * i for i in range(len(names))]
    heights = [one.bounding_box() for one in page.query_selector_all(".labels div")]
    assert all(a["y"] + a["height"] <= b["y"] + 0.5 for a, b in pairwise(heights))
    page.close()


def test_a_heat_picture_is_read_cell_by_cell_with_the_arrow_keys(browser, builtin, axe, tmp_path):
    seen = run(builtin, "Once upon a time")
    found = attention(seen, 1, 2)
    file = tmp_path / "attention.html"
    file.write_text(write("attention", seen.to_dict(), found.to_dict()), encoding="utf8")
    context = browser.new_context(bypass_csp=True)
    page = context.new_page()
    page.goto(file.as_uri())
    picture, note = page.locator("canvas").first, page.locator(".note").first
    picture.focus()
    for key, row, column in (("Home", 0, 0), ("ArrowDown", 1, 0), ("ArrowRight", 1, 1), ("End", 1, len(seen) - 1)):
        page.keyboard.press(key)
        words = [token.text.replace(" ", "·") for token in seen.tokens]
        assert note.inner_text().startswith(f"{words[row]} → {words[column]}: ")
        assert float(note.inner_text().split(": ")[1]) == float(f"{found.weights[row, column]:.4g}")
    page.add_script_tag(content=axe)
    problems = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    assert [(one["id"], one["nodes"][0]["html"][:120]) for one in problems] == []
    context.close()
