"""The living view of two texts: both stacks are drawn from the map, and what is drawn is Python's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cutaway.models.architecture import places
from tests.inspect.test_pairs import make
from tests.web.test_translator import address, whole

KINDS = ("pre", "post", "attention", "plain")
SAID = "document.querySelector('[data-pair] .both').describe()"


@pytest.fixture(scope="module")
def lms() -> dict[str, Any]:
    return {name: make(name) for name in KINDS}


@pytest.fixture(scope="module")
def translators(server, builtin, lms) -> Iterator[Any]:
    served = server(builtin, *lms.values())
    served.explorer.models.awake.most = 6
    served.wake()
    yield served
    served.stop()


def reading(name: str, found: Any) -> int:
    return 1 if name in ("pre", "post") else len(found.source)


def drawn(page: Any, settle: Any) -> dict[str, Any]:
    page.wait_for_function(
        f"(() => {{ const said = {SAID}; return said.encoder.river.length && said.decoder.river.length }})()"
    )
    settle(page)
    return page.evaluate(SAID)


def crosses(lm: Any) -> list[str]:
    """The tables of attention from the target to the source."""
    return [
        name
        for name, place in places(lm.config).items()
        if place.operation == "softmax" and (".cross." in name or name == "decoder.attention.weights")
    ]


@pytest.mark.parametrize("name", KINDS)
def test_every_length_weight_and_chance_of_both_stacks_is_pythons(show, settle, translators, lms, name):
    lm = lms[name]
    found, both = whole(lm)
    row = 2
    said = drawn(show(address(name, f"&time={reading(name, found) + row}"), at=translators), settle)
    texts = {"encoder": [one.id for one in found.source], "decoder": [found.start.id, *(t.id for t in found.target)]}
    for side, ids in texts.items():
        stack = said[side]
        columns = [one["id"] for one in stack["columns"]]
        assert columns == ids[: len(found.target) if side == "decoder" else None]
        streams = {one["name"] for one in stack["river"]}
        assert "token_embedding" in streams and len(streams) > 1
        for one in stack["river"]:
            seen = both[f"{side}.{one['name']}"][one["position"]]
            assert one["length"] == pytest.approx(float(seen.norm()), rel=1e-4), one
        for arc in stack["arcs"]:
            seen = both[f"{side}.{arc['name']}"].mean(0)[arc["to"], arc["from"]]
            assert arc["weight"] == pytest.approx(float(seen), rel=1e-3, abs=1e-5)
            assert side == "encoder" or arc["from"] < arc["to"]
        assert bool(stack["arcs"]) == (name in ("pre", "post"))
    assert said["row"] == row and said["writing"]
    tables = crosses(lm)
    shown = {(one["name"], one["from"]): one["weight"] for one in said["across"]}
    for table in tables:
        line = both[table][..., row, :].reshape(-1, len(found.source)).mean(0).tolist()
        for at, weight in enumerate(line):
            if weight > 0.021:
                assert shown.pop((table, at)) == pytest.approx(weight, rel=1e-3)
            elif weight < 0.019:
                assert (table, at) not in shown
    assert bool(tables) == (name != "plain") and not {one for one in shown if one[0] not in tables}
    recurrent = name in ("attention", "plain")
    layers = range(lm.config.layers if recurrent else 0)
    lengths = [float(both[f"encoder.blocks.{layer}.last"].norm()) for layer in layers]
    assert [one["length"] for one in said["over"]] == pytest.approx(lengths, rel=1e-4)
    best = found.steps[row]
    assert [one["id"] for one in said["decoder"]["choice"]] == [one.id for one in best.top]
    assert [one["share"] for one in said["decoder"]["choice"]] == pytest.approx(list(best.probabilities), rel=1e-3)


@pytest.mark.parametrize("name", ["post", "attention"])
def test_the_list_has_every_vector_of_the_chosen_tokens_with_pythons_length(show, settle, translators, lms, name):
    lm = lms[name]
    found, both = whole(lm)
    page = show(address(name, f"&time={reading(name, found) + 1}&source=2"), at=translators)
    drawn(page, settle)
    page.get_by_text("All stops as a list").click()
    page.wait_for_selector("[data-length='blocks.1.mlp.hidden']" if name == "post" else "[data-length='joined']")
    shown = page.eval_on_selector_all(
        "[data-length]",
        "all => all.map(one => [one.closest('ol').dataset.side, one.dataset.length, one.dataset.value])",
    )
    known = places(lm.config)
    wanted = {
        (side, place.name.removeprefix(f"{side}."))
        for side in ("encoder", "decoder")
        for place in known.values()
        if place.name.startswith(f"{side}.")
        and place.axes[-1] == "column"
        and "token" in place.axes
        and not place.name.endswith((".cross.keys", ".cross.values"))  # of the source's tokens
    }
    assert {(side, one) for side, one, _ in shown} == wanted
    for side, one, length in shown:
        seen = both[f"{side}.{one}"].float()
        row = 2 if side == "encoder" else 1
        vector = seen[:, row].flatten() if seen.ndim == 3 else seen[row]
        assert float(length) == pytest.approx(float(vector.norm()), rel=1e-4), (side, one)


def test_a_recurrent_encoder_reads_word_by_word_and_then_the_decoder_begins(show, settle, translators, lms):
    found, _ = whole(lms["attention"])
    page = show(address("attention", "&time=0"), at=translators)
    assert drawn(page, settle)["heard"] == 1 and not page.evaluate(SAID)["writing"]
    for heard in range(2, len(found.source) + 1):
        page.locator(".bar").get_by_role("button", name="Step forward").last.click()
        page.wait_for_function(f"{SAID}.heard === {heard}")
    page.locator(".bar").get_by_role("button", name="Step forward").last.click()
    page.wait_for_function(f"{SAID}.side === 'decoder'")
    settle(page)
    assert page.evaluate(SAID)["step"] == {"n": 1, "name": "token", "layer": None}
    assert page.locator("[data-now]").get_attribute("data-now") == "token"


def test_it_is_told_stop_by_stop_from_the_first_word_read_to_the_last_written(show, settle, translators, lms):
    found, _ = whole(lms["pre"])
    last = len(found.target)
    page = show(address("pre", f"&time={last}&stop=3"), at=translators)
    page.emulate_media(reduced_motion="no-preference")
    drawn(page, settle)
    page.get_by_role("button", name="Watch it happen").click()
    page.wait_for_function(f"{SAID}.step.n > 4")
    page.get_by_role("group", name="Reading and writing").get_by_role("button", name="Pause").click()
    page.wait_for_function("location.hash.includes('stop=')")
    assert page.evaluate(f"{SAID}.row") == last - 1


def test_it_plays_on_from_the_encoder_into_the_decoder(show, settle, translators, lms):
    """With as few stops as there are: the encoder's last, then the first of the decoder's."""
    page = show(address("pre", "&time=0"), at=translators)
    said = drawn(page, settle)
    page.evaluate("stop => { location.hash += `&stop=${stop}` }", said["step"]["n"] - 1)
    page.wait_for_function(f"{SAID}.step.n === {said['step']['n'] - 1}")
    page.emulate_media(reduced_motion="no-preference")
    page.get_by_role("button", name="Watch it happen").click()
    page.wait_for_function(f"{SAID}.side === 'decoder' && {SAID}.step.n > 1")
    assert page.evaluate(f"{SAID}.row") == 0


def test_by_head_and_inside_a_block_the_weights_are_pythons(show, settle, translators, lms):
    lm = lms["pre"]
    _, both = whole(lm)
    page = show(address("pre", "&time=3&lines=heads"), at=translators)
    said = drawn(page, settle)
    assert {one["head"] for one in said["across"]} <= set(range(4)) and said["across"]
    for one in said["across"]:
        weight = float(both[one["name"]][one["head"], 2, one["from"]])
        assert one["weight"] == pytest.approx(weight, rel=1e-3) and weight > 0.07
    page.get_by_text("Block 1", exact=True).click()
    page.wait_for_function(f"{SAID}.decoder.level === 'block'")
    settle(page)
    assert page.evaluate(SAID)["step"]["layer"] == 1 and "floor=1" in page.evaluate("location.hash")


def test_a_click_on_a_word_goes_there(show, settle, translators, lms):
    page = show(address("pre", "&time=5"), at=translators)
    drawn(page, settle)
    canvas = page.locator("[data-stack-of=encoder] canvas")
    canvas.click(position=canvas.evaluate("one => one.where('embedding', 0, 1)"))
    page.wait_for_function("location.hash.includes('source=1')")


@pytest.mark.parametrize(("name", "language"), [("pre", "ru"), ("plain", "zh-Hans")])
def test_on_a_phone_the_decoder_stands_above_and_readers_can_read_it(show, settle, translators, name, language, axe):
    page = show(address(name), width=390, height=844, language=language, dark=language == "ru", at=translators)
    drawn(page, settle)
    above, below = (page.locator(f"[data-stack-of={side}]").bounding_box() for side in ("decoder", "encoder"))
    assert above["y"] + above["height"] <= below["y"] + 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.evaluate(axe)
    found = page.evaluate("axe.run(document.querySelector('[data-pair]'), { runOnly: ['wcag2a', 'wcag2aa'] })")
    assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []
    left = page.evaluate("document.querySelector('[data-pair]').innerText")
    assert not [word for word in ("Encoder", "Decoder", "Hidden", "Softmax, ", "Block") if word in left]
