"""ULMFiT's tuning beside plain fine-tuning with few labels: SST-2, from the built-in model, several seeds.

    OMP_NUM_THREADS=1 python benchmarks/few_labels.py --sst2 ../shared/data/sst2 -o few-labels --seeds 0 1 2

Each way begins with the same model, sees the same labelled sentences (drawn by the seed, half of each class) in as many
steps, and is measured on the same sentences of the test set. Each way's rate is the one given for it. What is
finished is kept in the output folder: stopped and started again, it goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from cutaway import train
from cutaway.atomic import write_text
from cutaway.errors import CutawayError

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
        own = [one for one in records if one["label"] == name]
        if len(own) < count // 2:
            raise CutawayError(f"{count // 2:,} {name} sentences are asked for, and there are {len(own):,}.")
        chosen += random.Random(seed).sample(own, count // 2)
    return chosen


def run(given: argparse.Namespace, way: str, count: int, seed: int) -> float:
    """The accuracy of one tuning on the test's sentences; done before, it is only read."""
    kept = given.output / "runs" / f"{count}-labels-{way.replace(' ', '-')}-seed-{seed}.json"
    if kept.exists():
        return float(json.loads(kept.read_text())["accuracy"])
    settings = WAYS[way]
    test = drawn(read(given.sst2 / "test.tsv"), given.measured, seed=0)
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        held = Path(folder) / "test.tsv"
        held.write_text("".join(f"{one['text']}\t{one['label']}\n" for one in test), encoding="utf-8")
        report = train.run(
            Path(folder) / "tuned", records=drawn(read(given.sst2 / "train.tsv"), count, seed), validation=(str(held),),
            task={"name": "classification", "labels": list(CLASSES)}, from_=given.start, seed=seed,
            steps=given.steps, batch=given.batch, at_once=given.batch, evaluate_every=0, sample_every=0,
            checkpoint_every=given.steps, dropout=0.1, precision="float32", threads=1,
            learning_rate=given.top if "layer_factor" in settings else given.rate,
            cache=str(Path(folder) / "cache"), **settings,
        )  # fmt: skip
    accuracy = report.metrics["accuracy"]
    write_text(kept, json.dumps({"way": way, "labels": count, "seed": seed, "accuracy": accuracy}))
    return accuracy


def same_as_before(given: argparse.Namespace) -> None:
    """A folder holds one comparison; labels and seeds may be added to it."""
    path = given.output / "comparison.json"
    now = {key: getattr(given, key) for key in ("start", "steps", "batch", "rate", "top", "measured")}
    given.output.mkdir(parents=True, exist_ok=True)
    if path.exists() and (was := json.loads(path.read_text())) != now:
        differ = ", ".join(f"{key} was {was[key]}" for key in now if was[key] != now[key])
        raise CutawayError(f"{given.output} holds another comparison: {differ}. Choose another folder with -o.")
    write_text(path, json.dumps(now, indent=1) + "\n")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sst2", type=Path, required=True, help="the folder with train.tsv and test.tsv")
    parser.add_argument("-o", "--output", type=Path, default=Path("few-labels"), help="what is done is kept here")
    parser.add_argument("--start", default="builtin", help="the model to begin with")
    parser.add_argument("--labels", type=int, nargs="+", default=[100, 500])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rate", type=float, default=3e-4, help="of the plain way")
    parser.add_argument("--top", type=float, default=1e-3, help="of the last layer, where each has its own")
    parser.add_argument("--measured", type=int, default=400, help="so many sentences of the test set")
    given = parser.parse_args(arguments)
    try:
        same_as_before(given)
        for count in given.labels:
            for way in WAYS:
                found = [run(given, way, count, seed) for seed in given.seeds]
                spread = f"± {statistics.stdev(found):.3f}" if len(found) > 1 else ""
                each = " ".join(f"{one:.3f}" for one in found)
                print(f"{count:>5} labels  {way:<28} {statistics.mean(found):.3f} {spread}  ({each})", flush=True)
    except CutawayError as error:
        sys.exit(f"few_labels: {error}")
    except KeyboardInterrupt:
        sys.exit("Stopped. The same command goes on.")


if __name__ == "__main__":
    main()
