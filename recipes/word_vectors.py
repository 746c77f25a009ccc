"""The static word vectors that come with the program: skip-gram with negative sampling on stories and Wikipedia.

python recipes/elmo_texts.py --out elmo-texts.jsonl
python recipes/word_vectors.py elmo-texts.jsonl --out src/cutaway/data/words
"""

from __future__ import annotations

import argparse
import json
from itertools import islice
from pathlib import Path

import numpy as np

from cutaway.words.skipgram import SkipGram, learn_vectors


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("texts", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=None, help="the first so many; all, if not said")
    parser.add_argument("--words", type=int, default=8_000)
    parser.add_argument("--width", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=3)
    given = parser.parse_args()
    with given.texts.open(encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in islice(lines, given.documents)]
    settings = SkipGram(words=given.words, width=given.width, epochs=given.epochs)
    learned = learn_vectors(texts, settings)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "words.txt").write_text("".join(f"{word}\n" for word in learned.words), encoding="utf-8")
    np.save(given.out / "vectors.npy", learned.table.astype(np.float16))
    for word in ("stick", "bank", "king", "water", "happy"):
        print(word, *(f"{near} {cosine:.2f}" for near, cosine in learned.nearest(word, 8)), sep="  ")


if __name__ == "__main__":
    main()
