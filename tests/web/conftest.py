"""The explorer in a real Chromium, fed by the built-in model; skipped, with the reason, where there is none."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

WEB = Path(__file__).resolve().parents[2] / "web"
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The shell first: the whole browser draws windows that nobody sees, which takes more than our pages do."""
FLAGS = (  # noqa: SIM905
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()


@pytest.fixture(scope="session")
def playwright() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (pip install playwright)")
    with sync_api.sync_playwright() as playwright:
        yield playwright


def launched(playwright: Any, names: Sequence[str]) -> Iterator[Any]:
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip("there is no Chromium on this machine (apt install chromium)")
    browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def browser(playwright) -> Iterator[Any]:
    yield from launched(playwright, BROWSERS)


@pytest.fixture(scope="session")
def whole_browser(playwright) -> Iterator[Any]:
    """With what the shell leaves out: a tapped button stays hovered there, as on a phone."""
    yield from launched(playwright, BROWSERS[1:])


@pytest.fixture(scope="session")
def builtin() -> Any:
    import cutaway

    return cutaway.load()


@pytest.fixture(scope="session")
def long_lm(tiny_lm) -> Any:
    """Random weights, but 1,024 positions."""
    import torch

    from cutaway.language_model import LanguageModel
    from cutaway.models.gpt2.model import GPT
    from cutaway.models.gpt2.shape import Config

    torch.manual_seed(3)
    model = GPT(Config(vocabulary=320, context=1_024, width=32, layers=2, heads=4))
    with torch.no_grad():
        for block in model.blocks:
            block.attention.queries_keys_values.weight.mul_(20)
    return LanguageModel(model, tiny_lm.tokenizer, "long")


class Served:
    """A server of the explorer in this process, that can go away and come back."""

    def __init__(self, *models: Any, folders: Sequence[str] = (), tour: Path | None = None):
        pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
        from cutaway.serve.explorer import Explorer
        from cutaway.serve.start import bind
        from cutaway.serve.tour import TourFile

        self.explorer, self.models = Explorer(folders, tour=TourFile(tour) if tour else None), models
        self.wake()
        listener = bind()
        self.port = listener.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}/"
        self.start(listener)

    def wake(self) -> None:
        """Have its models in memory: a test that chose others may have put one to sleep that no folder has."""
        for lm in self.models:
            self.explorer.models.add(lm)

    def start(self, listener: socket.socket | None = None) -> None:
        import uvicorn

        from cutaway.serve.app import create_app
        from cutaway.serve.stage import Presenting
        from cutaway.serve.start import bind

        app = create_app(self.explorer, parts=[Presenting()])
        listener = listener or bind(self.port)
        self.server = uvicorn.Server(
            uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=1)
        )
        self.thread = threading.Thread(target=self.server.run, args=([listener],), daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(10)


@pytest.fixture(scope="session")
def server() -> type[Served]:
    """For tests that want a server of their own."""
    return Served


@pytest.fixture(scope="session")
def served(builtin, long_lm) -> Iterator[Served]:
    served = Served(builtin, long_lm)
    yield served
    served.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Any:
    """A test that failed says what its last page said: of a wait that ended, nothing else does."""
    report = yield
    page = getattr(item, "last_page", None)
    if report.failed and call.when == "call" and page is not None:
        page.set_default_timeout(5_000)
        try:
            report.sections.append((f"the page at {page.url[:120]}", page.locator("body").inner_text()))
        except Exception as error:  # the page is gone, or hangs: that, too, is worth knowing
            report.sections.append(("the page could not be read", str(error)))
    return report


@pytest.fixture
def show(browser, served, request) -> Iterator[Callable[..., Any]]:
    """A function: an address inside the explorer -> the page, when its picture is there. No page may complain."""
    complaints: list[str] = []
    contexts = []
    if isinstance(served, Served):  # others have no models of their own
        served.wake()

    def show(
        place: str = "",
        width: int = 1280,
        height: int = 900,
        language: str = "en",
        dark: bool = False,
        wait: bool = True,
        touch: bool = False,
        within: Any = None,
        at: Served | None = None,
    ) -> Any:
        context = (within or browser).new_context(
            viewport={"width": width, "height": height}, locale=language, color_scheme="dark" if dark else "light",
            reduced_motion="reduce", bypass_csp=True, accept_downloads=True, has_touch=touch, is_mobile=touch,
        )  # fmt: skip
        contexts.append(context)
        context.add_init_script(COUNT)
        page = request.node.last_page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto((at or served).address + place)
        if wait:
            settled(page)
        return page

    yield show
    for context in contexts:
        context.close()
    assert not complaints


COUNT = """
(() => {
  const { setTimeout, clearTimeout, fetch } = window, timers = new Set();
  let asked = 0;
  window.setTimeout = (run, wait = 0, ...rest) => {
    const timer = setTimeout(() => { timers.delete(timer); run(...rest); }, wait);
    if (wait <= 400) timers.add(timer);
    return timer;
  };
  window.clearTimeout = (timer) => { timers.delete(timer); clearTimeout(timer); };
  window.fetch = (...what) => { asked += 1; return fetch(...what).finally(() => { asked -= 1; }); };
  window.nothingPending = () => asked === 0 && timers.size === 0;
})();
"""
"""Runs before a page's own scripts: counts what it asks the server and what it has put off for a moment."""
CALM = """
() => {
  const pictures = [...document.querySelectorAll(".picture")];
  const calm = pictures.length && pictures.every((one) => one.ariaBusy === "false") && window.nothingPending();
  window.calmFrames = calm ? (window.calmFrames ?? 0) + 1 : 0;
  return window.calmFrames > 3;
}
"""


def settled(page: Any) -> None:
    """Wait until nothing on the page is still being asked for, put off or drawn."""
    page.wait_for_selector("#page-title", state="attached")  # hidden, where a guess comes first
    page.evaluate("window.calmFrames = 0")
    page.wait_for_function(CALM)
    address = page.evaluate("location.href")
    page.wait_for_url(lambda url: url == address)  # the browser tells Playwright of a new address in its own time


@pytest.fixture
def settle() -> Callable[[Any], None]:
    return settled


@pytest.fixture
def axe() -> str:
    """The source of axe, which knows what screen readers stumble over."""
    path = WEB / "node_modules" / "axe-core" / "axe.min.js"
    if not path.is_file():
        pytest.skip("axe-core is not installed (make complete)")
    return path.read_text()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *what: object) -> None:
        pass


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Iterator[tuple[Path, str]]:
    """A folder that a plain file server serves, and its address."""
    folder = tmp_path_factory.mktemp("files")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
