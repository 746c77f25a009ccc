"""How fast texts become GPT-2's tokens: Cutaway, tiktoken and `tokenizers` side by side in one process.

    python benchmarks/tokenizer.py [--repeats 15] [--json]

Each repeat runs every engine once, one after the other, so that a busy machine slows all of them; the table shows
medians. All three are given the same vocabulary and text, and must give the same ids before anything is measured.
"""

from __future__ import annotations

import argparse
import gzip
import json
import platform
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import tiktoken
import tokenizers

from cutaway import Tokenizer, bpe, vocabulary

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
CORES = bpe.cores()
Engines = dict[str, Callable[[], object]]


def english() -> str:
    """Real text if it is at hand, else a megabyte of made-up words of the usual lengths."""
    files = [DATA / "wikitext2_raw" / "wiki.test.raw", DATA / "tinyshakespeare" / "input.txt"]
    if all(file.is_file() for file in files):
        return "\n".join(file.read_text(encoding="utf-8") for file in files)
    chance = random.Random(0)
    words = [
        "".join(chance.choices("etaoinshrdlucmfwypvbg", k=1 + int(chance.expovariate(0.2)))) for _ in range(20_000)
    ]
    return "".join(f"{chance.choice(words)}{chance.choice([' '] * 12 + [', ', '. ', chr(10)])}" for _ in range(350_000))


def mixed() -> str:
    """French and German, if at hand, else the made-up English with other letters."""
    files = [DATA / "multi30k" / f"train.{language}.gz" for language in ("fr", "de")]
    if all(file.is_file() for file in files):
        return "\n".join(gzip.decompress(file.read_bytes()).decode()[:500_000] for file in files)
    return english()[:1_000_000].translate(str.maketrans("eosu", "éößü"))


def rounds(engines: Engines, repeats: int) -> dict[str, float]:
    """The median seconds of each engine, over repeats that take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    names = list(engines)
    for turn in range(repeats + 1):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            start = time.perf_counter()
            engines[name]()
            if turn:  # the first round is for warming up
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}


def encoding(texts: dict[str, str], repeats: int) -> list[dict[str, object]]:
    ours = Tokenizer.load()
    words = vocabulary.read(Path(vocabulary.__file__).parent / "data" / "gpt2")
    table = words.table()
    ranks = {table[i]: i for i in words.tokens.values()}
    tik = tiktoken.Encoding("gpt2", pat_str=bpe.SPLIT, mergeable_ranks=ranks, special_tokens={})
    with tempfile.TemporaryDirectory() as folder:
        ours.save(folder)
        other = tokenizers.Tokenizer.from_file(str(Path(folder, "tokenizer.json")))
        other.encode_special_tokens = True
    rows = []
    for name, text in texts.items():
        lines = text.splitlines(keepends=True)
        short = [text[i : i + 4_000] for i in range(0, len(text), 4_000)]
        assert ours.encode(text) == tik.encode_ordinary(text) == other.encode(text).ids
        assert (
            ours.encode_batch(lines) == tik.encode_ordinary_batch(lines) == [e.ids for e in other.encode_batch(lines)]
        )
        ways: dict[str, Engines] = {
            f"{name}, a page at a time": {
                "cutaway": lambda short=short: [ours.encode(page) for page in short],
                "tiktoken": lambda short=short: [tik.encode_ordinary(page) for page in short],
                "tokenizers": lambda short=short: [other.encode(page).ids for page in short],
            },
            f"{name}, one long text": {
                "cutaway": lambda text=text: ours.encode(text),
                "tiktoken": lambda text=text: tik.encode_ordinary(text),
                "tokenizers": lambda text=text: other.encode(text).ids,
            },
            f"{name}, a batch of lines": {
                "cutaway": lambda lines=lines: ours.encode_batch(lines),
                "tiktoken": lambda lines=lines: tik.encode_ordinary_batch(lines, num_threads=CORES),
                "tokenizers": lambda lines=lines: [e.ids for e in other.encode_batch_fast(lines)],
            },
        }
        megabytes = len(text.encode()) / 1e6
        for way, engines in ways.items():
            speed = {engine: megabytes / time for engine, time in rounds(engines, repeats).items()}
            rows.append({"what": way, "megabytes": megabytes, "megabytes_per_second": speed})
    return rows


def loading(repeats: int) -> float:
    """Seconds from GPT-2's files to a tokenizer that is ready, nothing kept from the last time."""
    from cutaway.tokenizer import _gpt2

    return rounds({"load": lambda: (_gpt2.cache_clear(), Tokenizer.load())}, repeats)["load"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    arguments = parser.parse_args()
    rows = encoding({"English": english(), "French and German": mixed()}, arguments.repeats)
    versions = {"tiktoken": tiktoken.__version__, "tokenizers": tokenizers.__version__}
    result = {
        "machine": f"{platform.machine()}, {CORES} cores", "python": platform.python_version(), "versions": versions,
        "repeats": arguments.repeats, "load_seconds": loading(arguments.repeats), "encoding": rows,
    }  # fmt: skip
    if arguments.json:
        print(json.dumps(result, indent=2))
        return
    print(f"MB/s, median of {arguments.repeats} repeats that take turns; {result['machine']}; {versions}\n")
    print(f"{'':<38}{'cutaway':>9}{'tiktoken':>10}{'tokenizers':>12}   cutaway / faster of the two")
    for row in rows:
        speed: dict[str, float] = row["megabytes_per_second"]
        share = speed["cutaway"] / max(speed["tiktoken"], speed["tokenizers"])
        print(
            f"{row['what']:<38}{speed['cutaway']:>9.1f}{speed['tiktoken']:>10.1f}{speed['tokenizers']:>12.1f}{share:>15.2f}"
        )
    print(f"\nGPT-2's vocabulary is read in {result['load_seconds']:.2f} s.")


if __name__ == "__main__":
    main()
