"""How fast a large text becomes a data set, with one process and with all cores, and how much memory that takes.

    python benchmarks/prepare.py [--megabytes 200] [--workers 1 2] [--json]

The text is paragraphs of Wikipedia in any order (or made-up ones), five to a document, and one document as long as a
tenth of the whole, on a single line. On a busy machine, look at the megabytes per second of processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from itertools import accumulate
from pathlib import Path

from cutaway import Tokenizer
from cutaway.processor import cores
from cutaway.tasks import Language
from cutaway.train.data.shards import prepare

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def paragraphs() -> list[str]:
    """Real ones if they are at hand, else made-up words of the usual lengths and frequencies."""
    real = DATA / "wikitext2_raw" / "wiki.test.raw"
    if real.is_file():
        return [line.strip() for line in real.read_text(encoding="utf-8").splitlines() if len(line) > 200]
    chance = random.Random(0)
    letters, weights = "etaoinshrdlucmfwypvbgkq", range(23, 0, -1)
    words = ["".join(chance.choices(letters, weights, k=1 + int(chance.expovariate(0.25)))) for _ in range(30_000)]
    often = list(accumulate(1 / (rank + 3) for rank in range(len(words))))
    return [f"{' '.join(chance.choices(words, cum_weights=often, k=100)).capitalize()}." for _ in range(2_000)]


def make_text(path: Path, megabytes: float) -> None:
    chance, some = random.Random(0), paragraphs()
    left, long = megabytes * 1e6, megabytes * 1e5
    with path.open("w", encoding="utf-8") as file:
        while left > 0:
            between, end = (" ", " ") if long > 0 else ("\n", "\n<|endoftext|>\n")
            text = between.join(chance.choices(some, k=5)) + end
            file.write(text)
            left, long = left - len(text), long - len(text)


def measure(path: Path, cache: Path, workers: int) -> dict[str, float]:
    """One data set made in this process; run in a process of its own, so that its memory is its own."""
    tokenizer = Tokenizer.load("gpt2")
    megabytes = path.stat().st_size / 1e6
    begin = time.perf_counter()
    data = prepare([path], tokenizer, Language(), cache, workers=workers)
    seconds = time.perf_counter() - begin
    mine, theirs = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    processor = sum(one.ru_utime + one.ru_stime for one in (mine, theirs))
    begin = time.perf_counter()
    prepare([path], tokenizer, Language(), cache, workers=workers)
    unit = 1024 if sys.platform == "linux" else 1
    return {
        "workers": workers,
        "megabytes": megabytes,
        "tokens": data.report.tokens,
        "seconds": seconds,
        "megabytes_per_second": megabytes / seconds,
        "megabytes_per_processor_second": megabytes / processor,
        "cores_used": processor / seconds,
        "peak_memory_here": mine.ru_maxrss * unit / 1e6,
        "peak_memory_of_a_worker": theirs.ru_maxrss * unit / 1e6 if workers > 1 else 0,
        "seconds_when_cached": time.perf_counter() - begin,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=200)
    parser.add_argument("--workers", type=int, nargs="+", default=sorted({1, cores()}))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        path, cache, workers = asked.measure
        print(json.dumps(measure(Path(path), Path(cache), int(workers))))
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.txt"
        make_text(path, asked.megabytes)
        for workers in asked.workers:
            command = [
                sys.executable,
                __file__,
                "--measure",
                str(path),
                str(Path(folder) / f"cache-{workers}"),
                str(workers),
            ]
            rows.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    if asked.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{rows[0]['megabytes']:.0f} MB of text, {rows[0]['tokens']:,} tokens of GPT-2, {os.cpu_count()} cores, "
          f"load {os.getloadavg()[0]:.1f}, {platform.processor() or platform.machine()}\n")  # fmt: skip
    print("| workers | MB/s | MB/s of processor time | cores used | memory, MB | a worker's, MB | cached, s |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row['workers']} | {row['megabytes_per_second']:.1f} | {row['megabytes_per_processor_second']:.1f} "
            f"| {row['cores_used']:.2f} | {row['peak_memory_here']:.0f} | {row['peak_memory_of_a_worker']:.0f} "
            f"| {row['seconds_when_cached']:.2f} |"
        )


if __name__ == "__main__":
    main()
