"""Tasks: the answer, its classes and where the model looked are those of Python."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from cutaway.checkpoint.locate import DATA

there = pytest.mark.skipif(
    not all((DATA / name / "task.json").is_file() for name in ("translator", "classifier")),
    reason="the models for tasks do not ship here",
)
TEXT = "I am happy."


def numbers(page, selector: str) -> list[float]:
    return [float(one.get_attribute("value")) for one in page.query_selector_all(f"{selector} data")]


@there
def test_a_translation_and_its_attention_are_those_of_python(show, settle, tmp_path):
    from cutaway.inspect.between import between
    from cutaway.inspect.runs import run
    from cutaway.loading import load
    from cutaway.tasks import load_task
    from cutaway.tasks.answer import translate

    page = show(f"#/tasks?text={quote(TEXT)}&in=2&only=2&token=1", wait=False)
    page.wait_for_selector("[data-weight=rest]")
    settle(page)
    lm, task = load("translator"), load_task(DATA / "translator")
    wanted = next(translate(lm, task, [TEXT]))
    assert page.locator("[data-answer]").inner_text() == wanted.text
    source = lm.ids(TEXT)
    prompt = task.within(lm.config.context).prompt({"source": TEXT}, lm.tokenizer)
    menu = page.locator("details", has_text="Save").first
    menu.locator("summary").click()
    with page.expect_download() as download:
        menu.get_by_role("button", name="JSON").click()
    saved = json.loads(Path(download.value.path()).read_text())
    ids = [one["id"] for one in saved["tokens"]]
    assert ids[: len(prompt)] == prompt and saved["text"] == TEXT
    row = between(run(lm, ids), [len(prompt)], range(len(source)), 2, 1)
    best = sorted(row.weights[0].tolist(), reverse=True)[:8]
    assert numbers(page, "[data-weight]") == pytest.approx([*best, row.rest[0]], rel=1e-3, abs=1e-5)


@there
def test_a_judgement_shows_its_classes(show, settle):
    from cutaway.tasks.answer import classify, load_classifier

    page = show(f"#/tasks?text={quote('a warm and funny film')}&with=classifier", wait=False)
    page.wait_for_selector("[data-class]")
    settle(page)
    wanted = next(classify(load_classifier("classifier"), ["a warm and funny film"]))
    shown = [one.get_attribute("data-class") for one in page.query_selector_all("[data-class]")]
    assert shown == list(wanted.probabilities)
    assert numbers(page, "[data-class]") == pytest.approx(list(wanted.probabilities.values()), rel=1e-4)


@pytest.fixture
def judge(served, tiny_lm, tmp_path) -> Iterator[str]:
    """An untrained judge of a context and two ways it may go on, on the list of tasks."""
    import torch

    from cutaway.models.gpt2.model import GPT
    from cutaway.models.gpt2.shape import Config
    from cutaway.tasks import Choice
    from cutaway.tasks.head import Classifier, write_classifier

    torch.manual_seed(4)
    tokenizer = tiny_lm.tokenizer.with_specials(["<|start|>", "<|delimiter|>", "<|extract|>"])
    gpt = GPT(Config(vocabulary=len(tokenizer), context=48, width=48, layers=2, heads=4, end_token=tokenizer.end))
    write_classifier(Classifier(gpt, 1), tokenizer, Choice(2), tmp_path / "judge")
    served.explorer.models.folders.append(str(tmp_path / "judge"))
    yield str(tmp_path / "judge")
    served.explorer.models.folders.remove(str(tmp_path / "judge"))


def test_choices_are_written_under_the_text_and_judged(show, settle, judge):
    from cutaway.tasks.answer import classify, load_classifier

    page = show(f"#/tasks?text=the+fox&with={quote(judge)}")
    assert page.locator("[data-class]").count() == 0
    for at, text in enumerate(("runs up a hill", "sleeps")):
        page.locator(f"[data-other='{at}']").fill(text)
    page.wait_for_selector("[data-class]")
    settle(page)
    record = {"context": "the fox", "choices": ["runs up a hill", "sleeps"]}
    wanted = next(classify(load_classifier(judge), [record]))
    assert numbers(page, "[data-class]") == pytest.approx(list(wanted.probabilities.values()), rel=1e-4)
    assert "sleeps" in page.locator("[data-class]").nth(1).inner_text()
    page.locator(".picture fieldset label:not(.chosen)", has_text="choice").click()
    settle(page)
    assert "form=" in page.url and page.locator("[role=alert]").count() == 0
    again = show(page.url.split("/", 3)[3])
    again.wait_for_selector("[data-class]")
    assert again.locator("[data-other='1']").input_value() == "sleeps"


@there
def test_the_beams_of_a_translation_can_be_turned(show, settle):
    from cutaway.loading import load
    from cutaway.tasks import load_task
    from cutaway.tasks.answer import translate

    page = show(f"#/tasks?text={quote(TEXT)}")
    page.get_by_role("slider", name="beams").fill("1")
    settle(page)
    wanted = next(translate(load("translator"), load_task(DATA / "translator"), [TEXT], beams=1))
    assert "beams=1" in page.url and page.locator("[data-answer]").inner_text() == wanted.text


def test_a_model_that_is_not_there_is_said(show):
    page = show("#/tasks?text=hello&with=nobody")
    assert page.get_by_text("The model “nobody” is not on this machine.").is_visible()


@there
def test_the_first_look_is_at_an_example_of_the_task(show, settle):
    """Not at the beginning of a story, with which every visit begins; any other text stays."""
    page = show("#/tasks")
    page.wait_for_selector("[data-answer]")
    assert "happy" in page.url
    page = show("#/tasks?text=Hello.")
    page.wait_for_selector("[data-answer]")
    assert "Hello" in page.url and "happy" not in page.url


def test_choice_and_entailment_work_at_the_first_try(show, settle, builtin):
    """Chosen, they bring an example of their own, and the built-in language model answers it."""
    from cutaway.tasks.likelihood import choice, entailment

    page = show("#/tasks", wait=False)
    for label, kind in (("which comes next?", "choice"), ("does it follow?", "entailment")):
        page.get_by_text(label, exact=True).click()
        page.wait_for_selector(f"[data-class='{'0' if kind == 'choice' else 'follows'}']")
        settle(page)
        first = page.locator(".uncut").inner_text()
        others = [one.input_value() for one in page.locator("[data-other]").all()]
        found = choice(builtin, first, others) if kind == "choice" else entailment(builtin, first, others[0])
        assert numbers(page, "[data-class]") == pytest.approx(found.probabilities, rel=1e-3)
        assert page.locator(".best").get_attribute("data-class") == found.labels[0]
        assert "No model was trained for this" in page.locator("main").inner_text()


@there
def test_the_header_does_not_cut_the_text_of_another_model(show, settle):
    page = show(f"#/tasks?text={quote(TEXT)}", wait=False)
    page.wait_for_selector("[data-weight=rest]")
    header = page.locator("[data-tour=text]")
    assert header.locator(".uncut").inner_text() == TEXT
    assert header.locator("li").count() == 0 and "tokens of" not in header.inner_text()
    page.get_by_role("link", name="Predict").click()
    page.wait_for_selector("[data-tour=text] li")


@there
def test_the_chosen_source_token_keeps_its_heat(show, settle):
    """The strongest source token has the same ground whether it is the chosen one or another is."""
    grounds = []
    for chosen in (0, 1):
        page = show(f"#/tasks?text={quote(TEXT)}&source={chosen}", wait=False)
        page.wait_for_selector("[data-weight=rest]")
        settle(page)
        chip = page.locator("ul[aria-label='source'] button, ul.chips button.shared").first
        grounds.append(chip.evaluate("one => getComputedStyle(one).backgroundColor"))
    assert grounds[0] == grounds[1]
