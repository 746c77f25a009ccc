"""How fast texts become GPT-2's tokens: Cutaway, tiktoken and `tokenizers` side by side in one process.

    python benchmarks/tokenizer.py [--repeats 18] [--json]

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
from itertools import permutations
from pathlib import Path

import tiktoken
import tokenizers

from cutaway import Tokenizer
from cutaway.text import bpe, vocabulary

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SIZE = 300_000  # characters of each of two sources
CORES = bpe.cores()
Engines = dict[str, Callable[[], object]]


def english() -> str:
    """Encyclopedia and drama if they are at hand, else made-up words of the usual lengths."""
    files = [DATA / "wikitext2_raw" / "wiki.test.raw", DATA / "tinyshakespeare" / "input.txt"]
    if all(file.is_file() for file in files):
        return "\n".join(file.read_text(encoding="utf-8")[:SIZE] for file in files)
    chance = random.Random(0)
    words = [
        "".join(chance.choices("etaoinshrdlucmfwypvbg", k=1 + int(chance.expovariate(0.2)))) for _ in range(20_000)
    ]
    text = (chance.choice(words) + chance.choice([" "] * 12 + [", ", ". ", "\n"]) for _ in range(SIZE // 2))
    return "".join(text)[: 2 * SIZE]


def mixed() -> str:
    """French and German, if at hand, else the made-up English with other letters."""
    files = [DATA / "multi30k" / f"train.{language}.gz" for language in ("fr", "de")]
    if all(file.is_file() for file in files):
        return "\n".join(gzip.decompress(file.read_bytes()).decode()[:SIZE] for file in files)
    return english().translate(str.maketrans("eosu", "éößü"))


def rounds(engines: Engines, repeats: int) -> dict[str, list[tuple[float, float]]]:
    """The seconds each engine took in each repeat, by the clock and of processor time.

    They take turns in every order there is: who comes after a slow one finds the processor's caches emptied.
    """
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in engines}
    orders = list(permutations(engines))
    for turn in range(repeats + 1):
        for name in orders[turn % len(orders)]:
            start, used = time.perf_counter(), time.process_time()
            engines[name]()
            if turn:  # the first round is for warming up
                seconds[name].append((time.perf_counter() - start, time.process_time() - used))
    return seconds


def compare(seconds: dict[str, list[tuple[float, float]]], megabytes: float, kind: int) -> dict[str, float]:
    """MB/s of each engine (medians), and our speed as a share of the faster other one's (median over the repeats)."""
    middle = {name: statistics.median(times[kind] for times in each) for name, each in seconds.items()}
    faster = min((name for name in middle if name != "cutaway"), key=lambda name: middle[name])
    pairs = zip(seconds[faster], seconds["cutaway"], strict=True)
    share = statistics.median(theirs[kind] / ours[kind] for theirs, ours in pairs)
    return {**{name: megabytes / taken for name, taken in middle.items()}, "share": share}


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
            taken = rounds(engines, repeats)
            rows.append(
                {
                    "what": way,
                    "megabytes": megabytes,
                    "per_second": compare(taken, megabytes, 0),
                    "per_processor_second": compare(taken, megabytes, 1),
                }
            )
    return rows


def loading(repeats: int) -> tuple[float, float]:
    """Seconds from GPT-2's files to a tokenizer that is ready, nothing kept from the last time; clock and processor."""
    from cutaway.text.tokenizer import _gpt2

    taken = rounds({"load": lambda: (_gpt2.cache_clear(), Tokenizer.load())}, repeats)["load"]
    return statistics.median(clock for clock, _ in taken), statistics.median(used for _, used in taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=18)
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
    print(f"Median of {arguments.repeats} repeats that take turns; {result['machine']}; {versions}.")
    print("MB/s by the clock, and for each second of processor time (on a busy machine only the second is steady).\n")
    print(f"{'':<37}{'cutaway':>13}{'tiktoken':>13}{'tokenizers':>13}   cutaway : faster of the two")
    for row in rows:
        clock, used = row["per_second"], row["per_processor_second"]
        speeds = "".join(f"{clock[name]:>7.1f}{used[name]:>6.1f}" for name in ("cutaway", "tiktoken", "tokenizers"))
        print(f"{row['what']:<37}{speeds}{clock['share']:>9.2f}{used['share']:>6.2f}")
    clock, used = result["load_seconds"]
    print(f"\nGPT-2's vocabulary is read in {clock:.2f} s ({used:.2f} s of processor time).")


if __name__ == "__main__":
    main()
