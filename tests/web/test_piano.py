"""The piano page: a file, its sound, its attention as in Python, going on, answering, saving; and its states."""

from __future__ import annotations

import wave
from io import BytesIO
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

pytest.importorskip("symusic", reason="the extra `music` is not installed")

from cutaway.inspect.notes import notes
from cutaway.inspect.runs import run
from cutaway.music import Events
from cutaway.music.events import END
from cutaway.music.midi import midi_bytes, parse_midi
from cutaway.music.performance import Performance
from tests.music.conftest import make_pianist

RANDOM = np.random.default_rng(7)
STARTS = np.arange(60) * 0.125
PIECE = Performance.of(STARTS, STARTS + 0.3, 48 + RANDOM.integers(0, 30, 60), RANDOM.integers(40, 110, 60))
"""Of more events than the pianist's context holds."""
FAKE_KEYBOARD = """() => {
navigator.requestMIDIAccess = async () => ({ inputs: new Map([['one', window.keyboard = { name: 'A keyboard' }]]) });
window.AudioContext = class extends AudioContext { constructor(...given) { super(...given); window.audio = this; } };
}"""


@pytest.fixture(scope="module")
def pianist() -> Any:
    return make_pianist(4, 0.25, context=96)


@pytest.fixture(scope="module")
def at_the_piano(server, pianist, builtin) -> Any:
    served = server(builtin, pianist)
    yield served
    served.stop()


def address(pianist: Any, more: str = "") -> str:
    return f"#/piano?text=Once&with={quote(pianist.name)}{more}"


def numbers(page: Any, selector: str) -> list[float]:
    return [float(one.get_attribute("value")) for one in page.query_selector_all(f"{selector} data")]


def drop(page: Any, name: str, data: bytes) -> None:
    """As a hand does it: a file let go over the page."""
    held = page.evaluate_handle(
        """([name, bytes]) => {
          const held = new DataTransfer();
          held.items.add(new File([new Uint8Array(bytes)], name));
          return held;
        }""",
        [name, list(data)],
    )
    page.dispatch_event(".whole", "drop", {"dataTransfer": held})


def wait_for_notes(page: Any, least: int = 1) -> int:
    page.wait_for_function(f"+document.querySelector('.roll')?.dataset.notes >= {least}")
    return int(page.locator(".roll").get_attribute("data-notes"))


def attention_is_pythons(page: Any, pianist: Any, ids: list[int], note: int, layer: int) -> None:
    """What stands beside the roll for this note is what the view says of the events up to it."""
    page.wait_for_selector(f"[data-note='{note}'] ~ section [data-rest='0']")
    half = (pianist.config.context - 1) // 2
    on = [at for at, token in enumerate(ids) if token < 128]
    start = max(0, on[note] // half - 1) * half
    found = notes(run(pianist, [END, *ids[start : start + 2 * half]]), layer, 6)
    own, first = note - sum(one < start for one in on), sum(one < start for one in on)
    for head in range(pianist.config.heads):
        shown = [int(one.get_attribute("data-to")) for one in page.query_selector_all(f"[data-head='{head}']")]
        assert shown == [first + int(one) for one in found.attended[own, head][:3] if one >= 0]
        weights = found.weights[own, head][: len(shown)].tolist()
        assert numbers(page, f"[data-head='{head}']") == pytest.approx(weights, rel=1e-3, abs=1e-7)
        assert numbers(page, f"[data-rest='{head}']") == pytest.approx([found.rest[own, head]], rel=1e-3, abs=1e-6)


def test_a_file_is_played_looked_into_gone_on_with_answered_and_saved(show, settle, at_the_piano, pianist, axe):
    page = show(address(pianist), at=at_the_piano)
    page.evaluate(FAKE_KEYBOARD)
    page.wait_for_selector("[data-begin=ramble]:not(:disabled)")
    drop(page, "diary.mid", b"Dear diary, this is no music.")
    page.get_by_role("alert").get_by_text("diary.mid is not a MIDI file.").wait_for()
    drop(page, "etude.mid", midi_bytes(PIECE))
    assert wait_for_notes(page) == len(PIECE)
    assert page.locator("[role=alert]").count() == 0
    events = Events().encode(PIECE)
    assert f"of {len(events):,}" in page.locator("[data-event]").inner_text()

    # It plays: the clock of the sound runs, and the playhead with it.
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_function("+document.querySelector('[data-at]').dataset.at > 0.4")
    at, clock = page.evaluate("[+document.querySelector('[data-at]').dataset.at, window.audio.currentTime]")
    assert page.evaluate("window.audio.state") == "running"
    assert 0 < at <= clock
    page.get_by_role("button", name="Pause").click()

    # A note near the end, where the context has moved on, and one at the beginning; another layer.
    page.locator("h1").focus()
    page.get_by_role("slider", name="Where in the piece").fill("6.9")
    page.locator("h1").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("[data-note]")
    note = int(page.locator("[data-note]").get_attribute("data-note"))
    assert note > 50
    attention_is_pythons(page, pianist, events, note, 0)
    page.get_by_role("radio", name="1", exact=True).check()
    settle(page)
    attention_is_pythons(page, pianist, events, note, 1)
    page.locator("[data-to]").first.click()
    settle(page)
    other = int(page.locator("[data-note]").get_attribute("data-note"))
    assert other < note
    attention_is_pythons(page, pianist, events, other, 1)

    # From that note on the model writes; what came before stays.
    page.get_by_role("radio", name="10 s").check()
    page.locator("[data-continue]").click()
    page.get_by_role("button", name="Pause").click(timeout=120_000)
    settle(page)
    with page.expect_download() as saved:
        page.locator("[data-save=mid]").click()
    written = Events().encode(parse_midi(saved.value.path().read_bytes()))
    kept = events[: events.index(int(PIECE.pitches[other]), 0)]
    assert written[: len(kept)] == kept and written != events
    with page.expect_download() as saved:
        page.locator("[data-save=wav]").click()
    with wave.open(BytesIO(saved.value.path().read_bytes())) as sound:
        samples = np.frombuffer(sound.readframes(sound.getnframes()), "<i2").astype(float) / 32768
        seconds = sound.getnframes() / sound.getframerate()
    assert sound.getnchannels() == 2 and seconds > PIECE.starts[other]
    assert np.abs(samples).max() == pytest.approx(0.89, abs=0.01)
    assert np.sqrt(np.square(samples).mean()) > 0.005  # not silent

    # Two hands: the computer's keys and a MIDI keyboard; the model answers.
    page.get_by_role("button", name="Play yourself").click()
    page.get_by_label("answers by itself after a pause").uncheck()
    page.locator("h1").focus()
    for key in "adg":
        page.keyboard.press(key)
    page.wait_for_selector("[data-played='3']")
    page.get_by_role("button", name="Connect a MIDI keyboard").click()
    page.get_by_role("button", name="Connected: A keyboard").wait_for()
    page.evaluate("for (const data of [[0x90, 72, 90], [0x80, 72, 0]]) keyboard.onmidimessage({ data })")
    page.wait_for_selector("[data-played='4']")
    page.locator("[data-answer]").click()
    page.wait_for_selector("[data-played='0']")
    page.get_by_role("button", name="Pause").click(timeout=120_000)
    settle(page)
    with page.expect_download() as saved:
        page.locator("[data-save=mid]").click()
    answered = parse_midi(saved.value.path().read_bytes())
    assert answered.pitches[:4].tolist() == [48, 52, 55, 72] and len(answered) > 4

    page.add_script_tag(content=axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations)")
    assert not found, [(one["id"], one["nodes"][0]["html"], one["nodes"][0]["failureSummary"]) for one in found]


def test_what_it_made_up_is_in_the_link_on_a_phone_in_the_dark(show, settle, at_the_piano, pianist, axe):
    place = address(pianist, "&of=ramble&seed=3&seconds=10&in=1&note=2&lang=ru")
    page = show(place, 390, 800, language="ru", dark=True, at=at_the_piano, wait=False)
    count = wait_for_notes(page, 3)
    page.wait_for_selector(".roll[data-chosen='2']:not([data-lines=''])")
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    again = show(place, at=at_the_piano, wait=False)
    assert wait_for_notes(again, 3) == count
    page.add_script_tag(content=axe)
    found = page.evaluate("axe.run(document, {runOnly: ['wcag2a', 'wcag2aa']}).then((r) => r.violations)")
    assert not found, [(one["id"], one["nodes"][0]["html"], one["nodes"][0]["failureSummary"]) for one in found]


def test_it_begins_with_the_temperature_that_the_model_recommends(show, settle, server, builtin):
    lm = make_pianist(5, 0.25)
    lm.recommended = {"temperature": 0.85, "top_p": 0.9}
    served = server(builtin, lm)
    page = show(address(lm), at=served)
    slider = page.get_by_role("slider", name="temperature")
    assert slider.input_value() == "0.85"
    asked: list[Any] = []
    page.on("request", lambda one: asked.append(one.post_data_json) if one.url.endswith("/piano/compose") else None)
    page.get_by_role("radio", name="10 s").check()
    page.get_by_role("button", name="Let it ramble").click()
    wait_for_notes(page)
    assert [one["temperature"] for one in asked] == [0.85] and "temperature=" not in page.url
    slider.fill("1.2")
    page.wait_for_url("**temperature=1.2*")
    served.stop()
