"""Put a trained summarizer into the package: float16, its task, both loss curves, and its card.

    python recipes/ship_summarizer.py summarizer titles/test.jsonl --first titles-text

The card (README.md there) is summarizer-card.md, filled with what is measured now: ROUGE of the model as it ships
beside that of the article's first words, and the first ten of the test.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import shutil
from collections.abc import Sequence
from typing import Any

from ship_translator import DATA, facts, ship, write_card

import cutaway
from cutaway.tasks import load_task
from cutaway.tasks.answer import summarize
from cutaway.tasks.scores import Score, rouge

FIRST_WORDS = (8, 12, 16)
SHOWN, BEAMS, FEW = 10, 4, 100


def row(name: str, found: Score) -> str:
    return f"| {name} | {' | '.join(f'{value:.1f}' for value in found.parts.values())} |"


def shortened(text: str, most: int = 110) -> str:
    return text if len(text) <= most else text[:most].rsplit(" ", 1)[0] + " ..."


def measured(folder: pathlib.Path, test: pathlib.Path) -> dict[str, Any]:
    """ROUGE on the test, greedy and of no model at all; with beams on its first hundred; and its first ten."""
    lm, task = cutaway.load(folder), load_task(folder)
    pairs = [json.loads(line) for line in test.read_text(encoding="utf-8").splitlines()]
    articles, right = [one["article"] for one in pairs], [one["summary"] for one in pairs]
    greedy = [one.text for one in summarize(lm, task, articles, beams=1)]
    beams = [one.text for one in summarize(lm, task, articles[:FEW], beams=BEAMS)]
    rows = [row("this model, greedy", rouge(greedy, right))]
    for count in FIRST_WORDS:
        rows.append(row(f"no model: the abstract's first {count} words", rouge(
            [" ".join(article.split()[:count]) for article in articles], right)))  # fmt: skip
    few = {"greedy": rouge(greedy[:FEW], right[:FEW]), "beams": rouge(beams, right[:FEW])}
    samples = [
        f"| {shortened(article)} | {title} | {said} |".replace("\n", " ")
        for article, title, said in zip(articles[:SHOWN], right, beams, strict=False)
    ]
    return {
        "tested": f"{len(pairs):,}",
        "rouge": "\n".join(rows),
        "samples": "\n".join(samples),
        **{name: ", ".join(f"{value:.1f}" for value in found.parts.values()) for name, found in few.items()},
    }


def main(given: Sequence[str] | None = None) -> None:
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("trained", type=pathlib.Path)
    about.add_argument("test", type=pathlib.Path, help="a line {article, summary} for each pair")
    about.add_argument("--first", type=pathlib.Path, required=True, help="the folder of the first stage")
    about.add_argument("--out", type=pathlib.Path, default=DATA / "summarizer", help="where it is put")
    asked = about.parse_args(given)
    ship(asked.trained, asked.out)
    shutil.copy(asked.first / "loss.svg", asked.out / "loss-text.svg")
    before = {f"first_{name}": value for name, value in facts(asked.first, asked.out).items()}
    words = facts(asked.trained, asked.out) | before | measured(asked.out, asked.test)
    write_card("summarizer-card.md", asked.out, words)


if __name__ == "__main__":
    main()
