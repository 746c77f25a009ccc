"""A model fetched from the hub, as the page shows it: a bar that moves, the model at its end, and no network said."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest

from cutaway.checkpoint import hub

HUB = Path(__file__).parents[1] / "checkpoint" / "conftest.py"
NAME = "someone/tiny"


@pytest.fixture
def served(builtin, server) -> Any:
    """A server of its own: a model more puts another to sleep, which other tests would miss."""
    own = server(builtin)
    yield own
    own.stop()


@pytest.fixture
def online(monkeypatch, tmp_path) -> None:
    """A machine with an empty store that may ask the hub."""
    for variable in os.environ:
        if variable.lower().endswith("_proxy") or variable.startswith(("HF_", "HUGGINGFACE_", "CUTAWAY_")):
            monkeypatch.delenv(variable)
    monkeypatch.setenv("CUTAWAY_HOME", str(tmp_path / "store"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(hub, "sleep", lambda seconds: None)


@pytest.fixture
def stand_in(online, monkeypatch) -> Any:
    """The stand-in for the hub that the tests of the hub use."""
    spec = importlib.util.spec_from_file_location("hub_stand_in", HUB)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    there = module.StandIn()
    monkeypatch.setenv("HF_ENDPOINT", there.address)
    yield there
    there.stop()


def choose(page, name: str) -> None:
    page.locator("summary").first.click()
    page.locator("#other-model").fill(name)
    page.locator("#other-model").press("Enter")


def test_the_bar_moves_and_then_the_model_is_there(show, settle, stand_in, tiny_lm, tmp_path):
    tiny_lm.save(tmp_path / "tiny")
    files = {file.name: file.read_bytes() for file in (tmp_path / "tiny").iterdir()}
    stand_in.add(NAME, files)
    half = len(files["model.safetensors"]) // 2
    stand_in.faults["model.safetensors"] = [f"hang after {half}"]
    page = show("#/predict?text=a+b")
    choose(page, NAME)
    page.wait_for_function("""() => {
        const bar = document.querySelector("progress");  // the smaller files come first, and are soon there
        const name = document.querySelector(".waking")?.innerText ?? "";
        return name.includes("model.safetensors") && bar?.value > 0 && bar.value < bar.max;
    }""")
    assert page.locator(".bars .row").count() == 10  # what was there stays
    stand_in.over.set()  # the connection ends half way; the rest is asked for
    page.wait_for_selector("progress", state="detached")
    settle(page)
    best = tiny_lm.predict("a b", k=10)
    shown = [float(one.get_attribute("value")) for one in page.query_selector_all(".bars .share data")]
    assert shown == pytest.approx([one.probability for one in best], rel=1e-4)
    page.locator("summary").first.click()
    page.locator(".entry.chosen", has_text="tiny").wait_for()


def test_no_network_is_said_and_another_model_can_be_chosen(show, settle, online, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    page = show("#/predict?text=The+cat")
    page.locator("summary").first.click()
    page.locator(".entry", has_text="gpt2-medium").click()
    page.wait_for_selector("[role=alert]")
    said = page.locator("[role=alert]").first.inner_text()
    assert "127.0.0.1" in said or "network" in said
    assert page.locator(".waking").count() == 0
    page.locator("summary").first.click()
    page.locator(".entry", has_text="builtin").click()
    settle(page)
    assert page.locator("[role=alert]").count() == 0 and page.locator(".bars .row").count() == 10
