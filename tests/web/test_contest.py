"""The contest: every translator at hand side by side, with Python's numbers; a word picked in one is found in all."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import cutaway
from cutaway.checkpoint.locate import locate
from cutaway.inspect import contest
from cutaway.inspect.contest import Entry, entry
from cutaway.serve.explorer import Explorer
from cutaway.serve.views.contest import translators
from cutaway.tasks import Translation, load_task
from cutaway.tasks.answer import Writing, question, written
from tests.inspect.test_pairs import make

TOUR = Path(__file__).resolve().parents[2] / "web" / "src" / "tour"
TEXT = "The black cat is under the table."
RESULTS = {
    "target": "fr", "steps": 1400, "test": 1000, "seeds": [0, 1], "beams": 4,
    "rows": [
        {"kind": "plain", "weights": 5_100_000, "tokens": 9, "seconds": 1500.0, "bleu": 31.25, "interval": [30.1, 32.4],
         "each": [30.9, 31.6]},
        {"kind": "gpt2", "weights": 5_300_000, "tokens": 9, "seconds": None, "bleu": 45.5, "interval": [44.1, 46.4],
         "each": [45.25, 45.75]},
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> list[str]:
    """A folder of a recurrent translator without attention and one of a Transformer, with random weights."""
    parent = tmp_path_factory.mktemp("translators")
    for name in ("plain", "pre"):
        lm = make(name)
        Translation(limit=40).save(lm.model, lm.tokenizer, parent / name)
    return [str(parent / name) for name in ("plain", "pre")]


@pytest.fixture(scope="module")
def contestants(server, builtin, folders) -> Iterator[Any]:
    served = server(builtin, folders=folders)
    yield served
    served.stop()


@pytest.fixture(scope="module")
def names(folders) -> list[str]:
    explorer = Explorer(folders)
    found = [one["name"] for one in translators(explorer)]
    explorer.close()
    return found


@pytest.fixture(scope="module")
def entries(names) -> dict[str, Entry]:
    """What Python says of each."""

    def ask(name: str) -> Entry:
        lm, task = cutaway.load(name), load_task(locate(name))
        prompt, _ = question(lm, task, TEXT)
        [result] = written(lm, task, [prompt], Writing(4))
        target = [*result.ids, *([lm.config.end] if result.reason == "end" else [])]
        return entry(lm, prompt, len(prompt) - 1, target, 0.0)

    return {name: ask(name) for name in names}


def address(more: str = "", text: str = TEXT) -> str:
    return f"#/contest?text={quote(text)}{more}"


def card(page: Any, name: str) -> Any:
    return page.locator(f'.card[data-model="{name}"]')


def value(place: Any) -> float:
    return float(place.locator("data").last.get_attribute("value"))


def test_every_translation_and_every_number_is_that_of_python(show, contestants, entries, names):
    page = show(address(), at=contestants)
    assert [one.get_attribute("data-model") for one in page.locator(".card").all()] == names
    written_by = Counter(word.name for found in entries.values() for word in found.words)
    for name, found in entries.items():
        own = card(page, name)
        words = own.locator("[data-word]")
        assert words.all_inner_texts() == [one.text for one in found.words]
        assert [one.get_attribute("data-word") for one in words.all()] == [one.name for one in found.words]
        others = [int(one.get_attribute("data-others")) for one in words.all()]
        assert others == [written_by[one.name] - 1 for one in found.words]
        underlined = [("some" in classes, "every" in classes) for classes in classes_of(words)]
        assert underlined == [(n > 0, 0 < n == len(entries) - 1) for n in others]
        assert value(own.locator("[data-per-word]")) == pytest.approx(found.per_word, rel=1e-3)
        assert value(own.locator("header")) == found.weights
        assert value(own.locator("[data-time]")) > 0
        assert own.locator("[data-no-attention]").count() == (found.mean is None)
        assert own.locator("canvas").count() == (found.mean is not None)


def classes_of(words: Any) -> list[list[str]]:
    return [one.get_attribute("class").split() for one in words.all()]


@pytest.mark.parametrize("view", ["mean", "last"])
def test_a_word_picked_in_one_is_found_in_all_that_have_it_with_what_each_looked_at(
    show, settle, contestants, entries, names, view
):
    page = show(address(f"&look={view}"), at=contestants)
    chosen = next(name for name in names if entries[name].kind == "attention")
    other = next(name for name in names if entries[name].kind == "gpt2")
    common = [one.name for one in entries[chosen].words if one.name in {one.name for one in entries[other].words}]
    assert common, "the two models that are included have no word in common: choose another sentence"
    card(page, chosen).locator(f'[data-word="{common[1]}"]').click()
    settle(page)
    assert f"of={chosen}" in page.url
    for name, found in entries.items():
        at = next((n for n, one in enumerate(found.words) if one.name == common[1]), None)
        look = getattr(found, view)
        told = page.locator(f'[data-picked="{name}"]')
        pressed = card(page, name).locator("[data-word][aria-pressed=true]")
        assert pressed.count() == (at is not None)
        if at is None or look is None:
            assert told.locator("[data-from]").count() == 0
            continue
        shares = [float(one.get_attribute("data-share")) for one in card(page, name).locator("[data-share]").all()]
        assert shares == pytest.approx(look.weights[at].tolist(), rel=1e-4, abs=1e-6)
        assert value(card(page, name).locator("[data-rest]")) == pytest.approx(float(look.rest[at]), rel=1e-3, abs=1e-5)
        best = sorted(range(len(shares)), key=lambda n: -shares[n])[:3]
        assert [int(one.get_attribute("data-from")) for one in told.locator("[data-from]").all()] == best
        framed = card(page, name).locator(".most")
        assert framed.count() == 1 and int(framed.get_attribute("data-source")) == best[0]


def test_the_keyboard_goes_from_word_to_word(show, settle, contestants, entries, names):
    name = next(name for name in names if entries[name].kind == "attention")
    page = show(address(f"&of={name}&word=0"), at=contestants)
    card(page, name).locator("[data-word]").first.focus()
    for key, wanted in (("ArrowRight", 1), ("End", len(entries[name].words) - 1), ("ArrowLeft", -2), ("Home", 0)):
        page.keyboard.press(key)
        settle(page)
        pressed = card(page, name).locator("[aria-pressed=true]")
        assert pressed.get_attribute("data-word") == entries[name].words[wanted].name
        assert pressed.evaluate("one => one === document.activeElement")


def test_other_beams_and_another_sentence_are_other_translations(show, settle, contestants, names):
    page = show(address("&beams=1"), at=contestants)
    for name in names:
        lm, task = cutaway.load(name), load_task(locate(name))
        [result] = written(lm, task, [question(lm, task, TEXT)[0]], Writing(1))
        assert "".join(card(page, name).locator("[data-word]").all_inner_texts()) == "".join(result.text.split())
    page.get_by_role("button", name="I saw a white house.").click()
    settle(page)
    assert card(page, "rnn").locator("[data-source]").all_inner_texts() == ["I", "saw", "a", "white", "house."]


def test_a_card_leads_to_the_page_that_takes_its_model_apart(show, settle, contestants):
    page = show(address(), at=contestants)
    card(page, "rnn").get_by_role("button", name="Step by step").click()
    page.wait_for_function("location.hash.startsWith('#/translator')")
    settle(page)
    assert "model=rnn" in page.url and page.locator("[data-answer]").count() == 1
    page = show(address(), at=contestants)
    card(page, "translator").get_by_role("button", name="Head by head").click()
    page.wait_for_function("location.hash.startsWith('#/tasks')")
    settle(page)
    assert page.locator("[data-answer]").inner_text() == "Le chat est sous la table."


def test_no_text_is_said_and_one_model_that_fails_leaves_the_others_alone(
    show, settle, server, builtin, folders, tmp_path
):
    shutil.copytree(folders[0], tmp_path / "damaged")
    (tmp_path / "damaged" / "model.safetensors").write_bytes(b"nothing")
    served = server(builtin, folders=[str(tmp_path / "damaged")])
    page = show(address(text=""), at=served)
    assert page.get_by_text("The text is empty.").is_visible() and page.locator(".card").count() == 0
    page.get_by_role("button", name=TEXT).click()
    page.wait_for_selector(".card [role=alert]")
    settle(page)
    assert page.locator(".card [role=alert]").count() == 1
    assert "safetensors" in card(page, str(tmp_path / "damaged")).inner_text()
    assert card(page, "rnn").locator("[data-word]").count() > 3
    served.stop()


def test_while_it_waits_and_where_nobody_translates_it_says_so(show, contestants):
    page = show("#/contest", wait=False, at=contestants)
    page.route("**/api/contest/entries", lambda route: None)
    page.reload()
    page.wait_for_selector(".card .waiting")
    assert page.locator(".card[aria-busy=true]").count() == page.locator(".card").count()
    page.unroute_all(behavior="ignoreErrors")
    page.route("**/api/contest", lambda route: route.fulfill(json={"models": [], "results": None}))
    page.reload()
    page.wait_for_selector(".none")
    assert "No model that translates" in page.locator(".none").inner_text()


def test_the_results_are_shown_where_they_ship_with_intervals_and_seeds(show, contestants, tmp_path, monkeypatch):
    shipped = tmp_path / "results.json"
    monkeypatch.setattr(contest, "RESULTS", shipped)
    assert show(address(), at=contestants).locator("[data-result]").count() == 0
    shipped.write_text(json.dumps(RESULTS))
    page = show(address(), at=contestants)
    for row in RESULTS["rows"]:
        drawn = page.locator(f'[data-result="{row["kind"]}"]')
        assert value(drawn) == row["bleu"]
        wide = drawn.locator(".track").evaluate("one => one.clientWidth")
        scale = drawn.locator(".bar").evaluate("one => one.getBoundingClientRect().width") / row["bleu"]
        assert scale == pytest.approx(wide / (46.4 * 1.05), rel=0.01)
        low, width = drawn.locator(".interval").evaluate("one => [one.offsetLeft, one.offsetWidth]")
        assert low == pytest.approx(row["interval"][0] * scale, abs=1.5)
        assert width == pytest.approx((row["interval"][1] - row["interval"][0]) * scale, abs=1.5)
        assert drawn.locator(".dot").count() == len(row["each"])
        assert f"{row['interval'][0]} to {row['interval'][1]}" in drawn.inner_text()


@pytest.mark.parametrize("kind", ["SVG", "JSON"])
def test_what_is_saved_is_what_is_shown(show, contestants, entries, kind):
    page = show(address(), at=contestants)
    menu = page.locator("details", has_text="Save").first
    menu.locator("summary").click()
    with page.expect_download() as download:
        menu.get_by_role("button", name=kind).click()
    saved = Path(download.value.path()).read_text()
    if kind == "JSON":
        told = json.loads(saved)
        assert {name: one["text"] for name, one in told["entries"].items()} == {
            name: one.text for name, one in entries.items()
        }
    else:
        assert all(f">{word.text}<" in saved for word in entries["rnn"].words)


@pytest.mark.parametrize(("language", "dark", "width"), [("en", True, 375), ("zh-CN", False, 375), ("ru", False, 1280)])
def test_it_fits_and_axe_finds_nothing(show, contestants, axe, language, dark, width, tmp_path, monkeypatch):
    shipped = tmp_path / "results.json"
    shipped.write_text(json.dumps(RESULTS))
    monkeypatch.setattr(contest, "RESULTS", shipped)
    page = show(address(), at=contestants, language=language, dark=dark, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.add_script_tag(content=axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert [(one["id"], [node["html"][:160] for node in one["nodes"]][:3]) for one in found["violations"]] == []


def test_one_of_the_included_models_leaves_out_a_word_that_another_has_as_the_tour_asks():
    asked = json.loads((TOUR / "40-contest.json").read_text())["try"]["en"]
    assert "I saw a white house." in asked and "lacks a word" in asked
    said = []
    for name in ("rnn", "translator"):
        lm, task = cutaway.load(name), load_task(locate(name))
        [result] = written(lm, task, [question(lm, task, "I saw a white house.")[0]], Writing(4))
        said.append("maison" in result.text)
    assert sorted(said) == [False, True]
