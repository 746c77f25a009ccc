"""ULMFiT's tuning beside plain fine-tuning with few labels: SST-2, from the built-in model, several seeds.

    OMP_NUM_THREADS=1 python benchmarks/few_labels.py --sst2 ../shared/data/sst2 --labels 100 500 --seeds 0 1 2

Each way begins with the same model, sees the same labelled sentences (drawn by the seed, half of each class) in as many
steps, and is measured on the same sentences of the test set. Each way's rate is the one given for it.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
from pathlib import Path
from typing import Any

from cutaway import train

CLASSES = ("negative", "positive")
PLAIN = {"schedule": "linear", "warm_up": 0.1, "final": 0.0}
TRIANGLE = {"schedule": "slanted", "warm_up": 0.1, "final": 1 / 32}
FACTOR = {"layer_factor": 1 / 2.6}
WAYS: dict[str, dict[str, Any]] = {
    "plain": PLAIN,
    "slanted triangle": TRIANGLE,
    "and a rate for each layer": {**TRIANGLE, **FACTOR},
    "and gradual unfreezing": {**TRIANGLE, **FACTOR, "unfreeze_every": 0.1},
}


def read(path: Path) -> list[dict[str, str]]:
    lines = [line.rsplit("\t", 1) for line in path.read_text(encoding="utf-8").splitlines()]
    return [{"text": text, "label": CLASSES[int(label)]} for text, label in lines]


def drawn(records: list[dict[str, str]], count: int, seed: int) -> list[dict[str, str]]:
    """As many of each class."""
    chosen = []
    for name in CLASSES:
        chosen += random.Random(seed).sample([one for one in records if one["label"] == name], count // 2)
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sst2", type=Path, required=True)
    parser.add_argument("--labels", type=int, nargs="+", default=[100, 500])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rate", type=float, default=3e-4, help="of the plain way")
    parser.add_argument("--top", type=float, default=1e-3, help="of the last layer, where each has its own")
    parser.add_argument("--measured", type=int, default=400, help="so many sentences of the test set")
    given = parser.parse_args()
    test = drawn(read(given.sst2 / "test.tsv"), given.measured, seed=0)
    known = read(given.sst2 / "train.tsv")
    for count in given.labels:
        for name, settings in WAYS.items():
            found = []
            for seed in given.seeds:
                with tempfile.TemporaryDirectory() as folder:
                    held = Path(folder) / "test.tsv"
                    held.write_text("".join(f"{one['text']}\t{one['label']}\n" for one in test), encoding="utf-8")
                    report = train.run(
                        Path(folder) / "tuned", records=drawn(known, count, seed), validation=(str(held),),
                        task={"name": "classification", "labels": list(CLASSES)}, from_="builtin", seed=seed,
                        steps=given.steps, batch=given.batch, at_once=given.batch, evaluate_every=0, sample_every=0,
                        checkpoint_every=given.steps, dropout=0.1, precision="float32", threads=1,
                        learning_rate=given.top if "layer_factor" in settings else given.rate,
                        cache=str(Path(folder) / "cache"), **settings,
                    )  # fmt: skip
                found.append(report.metrics["accuracy"])
            spread = f"± {statistics.stdev(found):.3f}" if len(found) > 1 else ""
            each = " ".join(f"{one:.3f}" for one in found)
            print(f"{count:>5} labels  {name:<28} {statistics.mean(found):.3f} {spread}  ({each})", flush=True)


if __name__ == "__main__":
    main()
