"""Every control of every page can be read in each of its states, in both themes, under a pointer and under a finger."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest

SCRIPT = Path(__file__).with_name("states.js").read_text()
SOURCE = Path(__file__).resolve().parents[2] / "web" / "src"
TEXT = "Once upon a time, there was a little girl named Lily. She"
CHANGES = json.dumps(
    [
        {"kind": "ablate_head", "layer": 1, "head": 2},
        {"kind": "steer", "layer": 2, "toward": "I am happy", "strength": 2, "off": True},
    ]
)
VIEWS = {
    "predict": "predict?temperature=0.7&top_k=4",
    "predict, picked": "predict?more=262.262&tree=262(262,13),13",
    "walk": "walk?",
    "walk, token": "walk?step=1&position=3",
    "walk, heads": "walk?step=6&layer=1",
    "walk, softmax": "walk?step=9&layer=1",
    "walk, choice": "walk?step=22",
    "attention": "attention?",
    "attention, lines": "attention?view=lines&sort=kind",
    "layers": "layers?watch_a=was&watch_b=loved",
    "layers, rank": "layers?mode=rank&position=4",
    "causes": "causes?position=6&method=both",
    "neurons": "neurons?",
    "neurons, groups": "neurons?kind=groups",
    "senses": "senses?row=2",
    "generate": "generate?n=3",
    "generate, beams": "generate?view=beams",
    "change": "change?changes=" + quote(CHANGES),
    "change, neuron": "change?kind=ablate_neuron",
    "change, patch": "change?kind=patch&where=one&other=The+dog",
    "weights": "weights?blocks=all",
    "tasks": "tasks?with=translator&text=I+am+happy.",
    "tasks, classes": "tasks?with=classifier&text=I+am+happy.",
    "contest": "contest?text=The+black+cat+is+under+the+table.",
    "tour": "predict?tour=next-word",
    "a failure": "predict?model=/no/such/folder",
}
STATES = {
    "rest": [],
    "hover": ["hover"],
    "focus": ["focus", "focus-visible", "focus-within"],
    "pressed": ["hover", "active", "focus", "focus-within"],
    "tapped": ["active"],
}


def address(view: str) -> str:
    place = VIEWS[view]
    return f"#/{place}" if "text=" in place else f"#/{place}&text={quote(TEXT)}"


def unreadable(page) -> list[str]:
    """What cannot be read, theme by theme and state by state; what opens is opened."""
    page.evaluate(SCRIPT)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    found = []

    def read(state: str, pseudo: list[str]) -> None:
        page.evaluate("states => become(states)", pseudo)
        looked, low = page.evaluate("readable()")
        assert looked > 10
        found.extend(f"{state}: {one}" for one in low)

    for theme in ("light", "dark"):
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        for state, pseudo in STATES.items():
            read(f"{theme}, {state}", pseudo)
    page.evaluate("for (const one of document.querySelectorAll('button, input, select, textarea')) one.disabled = true")
    for theme in ("light", "dark"):
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        for state in ("rest", "pressed"):
            read(f"{theme}, disabled, {state}", STATES[state])
    return found


def shown(show, view: str, **more):
    page = show(address(view), wait=view != "a failure", **more)
    if view == "a failure":
        page.wait_for_selector("[role=alert]")
    page.evaluate(SCRIPT)
    return page


@pytest.mark.parametrize("view", VIEWS)
def test_every_control_can_be_read_in_every_state(show, view):
    page = shown(show, view)
    page.evaluate("states => become(states)", STATES["hover"])
    hovered = page.evaluate("chosen()")
    page.evaluate("become([])")
    rest = dict(page.evaluate("chosen()"))
    for one, apart in hovered:
        assert set(rest[one]) <= set(apart), f"under the pointer it no longer looks chosen: {one}"
    assert unreadable(page) == []


def test_what_opens_can_be_read_in_every_state(show):
    page = show(address("predict"))
    page.keyboard.press("e")
    page.wait_for_selector("#text-field")
    assert unreadable(page) == []
    page = show(address("predict"))
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    assert unreadable(page) == []
    page = show(address("attention"), width=375, height=740)
    page.locator("button.sheet").click()
    assert unreadable(page) == []


@pytest.mark.parametrize(("view", "name"), [("tour", "Next"), ("generate", "Play"), ("predict", "Let chance choose")])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_primary_button_stays_readable_under_a_pointer_and_under_a_finger(show, view, name, dark):
    """The real thing, for the three that went blank."""
    colours = "one => { const look = getComputedStyle(one); return [look.color, look.backgroundColor] }"
    page = shown(show, view, dark=dark)
    button = page.locator(".button.strong", has_text=name).first
    rest = button.evaluate(colours)
    button.hover()
    hovered = button.evaluate(colours)
    assert hovered[0] == rest[0] and hovered[1] != rest[1]
    assert page.evaluate("readable()")[1] == []
    page.mouse.down()
    pressed = button.evaluate(colours)
    assert pressed[0] == rest[0] and pressed[1] not in (rest[1], hovered[1])
    assert page.evaluate("readable()")[1] == []


def test_nothing_stays_hovered_after_a_tap(show, whole_browser):
    page = show(address("generate"), touch=True, within=whole_browser)
    colours = "one => { const look = getComputedStyle(one); return [look.color, look.backgroundColor] }"
    button = page.locator(".button.strong").first
    rest = button.evaluate(colours)
    button.tap()
    page.wait_for_function("document.querySelector('.button.strong').textContent.includes('Pause')")
    page.wait_for_function("!document.querySelector('.button.strong').matches(':active')")
    assert button.evaluate("one => one.matches(':hover')")
    assert button.evaluate(colours) == rest


def test_hover_is_only_for_those_who_can_hover():
    """Every rule for `:hover` stands inside `@media (hover: hover)`, and adds nothing to what a selector weighs."""
    for file in [*SOURCE.rglob("*.svelte"), *SOURCE.rglob("*.css")]:
        text = file.read_text()
        inside = "".join(
            one[0] for one in re.findall(r"(^( *)@media \(hover: hover\) \{\n.*?\n\2\})", text, re.S | re.M)
        )
        rules = re.findall(r"[^\n{}]*:hover[^\n{}]*", re.sub(r"/\*.*?\*/", "", text, flags=re.S))
        for rule in rules:
            if "@media" in rule:
                continue
            assert rule in inside, f"{file.name}: {rule}"
            assert ":where(:hover" in rule, f"{file.name}: {rule}"
