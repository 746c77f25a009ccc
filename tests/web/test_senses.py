"""Two senses: the page's numbers and neighbours are Python's, at once with the built-in model."""

from __future__ import annotations

from urllib.parse import quote

import pytest

import cutaway
from cutaway.inspect.runs import run
from cutaway.inspect.views import senses

ONE, OTHER, WORD = "Let's stick to the plan.", "He found a stick in the wood.", "stick"


def shown(page) -> dict[str, float]:
    return {
        one.get_attribute("data-layer"): float(one.query_selector(".number").inner_text().replace("−", "-"))
        for one in page.query_selector_all("[data-layer]")
    }


def lists(page) -> list[list[str]]:
    return page.evaluate(
        """[...document.querySelectorAll('.sides ol')]
        .map((list) => [...list.children].map((one) => one.lastChild.innerText))"""
    )


def test_it_begins_with_the_articles_word_and_every_number_is_that_of_python(show, settle, builtin):
    page = show("#/senses")
    page.wait_for_selector("[data-layer]")
    found = senses(run(builtin, builtin.ids(ONE)), other=OTHER, word=WORD)
    numbers = shown(page)
    assert list(numbers) == list(found.layers)
    for name, cosine in zip(found.layers, found.cosines, strict=True):
        assert numbers[name] == pytest.approx(float(cosine), abs=0.006)
    said = [[one.before + one.word + one.after for one in near] for near in found.neighbours]
    assert lists(page) == [*said, [one.word for one in found.static_neighbours]]
    settle(page)


def test_another_reader_is_one_click_away(show, settle):
    page = show("#/senses?row=2")
    page.wait_for_selector("[data-layer]")
    page.get_by_label("ELMo").check()
    page.wait_for_selector('[data-layer="mixed"]')
    settle(page)
    lm = cutaway.load("elmo")
    found = senses(run(lm, lm.ids(ONE)), other=OTHER, word=WORD)
    numbers = shown(page)
    assert list(numbers) == list(found.layers) and "model=elmo" in page.url and "row=" not in page.url
    for name, cosine in zip(found.layers, found.cosines, strict=True):
        assert numbers[name] == pytest.approx(float(cosine), abs=0.006)


def test_another_layer_has_other_neighbours_and_stands_in_the_address(show, builtin):
    page = show("#/senses")
    page.locator('[data-layer="blocks.4.residual"]').click()
    page.wait_for_selector('[data-layer="blocks.4.residual"][aria-pressed="true"]')
    found = senses(run(builtin, builtin.ids(ONE)), other=OTHER, word=WORD, layer=5)
    assert lists(page)[1] == [one.before + one.word + one.after for one in found.neighbours[1]]
    page.wait_for_function("location.hash.includes('row=5')")


def test_a_word_that_is_not_in_both_is_said_in_the_readers_language(show):
    page = show(f"#/senses?word={quote('plan')}&lang=ru")
    page.wait_for_selector("text=не стоит отдельным словом")
    page.locator("label input.field").nth(2).fill("stick")
    page.wait_for_selector("[data-layer]")


def test_an_empty_field_asks_for_a_sentence(show):
    page = show("#/senses")
    page.wait_for_selector("[data-layer]")
    page.locator("label input.field").nth(1).fill(" ")
    page.wait_for_selector("text=Write a sentence in both fields.")
    assert not page.query_selector_all("[data-layer]")
