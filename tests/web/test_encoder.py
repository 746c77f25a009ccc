"""The page of encoders in a real browser: gaps, both ways beside one way, vectors; the numbers are Python's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

import cutaway
from cutaway.inspect.both_ways import both_ways
from cutaway.inspect.gaps import gaps
from cutaway.inspect.runs import run
from cutaway.inspect.sentences import sentences

TEXT = "The robots obeyed a little fox on the mat!"


def at(text: str = TEXT, model: str = "bert", **more: object) -> str:
    return f"#/encoder?model={model}&text={quote(text)}" + "".join(
        f"&{name}={quote(str(value))}" for name, value in more.items()
    )


def numbers(page: Any, selector: str) -> list[float]:
    return [float(one.get_attribute("value")) for one in page.query_selector_all(f"{selector} data")]


@pytest.fixture
def served(server, bert_lm, builtin) -> Iterator[Any]:
    """In place of the server that all tests share: one that knows an encoder and the built-in GPT-2."""
    served = server(bert_lm, builtin)
    yield served
    served.stop()


def test_words_are_hidden_and_shown_and_the_guesses_are_pythons(show, settle, bert_lm):
    seen = run(bert_lm, TEXT)
    page = show(at())
    assert page.locator("[data-no-gaps]").count() == 1
    assert page.locator("[data-at='0']").is_disabled(), "[CLS] frames the text"
    for hidden in ((2,), (2, 6)):
        page.locator(f"[data-at='{hidden[-1]}']").click()
        settle(page)
        assert f"hide={'.'.join(map(str, hidden))}" in page.url
        wanted = gaps(seen, hidden)
        assert page.locator("[data-gap]").count() == len(hidden)
        for gap in wanted.gaps:
            place = f"[data-gap='{gap.position}']"
            rows = page.locator(f"{place} .row").all()
            assert [int(one.get_attribute("data-token")) for one in rows] == [one.token.id for one in gap.guesses]
            shares = [one.probability for one in gap.guesses]
            assert numbers(page, f"{place} .share") == pytest.approx(shares, rel=1e-4)
            assert numbers(page, f"{place} [data-stood]") == pytest.approx([gap.probability], rel=1e-4)
            assert f"number {gap.rank} in the list" in page.inner_text(f"{place} [data-stood]")
    # Two gaps at once: what the first gap says depends on whether the other word is hidden, too.
    alone, both = gaps(seen, (2,)).gaps[0], gaps(seen, (2, 6)).gaps[0]
    assert alone.guesses[0].probability != pytest.approx(both.guesses[0].probability, rel=1e-4)
    page.locator("[data-at='2']").click()
    settle(page)
    assert page.locator("[data-gap]").count() == 1 and "hide=6" in page.url
    page.get_by_role("button", name="Show all").click()
    settle(page)
    assert page.locator("[data-gap]").count() == 0
    written = show(at("the [MASK] sat"))
    wanted = gaps(run(bert_lm, "the [MASK] sat"))
    assert numbers(written, "[data-gap='2'] .share") == pytest.approx(
        [one.probability for one in wanted.gaps[0].guesses], rel=1e-4
    )


def test_both_ways_stand_beside_one_way_and_what_is_cut_differently_is_said(show, settle, bert_lm, builtin):
    page = show(at(layer=1, head=2))
    for layer, head in ((None, None), (0, 3)):
        if layer is not None:
            page.get_by_role("slider", name="layer of GPT-2").fill(str(layer))
            page.get_by_role("slider", name="head of GPT-2").fill(str(head))
            settle(page)
        found = both_ways(run(bert_lm, TEXT), run(builtin, TEXT), 1, 2, layer, head)
        assert page.locator("[data-side=left] figcaption").inner_text() == "This model, layer 1, head 2"
        said = f"GPT-2, layer {found.layers[1]}, head {found.heads[1]}"
        assert page.locator("[data-side=right] figcaption").inner_text() == said
        assert numbers(page, "[data-way=left]") == pytest.approx([found.left[1][2]], rel=1e-4)
        assert numbers(page, "[data-way=right]") == pytest.approx([found.right[1][2]], rel=1e-4)
        assert numbers(page, "[data-ahead=left]") == pytest.approx([found.ahead[0]], rel=1e-4)
        assert numbers(page, "[data-ahead=right]") == [0]
    assert found.right[1][2] == 0 < found.left[1][2]
    assert (
        int(page.locator("[data-cut]").get_attribute("data-cut")) == found.cut == page.locator(".cuts li").count() > 0
    )
    # Another cell, by the keys of the table: both tables follow.
    page.locator("[data-side=left] [role=application]").focus()
    page.keyboard.press("ArrowUp")
    settle(page)
    assert page.locator("aside .mono").first.inner_text().startswith("[CLS] →")
    assert page.locator("[data-way=right]").inner_text() == "–", "GPT-2 has no [CLS]"


def test_sentences_are_compared_by_their_vectors(show, settle, bert_lm):
    page = show(at())
    page.locator("textarea").fill("a cat sat on the mat.\n\nthe fox must obey")
    page.wait_for_function("document.querySelectorAll('[data-near]').length === 2")
    settle(page)
    wanted = sentences(run(bert_lm, TEXT), ["a cat sat on the mat.", "the fox must obey"]).cosines
    order = sorted((1, 2), key=lambda one: -wanted[0][one])
    assert [int(one.get_attribute("data-near")) for one in page.query_selector_all("[data-near]")] == order
    assert numbers(page, "[data-near]") == pytest.approx([float(wanted[0][one]) for one in order], rel=1e-4)


def test_a_gpt2_is_told_what_to_do_and_a_model_of_vectors_shows_the_rest(show, server, bert_lm, builtin):
    page = show(at(model="builtin"))
    assert "cutaway explore --model FOLDER" in page.locator("[data-unfit=encoder]").inner_text()
    assert page.locator("main [role=alert]").count() == 0
    from cutaway.language_model import LanguageModel
    from cutaway.models.bert.heads import with_head

    vectors = LanguageModel(with_head(bert_lm.model, ""), bert_lm.tokenizer, "vectors")
    other = server(vectors, builtin)
    try:
        page = show(at(model="vectors"), at=other)
        assert "cannot guess hidden words" in page.locator("[data-no-words]").inner_text()
        assert page.locator("[data-side]").count() == 2 and page.locator("[data-near]").count() == 3
    finally:
        other.stop()


def test_the_bert_that_comes_along_is_one_click_away(show, settle):
    page = show("#/encoder")
    page.locator("[data-take=bert]").click()
    page.wait_for_url("**model=bert*")
    page.wait_for_selector("[data-near]")
    settle(page)
    lm = cutaway.load("bert")
    [gap] = lm.fill("The little dog began to [MASK] at the cat.", 5)
    bars = page.locator("[data-at] ~ *, main").first.inner_text()
    assert gap.predictions[0].text in bars and page.locator("main [role=alert]").count() == 0


@pytest.mark.parametrize(("language", "dark"), [("en", False), ("zh-CN", True), ("ru", False)])
def test_on_a_phone_nothing_sticks_out_and_readers_can_read_it(show, axe, language, dark):
    page = show(at(hide="2.6"), width=390, height=844, language=language, dark=dark)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.add_script_tag(content=axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []
