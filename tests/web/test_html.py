"""The pages that `cutaway inspect --html` writes, read with the keyboard."""

from __future__ import annotations

from cutaway.inspect.attention import attention
from cutaway.inspect.page import page as write
from cutaway.inspect.run import run


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
