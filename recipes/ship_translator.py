"""Put a trained translator into the package: float16, its task, its loss curve, and its card.

    python recipes/ship_translator.py rnn TRAINED tatoeba/test.en-fr.tsv
    python recipes/ship_translator.py translator TRAINED tatoeba/test.en-fr.tsv tatoeba/test.fr-en.tsv

Likewise rnn-plain and transformer. The card (README.md there) is rnn-card.md and so on, filled with what is measured
now: of every test BLEU of the model as it ships, with one reference and with all, how many first answers are one of
them, and its first ten.
"""

from __future__ import annotations

import argparse
import itertools
import json
import pathlib
import re
import shutil
from collections.abc import Sequence
from typing import Any

import sacrebleu
import torch

import cutaway
from cutaway import checkpoint
from cutaway.tasks import load_task, save_task
from cutaway.tasks.answer import translate

HERE = pathlib.Path(__file__).parent
DATA = pathlib.Path(cutaway.__file__).parent / "data"
MOST = 8_000_000
"""Bytes of all files of a model that ships."""
BEAMS, SHOWN = 4, 10


def ship(trained: pathlib.Path, folder: pathlib.Path) -> None:
    """The model, as it will be loaded."""
    lm = cutaway.load(trained)
    folder.mkdir(exist_ok=True)
    checkpoint.write_model(lm.model, lm.tokenizer, folder, torch.float16, recommended={})
    save_task(load_task(trained), folder)
    shutil.copy(trained / "loss.svg", folder / "loss.svg")


def facts(trained: pathlib.Path, folder: pathlib.Path) -> dict[str, Any]:
    """What every card says of a model and of its training."""
    lm = cutaway.load(folder)
    report = json.loads((trained / "report.json").read_text())
    shape = {
        name: getattr(lm.config, name)
        for name in ("layers", "width", "heads", "context", "vocabulary")
        if hasattr(lm.config, name)
    }
    return {
        **shape,
        "weights": f"{sum(one.numel() for one in lm.model.parameters()) / 1e6:.2f}",
        "size": f"{(folder / 'model.safetensors').stat().st_size / 1e6:.1f}",
        "steps": f"{report['step']:,}",
        "trained": f"{report['tokens'] / 1e6:.1f}",
        "minutes": round(report["time"] / 60),
        "loss": f"{report['held_loss']:.3f}",
    }


def measured(folder: pathlib.Path, test: pathlib.Path) -> dict[str, Any]:
    """One direction's numbers and first sentences."""
    lm, task = cutaway.load(folder), load_task(folder)
    pairs = [line.split("\t")[:2] for line in test.read_text(encoding="utf-8").splitlines()]
    right: dict[str, list[str]] = {}
    for source, target in pairs:
        right.setdefault(source, []).append(target)
    said = dict(zip(right, (one.text for one in translate(lm, task, list(right), beams=BEAMS)), strict=True))
    bleu = sacrebleu.BLEU()
    one = bleu.corpus_score([said[source] for source, _ in pairs], [[target for _, target in pairs]])
    signature = bleu.get_signature()
    most = max(map(len, right.values()))
    references = [[some[n] if n < len(some) else None for some in right.values()] for n in range(most)]
    every = sacrebleu.BLEU().corpus_score(list(said.values()), references)
    exact = sum(said[source] in targets for source, targets in right.items())
    samples = [
        f"| {source} | {said[source]} | {' / '.join(targets)} |"
        for source, targets in itertools.islice(right.items(), SHOWN)
    ]
    return {
        "bleu": f"{one.score:.1f}",
        "bleu_all": f"{every.score:.1f}",
        "exact": f"{exact / len(right):.0%} of {len(right)}",
        "pairs": len(pairs),
        "signature": f"{signature}; {BEAMS} beams",
        "samples": "\n".join(samples),
    }


def write_card(template: str, folder: pathlib.Path, words: dict[str, Any]) -> None:
    """The card with its numbers in place, and not if the folder is larger than it may be."""
    card = (HERE / template).read_text(encoding="utf-8")
    card = re.sub(r"\{(\w+)(:[^}]*)?\}", lambda hole: format(words[hole[1]], (hole[2] or ":")[1:]), card)
    (folder / "README.md").write_text(card, encoding="utf-8")
    size = sum(path.stat().st_size for path in folder.iterdir())
    if size > MOST:
        raise SystemExit(f"{folder} is {size / 1e6:.1f} MB, and at most {MOST / 1e6:.0f} MB may ship.")
    print(f"{folder}: {size / 1e6:.1f} MB")


def main(given: Sequence[str] | None = None) -> None:
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument(
        "name", choices=["rnn", "rnn-plain", "transformer", "translator"], help="which of those that ship it is to be"
    )
    about.add_argument("trained", type=pathlib.Path)
    about.add_argument("tests", type=pathlib.Path, nargs="+", help="a source, a tab and a target on each line")
    about.add_argument("--out", type=pathlib.Path, help="where it is put [default: into the package]")
    asked = about.parse_args(given)
    folder = asked.out or DATA / asked.name
    ship(asked.trained, folder)
    words = facts(asked.trained, folder)
    for number, test in enumerate(asked.tests):
        words |= {f"{name}{number or ''}": value for name, value in measured(folder, test).items()}
    write_card(f"{asked.name}-card.md", folder, words)


if __name__ == "__main__":
    main()
