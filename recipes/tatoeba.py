"""Tatoeba's pairs of English and French sentences, in both directions: what recipes/tatoeba.toml learns from.

    python recipes/tatoeba.py fra.txt -o tatoeba

`fra.txt` has an English sentence, a tab and a French one on each line, as manythings.org/anki gives them. Writes
`train.tsv`, in which every pair stands twice, once each way round (a model that learns both sees for itself which
language it is given), `test.en-fr.tsv` and `test.fr-en.tsv`, and prints the counts.

- Every kind of space becomes a plain one, every apostrophe the straight one: what a keyboard has.
- The last line is left out if it does not end like a sentence: some copies of the file break off.
- 400 English sentences, those whose SHA-256 is least, are the test, with all their translations. A pair is for training
  only if neither of its sentences is in the test: some sentences have several translations.

The sentences are Tatoeba's, CC BY 2.0 FR (https://tatoeba.org).
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

TEST = 400
KEYBOARD = str.maketrans({"\u202f": " ", "\u2009": " ", "\u00a0": " ", "\u2019": "'", "\u2018": "'"})

Pair = tuple[str, str]


def read(source: Path) -> list[Pair]:
    """The pairs of a file, each once."""
    pairs: dict[Pair, None] = {}
    for line in source.read_text(encoding="utf-8").translate(KEYBOARD).splitlines():
        english, french = (" ".join(part.split()) for part in line.split("\t")[:2])
        pairs[english, french] = None
    found = list(pairs)
    return found if found[-1][1].endswith((".", "!", "?", "»", '"')) else found[:-1]


def divide(pairs: Sequence[Pair], test: int) -> tuple[list[Pair], list[Pair]]:
    """What is for training, and what is for the test; they share no sentence."""
    by_digest = sorted({english for english, _ in pairs}, key=lambda text: hashlib.sha256(text.encode()).digest())
    held = set(by_digest[:test])
    tested = [pair for pair in pairs if pair[0] in held]
    answers = {french for _, french in tested}
    return [pair for pair in pairs if pair[0] not in held and pair[1] not in answers], tested


def turned(pairs: Sequence[Pair]) -> list[Pair]:
    return [(french, english) for english, french in pairs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, metavar="fra.txt", help="the file of pairs")
    parser.add_argument("-o", "--output", type=Path, default=Path("tatoeba"), help="a folder [default: tatoeba]")
    parser.add_argument("--test", type=int, default=TEST, help=f"how many sentences to hold out [default: {TEST:,}]")
    asked = parser.parse_args()
    if not asked.source.is_file():
        sys.exit(f"There is no {asked.source}: get fra-eng.zip from manythings.org/anki.")
    train, test = divide(read(asked.source), asked.test)
    asked.output.mkdir(parents=True, exist_ok=True)
    both = [pair for pairs in zip(train, turned(train), strict=True) for pair in pairs]
    for name, some in (("train", both), ("test.en-fr", test), ("test.fr-en", turned(test))):
        beside = asked.output / f"{name}.tsv.part"
        beside.write_text("".join("\t".join(pair) + "\n" for pair in some), encoding="utf-8")
        beside.replace(asked.output / f"{name}.tsv")
        print(f"{asked.output / name}.tsv: {len(some):,} pairs")


if __name__ == "__main__":
    main()
