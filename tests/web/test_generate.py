"""Generate: the numbers on the page are the cache's, the choice's and the search's."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from cutaway.inspect.beams import tree
from cutaway.inspect.cache import cache
from cutaway.inspect.choices import choices

TEXT = "Once upon a time, there was a little girl named Lily. She"
HOW = {"temperature": 1.3, "top_k": 12, "top_p": 0.9, "seed": 4}


def at(**more: object) -> str:
    return f"#/generate?text={quote(TEXT)}" + "".join(f"&{name}={value}" for name, value in more.items())


def values(page, selector: str) -> list[float]:
    return [float(one.get_attribute("value")) for one in page.query_selector_all(f"{selector} data")]


def test_a_step_shows_how_its_token_was_chosen_and_what_was_reused(show, settle, builtin):
    page = show(at(n=3, **HOW))
    page.wait_for_selector("tr.chosen")
    steps = cache(builtin, TEXT, 20, **HOW).steps
    drawn = choices(builtin, TEXT, 20, **HOW).steps
    for n in (3, 4):
        step, choice = steps[n - 1], drawn[n - 1]
        assert int(page.locator("tr.chosen").get_attribute("data-token")) == choice.chosen == step.token.id
        for key in ("own", "warm", "chance"):
            wanted = [getattr(one, key) for one in choice.candidates]
            assert values(page, f"[data-column={key}]") == pytest.approx(wanted, rel=1e-4, abs=1e-9)
        assert float(page.locator(".die text").text_content()) == pytest.approx(choice.die, rel=1e-3)
        assert values(page, "[data-cache=read]") == [step.read]
        assert values(page, "[data-cache=reused]") == [step.reused]
        assert values(page, "[data-cache=written]") == [step.bytes_written]
        assert values(page, "[data-cache=bytes]") == [step.bytes_reused]
        assert values(page, "[data-cost=with]") == [step.multiplications]
        assert values(page, "[data-cost=without]") == [step.without]
        page.locator("h1").focus()
        page.keyboard.press(".")
        settle(page)
    assert "n=5" in page.url


def test_it_plays_to_the_end_and_the_text_can_be_kept(show, settle, builtin):
    page = show(at(length=3, **HOW))
    written = cache(builtin, TEXT, 3, **HOW)
    ids = [step.token.id for step in written.steps]
    page.get_by_role("button", name="Play").click()
    page.wait_for_selector(".writing .chips li:nth-child(3)")
    page.get_by_role("button", name="Keep as text").click()
    settle(page)
    assert f"more={'.'.join(map(str, ids))}" in page.url


def test_the_tree_has_every_candidate_and_a_link_restores_the_node(show, builtin):
    wanted = tree(builtin, TEXT, 4, 12)
    page = show(at(view="beams", node=6))
    page.wait_for_selector(".node")
    assert page.locator(".node").count() == len(wanted.nodes)
    assert page.locator(".node.kept").count() == sum(node.kept for node in wanted.nodes)
    assert values(page, "[data-node=logprob]") == pytest.approx([wanted.nodes[6].logprob], rel=1e-4)
    assert values(page, "[data-node=score]") == pytest.approx([wanted.nodes[6].score], rel=1e-4)
    assert values(page, ".results") == pytest.approx([one.score for one in wanted.results], rel=1e-4)
    page.locator(".node.chosen").focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector(".node.chosen[data-id='0']")
