"""Put a trained encoder into the package: float16, its task, its loss curve, and its card.

    python recipes/ship_encoder.py bert TRAINED
    python recipes/ship_encoder.py elmo TRAINED

The card (README.md there) is bert-card.md or elmo-card.md, filled with the training's own report and with what the
model says, as it ships, of the same sentences every time.
"""

from __future__ import annotations

import argparse
import json
import pathlib
from collections.abc import Sequence
from typing import Any

from ship_translator import DATA, facts, ship, write_card

import cutaway
from cutaway.inspect.runs import run
from cutaway.inspect.senses import senses

GAPS = (
    "The little dog began to [MASK] at the cat.",
    "The capital of France is [MASK].",
    "A banana is [MASK].",
    "The [MASK] is in the sky at night.",
    "Lily was sad because she had lost her [MASK].",
    "Once upon a [MASK], there was a little girl.",
    "The keys to the cabinet [MASK] on the table.",
    "A robot must [MASK] the orders given it by human beings.",
)
WORDS = (
    ("stick", "Let us stick to the plan.", "He found a stick in the wood."),
    ("park", "They played in the park all day.", "You can park the car here."),
    ("watch", "We watch the birds in the tree.", "He wore a watch on his arm."),
)


def about_bert(folder: pathlib.Path, report: dict[str, Any]) -> dict[str, Any]:
    lm = cutaway.load(folder)
    rows = []
    for text in GAPS:
        [gap] = lm.fill(text, 5)
        rows.append(f"| {text} | {', '.join(f'{one.text} {one.probability:.0%}' for one in gap.predictions)} |")
    return {"accuracy": report["metrics"]["accuracy"], "samples": "\n".join(rows)}


def about_elmo(folder: pathlib.Path, report: dict[str, Any]) -> dict[str, Any]:
    lm = cutaway.load(folder)
    rows, names = [], []
    for word, one, other in WORDS:
        found = senses(run(lm, one), other, word)
        names = [f"`{name}`" for name in found.layers]
        same = [sum(near.word.lower() == word for near in side) for side in found.neighbours]
        cosines = " | ".join(f"{cosine:.2f}" for cosine in found.cosines)
        rows.append(f"| {word} | {one} {other} | {cosines} | {same[0]} and {same[1]} of {len(found.neighbours[0])} |")
    config = lm.config
    return {
        "highways": config.highways, "cell_width": config.cell_width, "predicted": config.words,
        "words": f"{report['tokens'] / 1e6:.1f} million",
        "forwards": f"{report['metrics']['forwards']:.3f}", "backwards": f"{report['metrics']['backwards']:.3f}",
        "layer_names": " | ".join(names), "layer_rules": "|".join(["---"] * len(names)), "samples": "\n".join(rows),
    }  # fmt: skip


ABOUT = {"bert": about_bert, "elmo": about_elmo}


def main(given: Sequence[str] | None = None) -> None:
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("name", choices=list(ABOUT), help="which of those that ship it is to be")
    about.add_argument("trained", type=pathlib.Path)
    about.add_argument("--out", type=pathlib.Path, help="where it is put [default: into the package]")
    asked = about.parse_args(given)
    folder = asked.out or DATA / asked.name
    ship(asked.trained, folder)
    report = json.loads((asked.trained / "report.json").read_text())
    write_card(f"{asked.name}-card.md", folder, facts(asked.trained, folder) | ABOUT[asked.name](folder, report))


if __name__ == "__main__":
    main()
