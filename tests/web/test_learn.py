"""The page of learning: what stands there is what the training in Python says, forwards and back; and its states."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
import torch

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")

from cutaway.serve.learning.training import Training

OWN = "The fox saw the bird. The bird saw the fox. The fox ran to the hill, and the bird flew to the hill. " * 2


@pytest.fixture
def literal() -> Any:
    """The same training here, to compare with; in one thread, as there."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield lambda text, steps: taught(text, steps)
    torch.set_num_threads(before)


def taught(text: str, steps: int) -> Training:
    training = Training(text)
    training.advance(steps)
    return training


def numbers(page: Any, selector: str) -> list[float]:
    return [float(one.get_attribute("value")) for one in page.query_selector_all(f"{selector} data")]


def wait_for_step(page: Any, least: int) -> int:
    page.wait_for_function(f"+document.querySelector('strong[data-step]')?.dataset.step >= {least}", timeout=180_000)
    return int(page.locator("strong[data-step]").get_attribute("data-step"))


def matches(page: Any, shown: dict[str, Any]) -> None:
    """The table of predicted, wanted and error is this one."""
    page.wait_for_function(
        "ids => String([...document.querySelectorAll('[data-candidate]')].map((one) => +one.dataset.candidate)) === ids",
        arg=",".join(str(one["token"]["id"]) for one in shown["rows"]),
    )
    for name in ("predicted", "wanted", "error"):
        assert numbers(page, f"[data-{name}]") == pytest.approx([one[name] for one in shown["rows"]], rel=1e-4)
    assert numbers(page, "[data-loss-here]") == pytest.approx([shown["loss"]], rel=1e-4)


def test_a_model_learns_while_one_watches_and_can_be_taken_back(show, settle, literal, served):
    page = show("#/learn")
    page.get_by_label("A text of one’s own").fill("a b")
    page.get_by_role("button", name="Learn this text").click()
    page.get_by_role("alert").get_by_text("there must be at least").wait_for(timeout=180_000)
    page.get_by_label("A text of one’s own").fill(OWN)
    page.get_by_role("button", name="Learn this text").click()
    page.get_by_text("A model with random weights is being made.").wait_for()
    wait_for_step(page, 0)
    training = literal(OWN, 2)
    position = 6
    matches(page, training.show(0, 0, position))
    assert page.locator("svg[data-points='0']").count() == 1

    page.get_by_role("button", name="One step on").click()
    wait_for_step(page, 1)
    page.keyboard.press("Escape")
    page.locator("h1").focus()
    page.keyboard.press("ArrowRight")
    wait_for_step(page, 2)
    settle(page)
    matches(page, training.show(2, 0, position))
    assert numbers(page, "[data-loss]") == pytest.approx([training.curve[1]["loss"]], rel=1e-4)
    wanted = next(one for one in training.show(2, 0, position)["rows"] if one["wanted"])
    told = [wanted[name] for name in ("predicted", "after", "random")]
    assert numbers(page, "[data-after]") == pytest.approx(told, rel=1e-4)
    cell = training.cell(2, "position_embedding.weight", 2, 5)
    page.wait_for_selector("[data-cell='2,5'][data-step='2']")
    said = [cell["before"], abs(cell["update"]), cell["after"], cell["gradient"], cell["rate"]]
    assert numbers(page, "[data-cell]") == pytest.approx(said, rel=1e-4)
    page.wait_for_selector("[data-sample-now='2']")
    sample = "".join(one["text"] or "" for one in training.sample(2)[:3]).replace(" ", "·")
    assert page.locator("[data-sample-now] .given").inner_text() == sample

    page.locator(".chips button").nth(4).click()  # another position of the window
    settle(page)
    matches(page, training.show(2, 0, 3))
    page.get_by_role("slider", name="window").fill("5")
    settle(page)
    matches(page, training.show(2, 4, 3))

    page.get_by_role("radio", name="fast").check()
    page.get_by_role("button", name="Train", exact=True).click()
    wait_for_step(page, 30)
    page.get_by_role("button", name="Pause").click()
    settle(page)
    reached = int(page.locator("strong[data-step]").get_attribute("data-step"))
    assert page.locator(f"svg[data-points='{reached}']").count() == 1
    assert numbers(page, "[data-loss]")[0] < 0.7 * math.log(training.model.config.vocabulary)
    page.get_by_role("button", name="One step back").click()
    page.wait_for_selector(f"strong[data-step='{reached - 1}']")
    page.get_by_role("slider", name="Which step is shown").fill("2")
    page.wait_for_selector("strong[data-step='2']")
    settle(page)
    matches(page, training.show(2, 4, 3))
    assert "taken=2" in page.url and "row=4" in page.url

    page.get_by_role("radio", name="untrained").check()
    page.locator("[data-open=predict]").click()
    page.wait_for_selector(".bars .row")
    settle(page)
    assert "model=untrained" in page.url
    chances = numbers(page, ".bars .share")
    assert max(chances) < 5 / training.model.config.vocabulary  # nobody has told it anything
    page.get_by_role("link", name="Learn").click()
    page.wait_for_selector("strong[data-step='2']")  # it was kept meanwhile
    processes = [one.process for one in served.explorer.learning.open.values()]
    page.close()
    for process in processes:
        process.wait(60)


def test_the_page_is_whole_on_a_phone_in_the_dark(show, settle, axe):
    page = show("#/learn?lang=ru&of=counting&taken=3", 390, 800, language="ru", dark=True, wait=False)
    wait_for_step(page, 3)
    settle(page)
    assert re.search("шаг 3 из", page.locator("strong[data-step]").inner_text())
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.wait_for_function("document.getAnimations().every((one) => one.playState !== 'running')")
    page.add_script_tag(content=axe)
    found = page.evaluate("axe.run(document, {runOnly: ['wcag2a', 'wcag2aa']}).then((r) => r.violations)")
    assert not found, [(one["id"], one["nodes"][0]["html"], one["nodes"][0]["failureSummary"]) for one in found]
