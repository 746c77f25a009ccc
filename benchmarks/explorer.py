"""How quick the explorer is: first paint, a full trace, and a keystroke's prediction, as the page asks for them.

    python benchmarks/explorer.py [--rounds 5] [--json]

A server of its own is started on the built-in model and on one of GPT-2's size (random weights, GPT-2's tokenizer), and
asked over HTTP. A keystroke is a text with one more token: carried through, and its prediction. First paint is measured
in Chromium with playwright, and left out where there is none. Each number is the median, in milliseconds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from living import chromium, first_paint

TEXT = "Once upon a time, there was a little girl named Lily. She liked to play with her red ball in the park. " * 60
ASLEEP = ("fetching", "reading", "asleep")


@contextmanager
def served(model: str) -> Iterator[str]:
    """The address of an explorer that shows this model."""
    command = [sys.executable, "-m", "cutaway", "explore", "--no-browser", "--model", model]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"COLUMNS": "300"})
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1].partition("#")[0]
    finally:
        process.terminate()
        process.wait()


def ask(address: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as answer:
        return json.load(answer)


def wake(where: str, model: str) -> None:
    while ask(f"{where}api/models", {"name": model})["phase"] in ASLEEP:
        time.sleep(0.05)


def median(rounds: int, work: Callable[[int], None]) -> float:
    """Milliseconds; the first time, which finds nothing ready, does not count."""
    took = []
    for turn in range(rounds + 1):
        begun = time.perf_counter()
        work(turn)
        took.append(1000 * (time.perf_counter() - begun))
    return round(statistics.median(took[1:]), 1)


def measure(where: str, model: str, lengths: list[int], rounds: int) -> dict[str, float]:
    """Texts of so many tokens: read as a whole, each time another; and grown by a token, as a hand that types does."""
    words = [one["text"] for one in ask(f"{where}api/tokens", {"model": model, "text": TEXT[:9_000]})]

    def text(tokens: int, turn: int) -> str:
        return "".join(words[turn : turn + tokens])

    def trace(said: str) -> dict[str, Any]:
        return ask(f"{where}api/traces", {"model": model, "text": said})

    def predicted(said: str) -> None:
        ask(f"{where}api/traces/{trace(said)['id']}/predict?position=-1")

    found = {}
    for tokens in lengths:
        found[f"trace of {tokens:,} tokens"] = median(rounds, lambda turn, n=tokens: trace(text(n, turn)))
        trace(text(tokens, 0))
        found[f"keystroke after {tokens:,} tokens"] = median(
            rounds, lambda turn, n=tokens: predicted(text(n + turn + 1, 0))
        )
    return found


def gpt2_sized(folder: Path) -> str:
    from cutaway.language_model import LanguageModel
    from cutaway.models.gpt2.model import GPT
    from cutaway.models.gpt2.shape import SIZES
    from cutaway.text.tokenizer import Tokenizer

    LanguageModel(GPT(SIZES["gpt2"]), Tokenizer.load("gpt2"), "gpt2-sized").save(folder)
    return str(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found: dict[str, dict[str, float]] = {}
    with served("builtin") as where:
        wake(where, "builtin")
        found["built-in"] = measure(where, "builtin", [64], asked.rounds)
        with chromium() as launch:
            if launch is not None:
                painted = [first_paint(launch, where)["first paint, ms"] for _ in range(asked.rounds)]
                found["built-in"]["first paint"] = round(statistics.median(painted), 1)
    with tempfile.TemporaryDirectory() as home:
        folder = gpt2_sized(Path(home) / "gpt2-sized")
        with served(folder) as where:
            wake(where, folder)
            found["GPT-2-small-sized"] = measure(where, folder, [16, 64, 1_000], asked.rounds)
    if asked.json:
        print(json.dumps(found))
        return
    for model, numbers in found.items():
        print(model)
        for name, took in numbers.items():
            print(f"  {name:32} {took:8,.0f} ms")


if __name__ == "__main__":
    main()
