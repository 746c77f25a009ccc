"""Change: what the page shows before and after is what `cutaway.inspect.change` says."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from cutaway.inspect.change import changed, from_dict
from cutaway.inspect.metric import KL
from cutaway.inspect.runs import run

TEXT = "Once upon a time, there was a little girl named Lily. She"
CHANGES = [
    {"kind": "ablate_head", "layer": 2, "head": 1},
    {"kind": "toward", "layer": 3, "token": " dog", "strength": 0.6},
]


def numbers(page, selector: str) -> list[float]:
    return [float(one.get_attribute("value")) for one in page.query_selector_all(f"{selector} data")]


def at(changes: list[dict], **more: object) -> str:
    settings = "".join(f"&{name}={quote(str(value))}" for name, value in more.items())
    return f"#/change?text={quote(TEXT)}&changes={quote(json.dumps(changes))}{settings}"


def compare(page, builtin, changes: list[dict], position: int = -1) -> None:
    """The numbers on the page are those of Python."""
    after = run(builtin, TEXT, changes=[from_dict(one) for one in changes])
    wanted = changed(run(builtin, TEXT), after, position)
    for side in ("before", "after"):
        best = getattr(wanted, side)
        rows = page.query_selector_all(f"[data-side={side}] .row")
        assert [int(row.get_attribute("data-token")) for row in rows] == [one.token.id for one in best]
        shown = numbers(page, f"[data-side={side}] .share")
        assert shown == pytest.approx([one.probability for one in best], rel=1e-3, abs=1e-7)
    assert numbers(page, ".kl td") == pytest.approx(wanted.kl.tolist(), rel=1e-3, abs=1e-5)
    rows = numbers(page, "tr:not(.kl) td[style]")
    assert rows == pytest.approx(wanted.stream[::-1].flatten().tolist(), rel=1e-3, abs=1e-5)


def test_before_and_after_and_the_effect_are_those_of_python(show, settle, builtin):
    page = show(at(CHANGES))
    compare(page, builtin, CHANGES)
    assert numbers(page, "[data-value=kl]")[0] > 0
    page.locator('[data-column="5"]').click()
    settle(page)
    compare(page, builtin, CHANGES, 5)


def test_a_change_is_turned_off_and_removed_and_stands_in_the_address(show, settle, builtin):
    page = show(at(CHANGES))
    page.get_by_role("switch").nth(1).click()
    settle(page)
    compare(page, builtin, CHANGES[:1])
    again = show(page.url.split("/", 3)[3])
    assert again.get_by_role("switch").nth(1).is_checked() is False
    compare(again, builtin, CHANGES[:1])
    page.get_by_role("button", name="Remove: layer 2").click()
    settle(page)
    assert page.get_by_role("switch").count() == 1
    assert page.locator("aside").get_by_text("Nothing is changed").is_visible()


def test_a_head_is_taken_out_by_hand_and_by_key_and_put_back(show, settle, builtin):
    page = show(at([]))
    page.locator('[data-head="1.4"]').click()
    settle(page)
    compare(page, builtin, [{"kind": "ablate_head", "layer": 1, "head": 4}])
    assert page.locator('[data-head="1.4"]').get_attribute("aria-pressed") == "true"
    page.locator("h1").focus()
    page.keyboard.press("x")  # the head pressed is the one chosen
    settle(page)
    assert page.get_by_role("switch").count() == 0


def test_steering_and_patching_are_added_by_their_forms(show, settle, builtin):
    page = show(at([], kind="steer", layer=3, toward="I am happy", away="I am sad"))
    page.get_by_role("button", name="Add the change").click()
    settle(page)
    steer = {"kind": "steer", "layer": 3, "toward": "I am happy", "away": "I am sad", "strength": 2}
    compare(page, builtin, [steer])
    page = show(at([], kind="patch", layer=2, other="The dog ran home", where="one", position=5, source=1))
    page.get_by_role("button", name="Add the change").click()
    settle(page)
    patch = {"kind": "patch", "name": "blocks.2.residual", "text": "The dog ran home", "position": 5, "source": 1}
    compare(page, builtin, [patch], 5)


def test_a_change_that_cannot_be_is_said_and_can_be_removed(show, settle):
    page = show(at([{"kind": "ablate_head", "layer": 99, "head": 0}]), wait=False)
    page.wait_for_selector("[role=alert]")
    assert "99" in page.locator("[role=alert]").first.inner_text()
    page.get_by_role("button", name="Remove all").click()
    settle(page)
    assert page.locator("[role=alert]").count() == 0


def test_heads_are_tinted_by_what_taking_them_out_does_after_the_chosen_token(show, settle, builtin):
    page = show(f"#/change?text={quote(TEXT)}&position=6")
    page.wait_for_selector("[data-head][data-effect]")
    settle(page)
    for position in (6, 9):
        found = builtin.sweep(TEXT, what="head", how="zero", metric=KL(position=position))
        keys = page.query_selector_all("[data-head]")
        effects = {one.get_attribute("data-head"): float(one.get_attribute("data-effect")) for one in keys}
        wanted = {
            f"{layer}.{head}": float(found.values[layer, head])
            for layer in range(builtin.config.layers)
            for head in range(builtin.config.heads)
        }
        assert effects == pytest.approx(wanted, rel=1e-3, abs=1e-6)
        tints = {
            one.get_attribute("data-head"): one.evaluate("one => getComputedStyle(one).backgroundColor") for one in keys
        }
        strongest, weakest = max(effects, key=effects.get), min(effects, key=effects.get)
        assert tints[strongest] != tints[weakest]
        share = page.locator(f'[data-head="{strongest}"]').evaluate("one => one.style.getPropertyValue('--effect')")
        assert float(share) == pytest.approx(1)
        if position == 6:
            page.locator('[data-column="9"]').click()
            settle(page)
