"""Tatoeba's pairs of English and French sentences, in both directions: what recipes/tatoeba.toml learns from.

    python recipes/tatoeba.py fra.txt eng-fra.tsv.xz -o tatoeba

A file has an English sentence, a tab and a French one on each line, plain or packed with xz. `fra.txt` is the one of
manythings.org/anki; `eng-fra.tsv` the longer pairs of the Tatoeba Challenge (github.com/Helsinki-NLP/Tatoeba-Challenge,
data/test and data/devtest). Writes `train.tsv`, in which every pair stands twice, once each way round (a model that
learns both sees for itself which language it is given), `train.en-fr.tsv` for models of one direction,
`test.en-fr.tsv` and `test.fr-en.tsv`, and prints the counts.

- Every kind of space becomes a plain one, every apostrophe the straight one: what a keyboard has.
- The last line of a file is left out if it does not end like a sentence: some copies break off.
- A sentence of more than 14 words on either side is left out, or the included model would have too much to learn.
- Besides the sentences, words and phrases that somebody tries first (phrases.tsv, ours), ten times over, a French one
  back into the first English one that is listed ("merci": "thank you"); and a fifth of the pairs once more, as people
  type them: in small letters, without the full stop.
- 400 English sentences, those whose SHA-256 is least, are the test, with all their translations. A pair is for training
  only if neither of its sentences is in the test: some sentences have several translations.

The sentences are Tatoeba's, CC BY 2.0 FR (https://tatoeba.org).
"""

from __future__ import annotations

import argparse
import hashlib
import lzma
import sys
from collections.abc import Sequence
from pathlib import Path

TEST = 400
WORDS, PHRASES, TYPED = 14, 10, 0.2
"""Words of a sentence at most; how often each phrase comes; the share of the pairs that come as people type them."""
KEYBOARD = str.maketrans({"\u202f": " ", "\u2009": " ", "\u00a0": " ", "\u2019": "'", "\u2018": "'"})

Pair = tuple[str, str]


def read(source: Path) -> list[Pair]:
    """The pairs of a file, each once."""
    opened = lzma.open if source.suffix == ".xz" else open
    pairs: dict[Pair, None] = {}
    with opened(source, "rt", encoding="utf-8") as lines:
        for line in lines.read().translate(KEYBOARD).splitlines():
            english, french = (" ".join(part.split()) for part in line.split("\t")[:2])
            pairs[english, french] = None
    return list(pairs)


def whole(pairs: list[Pair]) -> list[Pair]:
    """The pairs without the last one, if that breaks off."""
    return pairs if pairs[-1][1].endswith((".", "!", "?", "»", '"')) else pairs[:-1]


def short(pair: Pair) -> bool:
    return all(len(text.split()) <= WORDS for text in pair)


def digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def typed(pairs: Sequence[Pair]) -> list[Pair]:
    """Some of the pairs in small letters, without the full stop: chosen by their digest."""
    some = [pair for pair in pairs if digest("typed " + "\t".join(pair))[0] < TYPED * 256]
    return [(english.lower().rstrip(".! "), french.lower().rstrip(".! ")) for english, french in some]


def divide(pairs: Sequence[Pair], test: int) -> tuple[list[Pair], list[Pair]]:
    """What is for training, and what is for the test; they share no sentence."""
    by_digest = sorted({english for english, _ in pairs}, key=digest)
    held = set(by_digest[:test])
    tested = [pair for pair in pairs if pair[0] in held]
    answers = {french for _, french in tested}
    return [pair for pair in pairs if pair[0] not in held and pair[1] not in answers], tested


def turned(pairs: Sequence[Pair]) -> list[Pair]:
    return [(french, english) for english, french in pairs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path, nargs="+", metavar="FILE", help="of pairs; the test is of the first")
    parser.add_argument("-o", "--output", type=Path, default=Path("tatoeba"), help="a folder [default: tatoeba]")
    parser.add_argument("--test", type=int, default=TEST, help=f"how many sentences to hold out [default: {TEST:,}]")
    asked = parser.parse_args()
    for source in asked.sources:
        if not source.is_file():
            sys.exit(f"There is no {source}: fra-eng.zip is at manythings.org/anki.")
    first, *others = (whole(read(source)) for source in asked.sources)
    train, test = divide(first, asked.test)
    held = {text for pair in test for text in pair}
    train += [pair for pairs in others for pair in pairs if short(pair) and not held.intersection(pair)]
    train += [pair for pair in typed(train) if not held.intersection(pair)]
    phrases = read(Path(__file__).with_name("phrases.tsv"))
    back = list({french: english for english, french in reversed(phrases)}.items())  # the first that is listed
    asked.output.mkdir(parents=True, exist_ok=True)
    both = [pair for pairs in zip(train, turned(train), strict=True) for pair in pairs] + (phrases + back) * PHRASES
    train += phrases * PHRASES
    for name, some in (("train", both), ("train.en-fr", train), ("test.en-fr", test), ("test.fr-en", turned(test))):
        beside = asked.output / f"{name}.tsv.part"
        beside.write_text("".join("\t".join(pair) + "\n" for pair in some), encoding="utf-8")
        beside.replace(asked.output / f"{name}.tsv")
        print(f"{asked.output / name}.tsv: {len(some):,} pairs")


if __name__ == "__main__":
    main()
