"""Weights: counts, pictures and spread on the page are those of Python."""

from __future__ import annotations

import pytest

from cutaway.inspect.distribution import distribution
from cutaway.inspect.parameters import parameters
from cutaway.inspect.picture import picture


def values(page, selector: str) -> list[float]:
    return [float(one.get_attribute("value")) for one in page.query_selector_all(f"{selector} data")]


def test_the_table_the_parts_and_the_matrix_chosen_are_those_of_python(show, settle, builtin):
    page = show("#/weights?layer=2&matrix=blocks.2.mlp.widen.weight")
    whole = parameters(builtin.config)
    wanted = [one for one in whole.matrices if one.block in (None, 2)]
    rows = page.query_selector_all("[data-matrix]")
    assert [row.get_attribute("data-matrix") for row in rows] == [one.name for one in wanted]
    assert values(page, "[data-count]") == [one.count for one in wanted]
    assert values(page, "[data-part]") == list(whole.parts().values())
    seen = picture(builtin, "blocks.2.mlp.widen.weight")
    shown = [values(page, f"[data-total={one}]")[0] for one in ("mean", "std", "min", "max")]
    assert shown == pytest.approx([seen.total[one] for one in ("mean", "std", "min", "max")], rel=1e-4)
    bins = [int(one.get_attribute("data-bin")) for one in page.query_selector_all("[data-bin]")]
    assert bins == distribution(builtin, "blocks.2.mlp.widen.weight").counts.tolist()


def test_the_table_is_sorted_filtered_and_walked_by_keys_and_stands_in_the_address(show, settle, builtin):
    page = show("#/weights?blocks=all&kind=mlp&order=count")
    shown = values(page, "[data-count]")
    wanted = sorted((one.count for one in parameters(builtin.config).matrices if ".mlp." in one.name), reverse=True)
    assert shown == wanted
    page.locator("[data-matrix] button").first.click()
    page.keyboard.press("ArrowDown")
    settle(page)
    second = page.locator("[data-matrix]").nth(1).get_attribute("data-matrix")
    assert f"matrix={second}" in page.url
    page.get_by_role("searchbox").fill("no such matrix")
    settle(page)
    assert page.get_by_text("No matrix has that name").is_visible()


def test_the_four_sizes_are_counted_without_a_download(show, settle):
    page = show("#/weights?text=Tom")
    page.wait_for_selector("[data-size=gpt2-xl]")
    rows = {name: [float(one.get_attribute("value")) for one in page.query_selector_all(f"[data-size={name}] data")]
            for name in ("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl")}  # fmt: skip
    assert rows["gpt2"] == [124_439_808, 117, 116_929_536]
    assert [round(old / 1e6) for _, _, old in rows.values()] == [printed for _, printed, _ in rows.values()]
    page.get_by_role("button", name="gpt2-large").click()
    page.wait_for_function(
        "document.querySelector('[data-matrix=\"token_embedding.weight\"]').textContent.includes('50,257')"
    )
    settle(page)
    assert "774,030,080" in page.locator(".sentence").inner_text() and "size=gpt2-large" in page.url
    assert "Only the shapes" in page.locator("aside").inner_text()
    page.get_by_role("button", name="this model").click()
    page.wait_for_function("!location.hash.includes('size=')")
