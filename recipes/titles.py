"""Abstracts of papers and their titles (ACL Anthology): what recipes/titles-text.toml and titles.toml learn from.

    python recipes/titles.py acl_30k.jsonl.xz -o titles

The file has a line {"title": ..., "abstract": ...} for each paper, plain or packed with xz: 30,000 papers of the ACL's
own venues from 2016 on, taken from the XML files of github.com/acl-org/acl-anthology (data/xml, commit 70ba973). Writes
`train.jsonl` and `test.jsonl`, a line {"article": ..., "summary": ...} for each pair, and prints the counts.

- Every kind of space becomes a plain one, typographic quotation marks and dashes those of a keyboard.
- Left out: abstracts of fewer than 40 words, titles of fewer than 3 or more than 20, letters that are not Latin, and
  abstracts or titles that came before.
- 1,000 pairs, those whose abstract's SHA-256 is least, are the test; the others are for training.

The texts are their authors', CC BY 4.0 (https://aclanthology.org).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TEST = 1_000
KEYBOARD = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-", "\u2026": "..."}
)
LATIN = "\u024f"
"""The last letter of the Latin alphabets' block; what comes after it is another script or a sign."""


def papers(source: Path) -> Iterator[tuple[str, str]]:
    """Abstract and title of every paper in the file, cleaned."""
    opened = lzma.open if source.suffix == ".xz" else open
    with opened(source, "rt", encoding="utf-8") as lines:
        for line in lines:
            paper = json.loads(line)
            yield clean(str(paper.get("abstract") or "")), clean(str(paper.get("title") or ""))


def clean(text: str) -> str:
    return " ".join(text.translate(KEYBOARD).split())


def unfit(abstract: str, title: str) -> str:
    """Why a pair is left out; empty if it is not."""
    if len(abstract.split()) < 40:
        return "short"
    if not 3 <= len(title.split()) <= 20:
        return "a title too short or too long"
    return "other letters" if max(abstract + title) > LATIN else ""


def pairs(source: Path) -> tuple[list[dict[str, str]], Counter[str]]:
    """Pairs that can be learned from, and how many were left out, by the reason."""
    kept: dict[str, str] = {}
    titles, left = set[str](), Counter[str]()
    for abstract, title in papers(source):
        if reason := unfit(abstract, title):
            left[reason] += 1
        elif abstract in kept or title.lower() in titles:
            left["the same as one before"] += 1
        else:
            kept[abstract] = title
            titles.add(title.lower())
    return [{"article": abstract, "summary": title} for abstract, title in kept.items()], left


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="the file of papers, .jsonl or .jsonl.xz")
    parser.add_argument("-o", "--output", type=Path, default=Path("titles"), help="a folder [default: titles]")
    parser.add_argument("--test", type=int, default=TEST, help=f"how many pairs to hold out [default: {TEST:,}]")
    asked = parser.parse_args()
    if not asked.source.is_file():
        sys.exit(f"There is no {asked.source}.")
    found, left = pairs(asked.source)
    if not found:
        sys.exit(f"{asked.source} has no papers with an abstract and a title.")
    by_digest = sorted(found, key=lambda pair: hashlib.sha256(pair["article"].encode()).digest())
    held = {pair["article"] for pair in by_digest[: asked.test]}
    asked.output.mkdir(parents=True, exist_ok=True)
    for name, test in (("train", False), ("test", True)):
        some = [pair for pair in found if (pair["article"] in held) is test]
        beside = asked.output / f"{name}.jsonl.part"
        beside.write_text("".join(json.dumps(pair, ensure_ascii=False) + "\n" for pair in some), encoding="utf-8")
        beside.replace(asked.output / f"{name}.jsonl")
        print(f"{asked.output / name}.jsonl: {len(some):,} pairs")
    print("left out: " + ", ".join(f"{count:,} {reason}" for reason, count in left.items()))


if __name__ == "__main__":
    main()
