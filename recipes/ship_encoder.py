"""Put a trained encoder into the package: float16, its task, its loss curve, and its card.

    python recipes/ship_encoder.py bert TRAINED [--before EARLIER ...]
    python recipes/ship_encoder.py elmo TRAINED

The card (README.md there) is bert-card.md or elmo-card.md, filled with the training's own report and with what the
model says, as it ships, of the same sentences every time. A model that began with the weights of earlier trainings
(`cutaway train --from`) has their steps, tokens and minutes counted, too.
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
        "forwards": f"{report['metrics']['forwards']:.3f}", "backwards": f"{report['metrics']['backwards']:.3f}",
        "layer_names": " | ".join(names), "layer_rules": "|".join(["---"] * len(names)), "samples": "\n".join(rows),
    }  # fmt: skip


def in_all(reports: Sequence[dict[str, Any]]) -> dict[str, str]:
    """How much was learned, in one training or in several, each from the weights of the one before."""
    steps, tokens, seconds = (sum(one[name] for one in reports) for name in ("step", "tokens", "time"))
    stages = f" in {len(reports)} trainings, each from the weights of the one before" if len(reports) > 1 else ""
    return {
        "steps": f"{steps:,}", "trained": f"{tokens / 1e6:.1f}", "words": f"{tokens / 1e6:.1f} million",
        "minutes": f"{seconds / 60:.0f}", "stages": stages,
    }  # fmt: skip


ABOUT = {"bert": about_bert, "elmo": about_elmo}


def main(given: Sequence[str] | None = None) -> None:
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("name", choices=list(ABOUT), help="which of those that ship it is to be")
    about.add_argument("trained", type=pathlib.Path)
    about.add_argument("--before", type=pathlib.Path, nargs="+", default=[], help="the trainings it went on from")
    about.add_argument("--out", type=pathlib.Path, help="where it is put [default: into the package]")
    asked = about.parse_args(given)
    folder = asked.out or DATA / asked.name
    ship(asked.trained, folder)
    reports = [json.loads((one / "report.json").read_text()) for one in (*asked.before, asked.trained)]
    words = facts(asked.trained, folder) | ABOUT[asked.name](folder, reports[-1]) | in_all(reports)
    write_card(f"{asked.name}-card.md", folder, words)


if __name__ == "__main__":
    main()
