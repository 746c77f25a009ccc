"""The walk in a real browser: every number on the page is Python's, any step can be reached, and a link restores it."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from cutaway.inspect.arithmetic import explain
from cutaway.inspect.runs import run
from cutaway.models.gpt2.shape import SIZES
from cutaway.models.steps import model_map

TEXT = "A robot must obey orders"
STEPS = [step.name for step in model_map(SIZES["gpt2"]).steps]
ADDRESSED = "address => document.querySelector('[data-made=address]')?.textContent === address"


def at(step: str, text: str = TEXT, **more: object) -> str:
    return f"#/walk?text={quote(text)}&step={step}" + "".join(
        f"&{name}={quote(str(value))}" for name, value in more.items()
    )


def made(page, what: str) -> float:
    return float(page.locator(f"[data-made={what}] data").first.get_attribute("value"))


CELLS = [
    ("embedding", "out.0.7", "token_embedding", None, 7),
    ("position", "out.0.7", "position_embedding", None, 7),
    ("entry", "out.0.11", "residual.0", None, 11),
    ("attention_norm", "out.0.100", "blocks.2.attention.norm", None, 100),
    ("made", "keys.3.5", "blocks.2.attention.keys", 3, 5),
    ("split", "values.1.31", "blocks.2.attention.values", 1, 31),
    ("scores", "out.2.0", "blocks.2.attention.scores", 4, 2),
    ("mask", "out.1.0", "blocks.2.attention.masked", 4, 1),
    ("softmax", "out.3.0", "blocks.2.attention.weights", 4, 3),
    ("mix", "out.0.9", "blocks.2.attention.heads", 4, 9),
    ("merge", "out.0.140", "blocks.2.attention.merged", None, 140),
    ("projection", "out.0.3", "blocks.2.attention.output", None, 3),
    ("attention_residual", "out.0.3", "blocks.2.residual.middle", None, 3),
    ("mlp_norm", "out.0.3", "blocks.2.mlp.norm", None, 3),
    ("widen", "out.0.500", "blocks.2.mlp.hidden", None, 500),
    ("activation", "out.0.500", "blocks.2.mlp.activation", None, 500),
    ("narrow", "out.0.50", "blocks.2.mlp.output", None, 50),
    ("mlp_residual", "out.0.50", "blocks.2.residual", None, 50),
    ("final_norm", "out.0.50", "final_norm", None, 50),
]


def test_the_number_of_every_step_and_its_arithmetic_are_pythons(show, settle, builtin):
    seen = run(builtin, TEXT)
    page = show(at("embedding"))
    for step, spot, name, head, column in CELLS:
        page.evaluate("place => { location.hash = place }", at(step, layer=2, head=4, cell=spot))
        inside = "" if head is None else f"[{head}]"
        address = f"{name}{inside}[{len(seen) - 1}][{column}]"
        page.wait_for_function(ADDRESSED, arg=address)
        settle(page)
        page.wait_for_selector("[data-made=value]")
        cell = explain(seen, name, -1, column, head)
        assert made(page, "value") == pytest.approx(cell.value, rel=1e-4, abs=1e-6), step
        if page.locator("[data-made=total] data").count():
            assert made(page, "total") == pytest.approx(cell.value, rel=1e-4, abs=1e-5), step
        shown = [float(one.get_attribute("value")) for one in page.query_selector_all("[data-made=terms] tr td data")]
        wanted = [term.product for term in cell.terms]
        assert shown[: len(wanted)] == pytest.approx(wanted, rel=1e-4, abs=1e-6), step


def test_the_choice_is_the_prediction_and_can_be_walked_on_with(show, settle, builtin):
    page = show(at("choice"))
    best = builtin.predict(TEXT, k=10)
    rows = page.locator("[data-role=out] .row")
    assert [int(row.get_attribute("data-token")) for row in rows.all()] == [one.id for one in best]
    shares = [float(one.get_attribute("value")) for one in page.query_selector_all("[data-role=out] .share data")]
    assert shares == pytest.approx([one.probability for one in best], rel=1e-4)
    page.get_by_role("button", name="walk on").click()
    settle(page)
    assert f"more={best[0].id}" in page.url
    assert made(page, "id") == best[0].id


def test_scores_over_the_vocabulary_are_the_logits(show, builtin):
    page = show(at("logits"))
    seen = run(builtin, TEXT)
    logits = seen.logits([-1])[0]
    shown = [float(one.get_attribute("value")) for one in page.query_selector_all("[data-role=out] .share data")]
    assert shown == pytest.approx(logits.topk(10).values.tolist(), rel=1e-4)
    page.wait_for_selector("[data-made=value]")
    assert made(page, "value") == pytest.approx(float(logits.max()), rel=1e-4)


HAS = "(parts) => parts.every((part) => location.href.includes(part))"


def test_arrows_walk_through_every_step_and_the_address_follows(show, builtin):
    page = show(at("whole"))
    page.locator("h1").focus()
    inside = STEPS.index("mlp_residual") - STEPS.index("attention_norm") + 1
    layers = builtin.config.layers
    for _ in range(len(STEPS) - 1 + inside * (layers - 1)):
        page.keyboard.press("ArrowRight")
    page.wait_for_function(HAS, arg=["step=choice", f"layer={layers - 1}"])
    assert page.get_by_role("button", name="Step forward").is_disabled()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(HAS, arg=["step=mlp_residual"])


def test_space_plays_and_pauses(show):
    page = show(at("whole"))
    page.locator("h1").focus()
    page.keyboard.press("Space")
    page.wait_for_function("location.hash.includes('step=token')")
    page.keyboard.press("Space")
    page.get_by_role("button", name="Play", exact=True).wait_for()


def test_a_cell_is_chosen_by_click_and_moved_by_keyboard_and_stays_in_the_link(show, settle, builtin):
    page = show(at("entry"))
    ground = page.locator("[data-role=out] .ground")
    ground.click(position={"x": 40, "y": 10})
    settle(page)
    first = page.url
    assert "cell=out.0." in first
    ground.press("ArrowRight")
    settle(page)
    before, after = (int(url.split("cell=out.0.")[1].split("&")[0]) for url in (first, page.url))
    assert after == before + 1
    page.mouse.move(5, 5)
    again = show(page.url.split("/", 3)[3])
    again.wait_for_selector("[data-made=value]")
    assert made(again, "value") == pytest.approx(explain(run(builtin, TEXT), "residual.0", -1, after).value, rel=1e-4)


def test_pointing_at_a_cell_of_the_table_explains_it(show, settle, builtin):
    page = show(at("softmax", layer=1, head=2))
    page.wait_for_selector("[data-role=table] .ground")
    settle(page)
    page.locator("[data-role=table] .ground").scroll_into_view_if_needed()
    box = page.locator("[data-role=table] .ground").bounding_box()
    count = len(builtin.ids(TEXT))
    side = (box["width"] / count, box["height"] / count)
    page.mouse.move(box["x"] + 1.5 * side[0], box["y"] + 3.5 * side[1])
    page.wait_for_function(ADDRESSED, arg="blocks.1.attention.weights[2][3][1]")
    settle(page)
    wanted = explain(run(builtin, TEXT), "blocks.1.attention.weights", 3, 1, head=2).value
    assert made(page, "value") == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("step", ["scores", "mask", "mix", "widen", "logits"])
def test_a_thousand_tokens_and_each_kind_of_picture(show, settle, long_lm, step):
    text = long_lm.tokenizer.decode(long_lm.ids("the little fox was on the other side of the hill " * 100)[:1_000])
    page = show(at(step, text, model="long", layer=1), wait=False)
    page.wait_for_selector(".scene .ground canvas")
    settle(page)
    page.wait_for_selector("[data-made=value]")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    columns = page.evaluate("document.querySelector('canvas.living').describe().columns")
    assert len(columns) == 1_000 and columns[-1]["position"] == 999


@pytest.mark.parametrize("step", ["token", "made", "softmax", "mix", "choice"])
def test_axe_finds_nothing_at_any_kind_of_step(show, axe, step):
    page = show(at(step, layer=1))
    page.add_script_tag(content=axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert [(one["id"], [node["html"][:160] for node in one["nodes"]][:3]) for one in found["violations"]] == []


OLD = [
    "The whole", "Token", "Embedding", "Position", "Sum", "Layer norm", "Query, key, value", "Into heads", "Scores",
    "Mask", "Softmax", "Sum of values", "Merge", "Projection", "Add", "Layer norm", "First layer", "GELU",
    "Second layer", "Add", "Final layer norm", "Scores of all tokens", "Choice",
]  # fmt: skip
"""What a link opened when it held a step by its number."""


def test_old_links_with_a_number_open_at_the_same_step_and_new_ones_hold_its_name(show, settle):
    page = show(at("whole"))
    for number, title in enumerate(OLD):
        page.evaluate("place => { location.hash = place }", f"#/walk?text={quote(TEXT)}&layer=2&step={number}")
        settle(page)
        assert page.locator("#walk-step").inner_text().startswith(title), number
        assert f"step={number}" not in page.url and (f"step={STEPS[number]}" in page.url or not number)
