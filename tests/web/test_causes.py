"""Causes: the shares on the page are saliency's and sum to 100 %."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from cutaway.inspect.run import run
from cutaway.inspect.saliency import saliency

TEXT = "Once upon a time, there was a little girl named Lily. She"


def shares(page, method: str) -> list[float]:
    return [float(one.get_attribute("value")) for one in page.query_selector_all(f"ul[data-method={method}] data")]


def test_both_methods_side_by_side(show, builtin):
    page = show(f"#/causes?text={quote(TEXT)}&position=8&method=both")
    page.wait_for_selector("ul[data-method=integrated] data")
    page.wait_for_selector("ul[data-method=gradient] data")
    whole = run(builtin, TEXT)
    for method in ("gradient", "integrated"):
        found = saliency(whole, [9], method)
        assert shares(page, method) == pytest.approx(found.share[0][:9].tolist(), rel=1e-3, abs=1e-6)
        assert sum(shares(page, method)) == pytest.approx(1, abs=1e-4)
        written = [one.inner_text() for one in page.query_selector_all(f"ul[data-method={method}] data")]
        assert [one.startswith("−") for one in written] == (found.signed[0][:9] < 0).tolist()
        listed = page.query_selector_all(f"ol[data-method={method}] data")
        strongest = found.share[0].argsort(kind="stable")[::-1][: len(listed)]
        signed = [float(one.get_attribute("value")) for one in listed]
        assert signed == pytest.approx(found.signed[0][strongest].tolist(), rel=1e-3, abs=1e-6)


def test_a_cause_against_the_token_is_said_with_a_minus_and_in_words(show, builtin):
    """The strongest of them all, for the first target that has one against it as its strongest."""
    whole = run(builtin, TEXT)
    found = saliency(whole, range(2, len(whole) + 1))
    strongest = found.share.argmax(axis=1)
    row = next(i for i, at in enumerate(strongest) if found.signed[i, at] < 0)
    target, at = found.targets[row].position, int(strongest[row])
    page = show(f"#/causes?text={quote(TEXT)}&position={target - 1}")
    button = page.locator(f"ul[data-method=gradient] button[data-at='{at}']")
    button.wait_for()
    assert "against" in button.get_attribute("aria-label") and "−" in button.inner_text()
    colours = page.evaluate(
        "() => [...document.querySelectorAll('ul[data-method=gradient] button:has(data) .bar')].map((one) => "
        "[one.closest('.against') !== null, getComputedStyle(one).backgroundColor])"
    )
    assert len(colours) == target
    pink, blue = ({colour for against, colour in colours if against == which} for which in (False, True))
    assert len(pink) == len(blue) == 1 and pink != blue


def test_a_continuation_is_written_or_given_and_explained(show, settle, builtin):
    page = show(f"#/causes?text={quote(TEXT)}")
    count = len(builtin.ids(TEXT))
    page.get_by_role("button", name="Let the model write").click()
    page.wait_for_selector(f"ul[data-method=gradient] .target[data-at='{count}'].output:not(.guess)")
    written = builtin.generate(TEXT, max_tokens=10, top_k=1).ids
    page.wait_for_function("part => location.hash.includes(part)", arg=f"more={'.'.join(map(str, written))}")
    page.get_by_role("button", name="Remove").click()
    settle(page)
    page.locator(".continue input").fill(" found a key")
    page.get_by_role("button", name="Add").click()
    page.wait_for_selector(f"ul[data-method=gradient] .target[data-at='{count}'].output:not(.guess)")
    settle(page)
    found = saliency(run(builtin, TEXT, " found a key"))
    assert shares(page, "gradient") == pytest.approx(found.share[0][:count].tolist(), rel=1e-3, abs=1e-6)
