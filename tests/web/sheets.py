"""Every state of every control and page on contact sheets, to be looked at. No test: what looks wrong a person sees.

    python tests/web/sheets.py FOLDER [controls|pages|states] ...

`controls`: every kind of control once, at rest, hovered, focused, pressed and disabled, in both themes, at desk and on
a phone. `pages`: every page in three languages, themes and sizes in turn; told.json says what a program can tell: words
that are cut off, things that stick out, words that were left in English. `states`: every page empty, loading and
failed.
"""

from __future__ import annotations

import io
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from conftest import BROWSERS, COUNT, Served, launched, settled
from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import TimeoutError as NeverRests
from playwright.sync_api import sync_playwright
from test_states import SCRIPT, STATES, TEXT, VIEWS, address

TOLD = Path(__file__).with_name("sheets.js").read_text()
SIZES = {"desk": (1280, 900), "phone": (390, 844)}
MORE = {
    "causal map": "map?position=5",
    "gallery": "gallery?",
    "learn": "learn?",
    "teaching": "jobs?",
    "two sides": "predict?beside=1&text2=The+dog",
    "presenting": "predict?tour=next-word&present=1",
}
PAGES = (
    "predict", "walk", "attention", "layers", "causes", "neurons", "senses", "generate", "learn", "change",
    "map", "weights", "tasks", "contest", "gallery", "jobs",
)  # fmt: skip
MOST = 3_000
"""Pixels of a page that are looked at."""


def place(view: str) -> str:
    return address(view) if view in VIEWS else f"#/{MORE[view]}&text={quote(TEXT)}"


class Walker:
    def __init__(self, browser: Any, served: Served):
        self.browser, self.served = browser, served

    def page(self, size: str, language: str, theme: str) -> Any:
        width, height = SIZES[size]
        context = self.browser.new_context(
            viewport={"width": width, "height": height}, locale=language, color_scheme=theme,
            reduced_motion="reduce", bypass_csp=True,
        )  # fmt: skip
        context.add_init_script(COUNT)
        page = context.new_page()
        page.set_default_timeout(20_000)
        return page

    def open(self, page: Any, where: str, failing: bool = False) -> None:
        page.goto("about:blank")
        page.goto(self.served.address + where)
        if failing:
            page.wait_for_selector("[role=alert]")
        else:
            with suppress(NeverRests):  # a page that never rests is looked at as it is
                settled(page)
        page.evaluate(SCRIPT + TOLD)


def picture(page: Any) -> Image.Image:
    """All of a page, also what scrolls inside it."""
    page.add_style_tag(content=".app { height: auto !important } main { overflow: visible !important }")
    high = page.evaluate("document.documentElement.scrollHeight")
    width = page.viewport_size["width"]
    clip = {"x": 0, "y": 0, "width": width, "height": min(MOST, high)}
    return Image.open(io.BytesIO(page.screenshot(clip=clip, full_page=True))).convert("RGB")


def label(text: str, width: int, size: int = 15) -> Image.Image:
    font = ImageFont.truetype("DejaVuSans.ttf", size)
    lines = [text[at : at + width * 2 // size + 1] for at in range(0, max(1, len(text)), width * 2 // size + 1)]
    tile = Image.new("RGB", (width, (size + 4) * len(lines)), "#dddddd")
    for n, line in enumerate(lines):
        ImageDraw.Draw(tile).text((2, n * (size + 4)), line, fill="black", font=font)
    return tile


def sheet(tiles: list[Image.Image], width: int = 2000) -> Image.Image:
    """Tiles in rows, as many as fit."""
    rows: list[list[Image.Image]] = [[]]
    for tile in tiles:
        if rows[-1] and sum(one.width + 8 for one in rows[-1]) + tile.width > width:
            rows.append([])
        rows[-1].append(tile)
    whole = Image.new("RGB", (width, sum(max(one.height for one in row) + 8 for row in rows if row)), "#8a8a8a")
    y = 0
    for row in rows:
        x = 0
        for tile in row:
            whole.paste(tile, (x, y))
            x += tile.width + 8
        y += max(one.height for one in row) + 8
    return whole


def stacked(*tiles: Image.Image) -> Image.Image:
    whole = Image.new("RGB", (max(one.width for one in tiles), sum(one.height for one in tiles)), "#dddddd")
    y = 0
    for tile in tiles:
        whole.paste(tile, (0, y))
        y += tile.height
    return whole


def controls(walker: Walker, out: Path) -> None:
    for size in SIZES:
        known: set[str] = set()
        tiles: dict[str, list[Image.Image]] = {"light": [], "dark": []}
        page = walker.page(size, "en", "light")
        for view in (*VIEWS, *MORE):
            walker.open(page, place(view), failing=view == "a failure")
            picture(page)
            fresh = {
                one["key"]: one
                for one in page.evaluate("controls()")
                if one["key"] not in known and one["y"] < MOST - 100
            }
            known |= set(fresh)
            if not fresh:
                continue
            print(size, view, len(fresh), flush=True)
            for theme, made in tiles.items():
                page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
                shots = []
                for state in ("rest", "hover", "focus", "pressed"):
                    page.evaluate("states => become(states)", STATES[state])
                    shots.append(picture(page))
                page.evaluate("become([])")
                page.evaluate("disable(true)")
                shots.append(picture(page))
                page.evaluate("disable(false)")
                for one in fresh.values():
                    box = tuple(
                        map(
                            int,
                            (
                                max(0, one["x"] - 5),
                                max(0, one["y"] - 5),
                                one["x"] + min(one["width"], 180) + 5,
                                one["y"] + min(one["height"], 60) + 5,
                            ),
                        )
                    )
                    crops = [shot.crop(box) for shot in shots]
                    row = Image.new("RGB", (sum(crop.width + 3 for crop in crops), crops[0].height), "#ff00ff")
                    for n, crop in enumerate(crops):
                        row.paste(crop, (n * (crop.width + 3), 0))
                    made.append(stacked(label(one["key"][:60], max(row.width, 60), 10), row))
        page.context.close()
        for theme, made in tiles.items():
            for n in range(0, len(made), 90):
                sheet(made[n : n + 90]).save(out / f"controls-{size}-{theme}-{n // 90}.png")


def pages(walker: Walker, out: Path) -> None:
    """Each language has both themes and both sizes, and each page is seen in all three languages."""
    told: dict[str, list[str]] = {}
    for language, turns in {
        "en": ("light desk", "dark phone"),
        "ru": ("dark desk", "light phone"),
        "zh-CN": ("light desk", "dark phone"),
    }.items():
        for turn in turns:
            theme, size = turn.split()
            page = walker.page(size, language, theme)
            tiles = []
            for view in [*(one for one in VIEWS if one != "a failure"), *MORE]:
                walker.open(page, place(view))
                said = page.evaluate("language => tell(language)", language)
                told[f"{view}, {language}, {turn}"] = said
                shot = picture(page)
                shrunk = (
                    shot.resize((shot.width * 5 // 8, shot.height * 5 // 8), Image.Resampling.LANCZOS)
                    if size == "desk"
                    else shot
                )
                tiles.append(
                    stacked(
                        label(f"{view} · {language} · {turn}", shrunk.width), shrunk.crop((0, 0, shrunk.width, 1300))
                    )
                )
                print(language, turn, view, len(said), flush=True)
            page.context.close()
            for n in range(0, len(tiles), 8):
                sheet(tiles[n : n + 8], 3300 if size == "desk" else 3200).save(
                    out / f"pages-{language}-{theme}-{size}-{n // 8}.png"
                )
    (out / "told.json").write_text(
        json.dumps({name: said for name, said in told.items() if said}, indent=1, ensure_ascii=False)
    )


def states(walker: Walker, out: Path) -> None:
    failed = {
        "status": 500,
        "content_type": "application/json",
        "body": json.dumps(
            {"error": {"code": "internal", "what": "Something broke.", "remedy": "Try again.", "values": {}}}
        ),
    }
    for language, theme, size in (("en", "light", "desk"), ("ru", "dark", "phone"), ("zh-CN", "dark", "desk")):
        for state in ("empty", "loading", "failed"):
            tiles = []
            for name in PAGES:
                page = walker.page(size, language, theme)
                if state == "failed":
                    page.route("**/api/traces/*/**", lambda route: route.fulfill(**failed))
                    for one in ("weights", "tasks", "contest", "learn", "jobs", "gallery", "map"):
                        page.route(f"**/api/{one}*/**", lambda route: route.fulfill(**failed))
                elif state == "loading":
                    page.route("**/api/traces/*/**", lambda route: None)
                    for one in ("weights", "tasks", "contest", "learn", "jobs", "gallery", "map"):
                        page.route(f"**/api/{one}*/**", lambda route: None)
                page.goto(f"{walker.served.address}#/{name}?text={'' if state == 'empty' else quote(TEXT)}")
                page.wait_for_selector("#page-title", state="attached")
                page.evaluate(
                    "() => new Promise((done) => setTimeout(done, 1500))"
                )  # what never ends cannot be waited for
                shot = picture(page).crop((0, 0, SIZES[size][0], SIZES[size][1]))
                shrunk = (
                    shot.resize((shot.width // 2, shot.height // 2), Image.Resampling.LANCZOS)
                    if size == "desk"
                    else shot
                )
                tiles.append(stacked(label(f"{name} · {state}", shrunk.width), shrunk))
                print(state, language, name, flush=True)
                page.context.close()
            sheet(tiles, 2600 if size == "desk" else 2800).save(out / f"states-{state}-{language}-{theme}-{size}.png")


def main() -> None:
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    import cutaway

    served = Served(cutaway.load())
    with sync_playwright() as playwright:
        for browser in launched(playwright, BROWSERS):
            for what in sys.argv[2:] or ("controls", "pages", "states"):
                {"controls": controls, "pages": pages, "states": states}[what](Walker(browser, served), out)
    served.stop()


if __name__ == "__main__":
    main()
