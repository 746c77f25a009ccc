"""What the small ELMo learns from: the little stories and articles of Simple English Wikipedia, as one JSON Lines file.

    python recipes/elmo_texts.py --out elmo-texts.jsonl

Stories and articles are taken in turns, in an order that follows from the seed, until one of the two is used up. An
article is cut after its first paragraphs, so that no subject fills much of the file.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path

DATA = Path(os.environ.get("CUTAWAY_DATA", Path(__file__).parents[2] / "shared" / "data"))
STORIES, ARTICLES = "stories/stories.txt.xz", "simple_wikipedia/simplewiki_part.txt.xz"
LONGEST = 1_500
"""So many characters of an article at most, whole paragraphs."""


def stories(text: str) -> list[str]:
    return [one.strip() for one in text.split("<|endoftext|>") if one.strip()]


def articles(text: str) -> list[str]:
    """The beginnings of the articles, without their titles and without remarks in brackets."""
    found = []
    for article in re.split(r"^# .*\n", text, flags=re.MULTILINE):
        kept, size = [], 0
        for paragraph in article.split("\n"):
            plain = re.sub(r" ?\([^()]*\)", "", paragraph).strip()
            if size and size + len(plain) > LONGEST:
                break
            kept.append(plain)
            size += len(plain)
        if size:
            found.append("\n".join(filter(None, kept)))
    return found


def in_turns(*kinds: list[str], seed: int) -> Iterator[str]:
    for kind in kinds:
        random.Random(seed).shuffle(kind)
    for together in zip(*kinds, strict=False):
        yield from together


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("elmo-texts.jsonl"))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    both = [
        kind(lzma.decompress((DATA / path).read_bytes()).decode())
        for kind, path in ((stories, STORIES), (articles, ARTICLES))
    ]
    with given.out.open("w", encoding="utf-8") as out:
        for text in in_turns(*both, seed=given.seed):
            out.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
