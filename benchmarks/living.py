"""How quick the page is in the browser: first paint and the living view's frames, by the clock and in processor time.

    python benchmarks/living.py [--rounds 5] [--seconds 4] [--tokens 64 1024] [--json]

One server shows a model of 12 layers and 12 heads (random weights) and texts of 64 and of 1,024 tokens. First paint:
a new browser profile each round, nothing cached. Frames: the story is played, at the whole machine and inside a block,
and the camera goes from the one into the other. Processor time is what Chromium's tracing and its processes say they
used, so it means something on a busy machine, too; wall times want a quiet one. All are medians of the rounds.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import statistics
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

BROWSERS = ("chromium", "chromium-headless-shell", "chromium-browser", "google-chrome")
TEXT = "Once upon a time, there was a little girl named Lily. She liked to play with her red ball in the park. " * 50
TRACED = "devtools.timeline,disabled-by-default-devtools.timeline,toplevel,loading,blink.user_timing"
PLACES = {
    "the whole machine": ("step=scores&layer=3", " "),
    "inside a block": ("step=input_norm&layer=0", " "),
    "on the way into a block": ("step=scores&layer=3&level=machine", "+"),
}
"""Where a measurement begins, and the key that begins it: later blocks are told from far, the first from near; one key
goes nearer.
"""
HEADER = """new MutationObserver((_, watcher) => {
  if (!document.querySelector('header')) return;
  watcher.disconnect();
  requestAnimationFrame(() => { window.headed = performance.now(); });
}).observe(document, { childList: true, subtree: true })"""
PLAYED = """seconds => new Promise((done) => {
  const began = performance.now(), at = [];
  const tick = (now) => { at.push(now); now - began < seconds * 1000 ? requestAnimationFrame(tick) : done(at); };
  requestAnimationFrame(tick);
})"""


@contextmanager
def chromium() -> Iterator[Any]:
    """A function that launches a browser; none where there is no Chromium or no playwright."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        yield None
        return
    with sync_playwright() as playwright:
        yield lambda: playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])


def first_paint(launch: Callable[[], Any], where: str) -> dict[str, float]:
    """One visit by someone who was never here: milliseconds to the first paint, and what was done for it."""
    browser = launch()
    page = browser.new_page(viewport={"width": 1280, "height": 900}, bypass_csp=True)
    page.add_init_script(HEADER)
    session = browser.new_browser_cdp_session()
    events: list[dict[str, Any]] = []
    finished: list[bool] = []
    session.on("Tracing.dataCollected", lambda piece: events.extend(piece["value"]))
    session.on("Tracing.tracingComplete", lambda _: finished.append(True))
    session.send("Tracing.start", {"traceConfig": {"includedCategories": TRACED.split(",")}})
    page.goto(where)
    page.wait_for_selector(".bars .row")
    painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    headed = page.evaluate("window.headed")
    fetched = page.evaluate(
        "until => performance.getEntriesByType('resource').filter((one) => one.responseEnd < until)"
        ".reduce((sum, one) => sum + one.transferSize, 0)",
        painted,
    )
    session.send("Tracing.end")
    while not finished:
        page.wait_for_timeout(20)
    browser.close()
    shown = next(one for one in events if one["name"] == "firstContentfulPaint")
    begun = max(
        one["ts"]
        for one in events
        if one["name"] == "navigationStart" and one["pid"] == shown["pid"] and one["ts"] < shown["ts"]
    )
    mine = [
        one for one in events
        if (one["pid"], one["tid"]) == (shown["pid"], shown["tid"]) and "tdur" in one
        and begun <= one["ts"] < begun + 1000 * headed
    ]  # fmt: skip
    told = [one for one in mine if one["name"] in ("RunTask", "ThreadControllerImpl::RunTask")]
    name = min(one["name"] for one in told)  # both may be there: the same tasks, told twice
    tasks = [one for one in told if one["name"] == name]
    parts = {
        "scripts": ("v8.evaluateModule", "v8.compileModule"),
        "style and layout": ("UpdateLayoutTree", "Layout"),
    }
    used = {what: sum(one["tdur"] for one in mine if one["name"] in kinds) / 1000 for what, kinds in parts.items()}
    return {
        "first paint, ms": painted,
        "first paint, processor ms": sum(one["tdur"] for one in tasks if one["ts"] < shown["ts"]) / 1000,
        "header and pages there, ms": headed,
        "header and pages there, processor ms": sum(one["tdur"] for one in tasks) / 1000,
        **{f"  of it {what}": took for what, took in used.items()},
        "fetched until the first paint, kB": fetched / 1000,
    }


def spent(session: Any) -> float:
    """Seconds of processor that the browser's processes have used so far."""
    return sum(one["cpuTime"] for one in session.send("SystemInfo.getProcessInfo")["processInfo"])


def frames(launch: Callable[[], Any], where: str, place: str, key: str, seconds: float) -> dict[str, float]:
    """The story played for so long, or the camera on its way: frames a second, how far apart, what each costs."""
    browser = launch()
    whole = browser.new_browser_cdp_session()
    page = browser.new_page(viewport={"width": 1280, "height": 900}, bypass_csp=True)
    page.set_default_timeout(300_000)  # a long text takes its time on a busy machine
    own = page.context.new_cdp_session(page)
    own.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(f"{where}#/walk?{place}")
    page.wait_for_selector("canvas.living")
    page.wait_for_function("document.querySelector('canvas.living').describe?.().river.length > 0")
    page.wait_for_function("document.querySelector('.picture').ariaBusy === 'false'")
    page.locator("h1").focus()
    page.keyboard.press(key)

    def used() -> float:
        told = {one["name"]: one["value"] for one in own.send("Performance.getMetrics")["metrics"]}
        return told["TaskDuration"]

    before, all_before = used(), spent(whole)
    at = page.evaluate(PLAYED, seconds)
    after, all_after = used(), spent(whole)
    columns = page.evaluate("document.querySelector('canvas.living').describe().columns.length")
    painting = sorted(page.evaluate("document.querySelector('canvas.living').frames()"))
    browser.close()
    apart = sorted(b - a for a, b in itertools.pairwise(at))
    return {
        "columns": columns,
        "frames a second": 1000 * len(apart) / (at[-1] - at[0]),
        "between frames, 95th percentile, ms": apart[int(0.95 * len(apart))],
        "painting a frame, median, ms": statistics.median(painting),
        "painting a frame, 99th percentile, ms": painting[int(0.99 * len(painting))],
        "a frame on the page's thread, processor ms": 1000 * (after - before) / len(apart),
        "a frame in the whole browser, processor ms": 1000 * (all_after - all_before) / len(apart),
    }


@contextmanager
def served() -> Iterator[tuple[str, Callable[[int], str]]]:
    """The address of an explorer in this process; in it that of so many tokens in a model as deep as GPT-2."""
    import torch
    import uvicorn

    import cutaway
    from cutaway.language_model import LanguageModel
    from cutaway.models.gpt2.model import GPT
    from cutaway.models.gpt2.shape import Config
    from cutaway.serve.app import create_app
    from cutaway.serve.explorer import Explorer
    from cutaway.serve.start import bind

    torch.manual_seed(1)
    tokenizer = cutaway.load().tokenizer
    model = GPT(Config(vocabulary=len(tokenizer), context=1_024, width=192, layers=12, heads=12))
    with torch.no_grad():
        for block in model.blocks:
            block.attention.queries_keys_values.weight.mul_(8)
    explorer = Explorer()
    explorer.models.add(cutaway.load())
    explorer.models.add(LanguageModel(model, tokenizer, "deep"))
    listener = bind()
    server = uvicorn.Server(uvicorn.Config(create_app(explorer), log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    ids = tokenizer.encode(TEXT)
    yield (
        f"http://127.0.0.1:{listener.getsockname()[1]}/",
        lambda tokens: f"model=deep&text={quote(tokenizer.decode(ids[:tokens]))}",
    )
    server.should_exit = True
    thread.join(10)
    explorer.close()


def median(rounds: list[dict[str, float]]) -> dict[str, float]:
    return {name: round(statistics.median(one[name] for one in rounds), 2) for name in rounds[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="of playing, each time")
    parser.add_argument("--tokens", type=int, nargs="+", default=[64, 1_024], help="lengths of the texts")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found: dict[str, dict[str, float]] = {}
    with chromium() as launch:
        if launch is None:
            raise SystemExit("there is no Chromium on this machine, or no playwright")
        with served() as (where, shown):
            first_paint(launch, where)  # the first visit finds the server cold
            found["first paint"] = median([first_paint(launch, where) for _ in range(asked.rounds)])
            for tokens, (name, (place, key)) in itertools.product(asked.tokens, PLACES.items()):
                seconds = 1.0 if key == "+" else asked.seconds
                rounds = [frames(launch, where, f"{shown(tokens)}&{place}", key, seconds) for _ in range(asked.rounds)]
                found[f"{name}, {tokens} tokens"] = median(rounds)
    if asked.json:
        print(json.dumps(found))
        return
    print(f"median of {asked.rounds}, load average {os.getloadavg()[0]:.1f}")
    for what, numbers in found.items():
        print(what)
        for name, took in numbers.items():
            print(f"  {name:46} {took:8,.1f}")


if __name__ == "__main__":
    main()
