"""How long a static site takes to its first prediction, in Chromium: from the click to the first bar of Predict.

    python benchmarks/site.py [ROUNDS]

Exports the built-in model into a temporary folder, serves it with Python's http.server, and opens it in a new browser
profile each time, so that nothing is cached. Prints how large the site is, every round, the median, and the load of the
machine.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from living import chromium

import cutaway
from cutaway.serve.site import export_site

WATCH = """
window.seen = {};
new MutationObserver(() => {
  if (!window.seen.frame && document.querySelector('header')) window.seen.frame = performance.now();
  const bar = document.querySelector('.bars .share');
  if (!window.seen.first && bar?.textContent.trim()) window.seen.first = performance.now();
}).observe(document, { childList: true, subtree: true, characterData: true });
"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *what: object) -> None:
        pass


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder, chromium() as launch:
        if launch is None:
            raise SystemExit("there is no Chromium on this machine, or no playwright")
        export_site(cutaway.load(), Path(folder) / "site")
        sizes = {path.name: path.stat().st_size for path in (Path(folder) / "site").rglob("*") if path.is_file()}
        largest = max(sizes, key=lambda name: sizes[name])
        print(f"the site: {sum(sizes.values()) / 1e6:.1f} MB, of which {largest} {sizes[largest] / 1e6:.1f} MB")
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        found = []
        for n in range(rounds):
            browser = launch()
            page = browser.new_page()
            page.add_init_script(WATCH)
            page.goto(f"http://127.0.0.1:{server.server_port}/site/")
            page.wait_for_selector(".bars .share")
            page.evaluate("() => new Promise((done) => requestAnimationFrame(done))")
            seen = page.evaluate("window.seen")
            painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null")
            told = f"page {seen['frame'] / 1000:.2f} s, first paint {painted and round(painted / 1000, 2)} s"
            print(
                f"{n + 1}: first prediction after {seen['first'] / 1000:.2f} s ({told}), load {os.getloadavg()[0]:.1f}"
            )
            found.append(seen["first"] / 1000)
            browser.close()
        print(f"median of {rounds}: {statistics.median(found):.2f} s, slowest {max(found):.2f} s")
        server.shutdown()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
