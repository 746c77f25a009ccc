"""Put a trained recurrent translator into the package: float16, its task, its loss curve, and its card.

    python recipes/ship_rnn.py my-translator tatoeba/test.en-fr.tsv

The card (README.md there) is rnn-card.md, filled with what is measured now: BLEU of the model as it ships, and the
first ten sentences of the test, as they come.
"""

from __future__ import annotations

import argparse
import itertools
import json
import pathlib
import shutil

import sacrebleu
import torch

import cutaway
from cutaway import checkpoint
from cutaway.tasks import load_task, save_task
from cutaway.tasks.answer import translate

HERE = pathlib.Path(__file__).parent
RNN = pathlib.Path(cutaway.__file__).parent / "data" / "rnn"
MOST = 8_000_000
"""Bytes of all files that ship."""
BEAMS = 4


def ship(trained: pathlib.Path, folder: pathlib.Path = RNN) -> None:
    """The model, as it will be loaded."""
    lm = cutaway.load(trained)
    folder.mkdir(exist_ok=True)
    checkpoint.write_model(lm.model, lm.tokenizer, folder, torch.float16, recommended={})
    save_task(load_task(trained), folder)
    shutil.copy(trained / "loss.svg", folder / "loss.svg")


def main() -> None:
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("trained", type=pathlib.Path)
    about.add_argument("test", type=pathlib.Path, help="a source, a tab and a target on each line")
    given = about.parse_args()
    ship(given.trained)
    lm, task = cutaway.load(RNN), load_task(RNN)
    pairs = [line.split("\t")[:2] for line in given.test.read_text(encoding="utf-8").splitlines()]
    answers = [one.text for one in translate(lm, task, [source for source, _ in pairs], beams=BEAMS)]
    bleu = sacrebleu.BLEU()
    one = bleu.corpus_score(answers, [[target for _, target in pairs]])
    grouped = {
        source: list(rows)
        for source, rows in itertools.groupby(zip(pairs, answers, strict=True), key=lambda row: row[0][0])
    }
    rows = [
        f"| {source} | {found[0][1]} | {' / '.join(target for (_, target), _ in found)} |"
        for source, found in itertools.islice(grouped.items(), 10)
    ]
    exact = sum(found[0][1] in [target for (_, target), _ in found] for found in grouped.values())
    report = json.loads((given.trained / "report.json").read_text())
    words = {
        "weights": f"{sum(one.numel() for one in lm.model.parameters()) / 1e6:.2f}",
        "size": f"{(RNN / 'model.safetensors').stat().st_size / 1e6:.1f}",
        "steps": f"{report['step']:,}",
        "trained": f"{report['tokens'] / 1e6:.1f}",
        "minutes": round(report["time"] / 60),
        "loss": f"{report['held_loss']:.3f}",
        "bleu": f"{one.score:.1f}",
        "exact": f"{exact / len(grouped):.0%} of {len(grouped)}",
        "pairs": len(pairs),
        "signature": f"{bleu.get_signature()}; {BEAMS} beams",
        "samples": "\n".join(rows),
    }
    card = (HERE / "rnn-card.md").read_text(encoding="utf-8")
    for name, value in words.items():
        card = card.replace(f"{{{name}}}", str(value))
    (RNN / "README.md").write_text(card, encoding="utf-8")
    size = sum(path.stat().st_size for path in RNN.iterdir())
    if size > MOST:
        raise SystemExit(f"{RNN} is {size / 1e6:.1f} MB, and at most {MOST / 1e6:.0f} MB may ship.")
    print(f"{RNN}: {size / 1e6:.1f} MB, BLEU {one.score:.1f}")


if __name__ == "__main__":
    main()
