"""The paper's table: absolute positions beside relative attention, same size, data and steps, several seeds.

    python benchmarks/relative_attention.py FOLDER_OF_MIDI OUTPUT [--steps 20000] [--seeds 3] [--piece folder] [--json]

Trains one after the other by the one loop (`cutaway.train`), each resumed where it was if this is run again, and tells
the held-out loss per event and per note. Real sizes take hours on two cores: --steps, --width, --layers and --context
make a small one. Where the folders of the data hold performances of one piece each (ASAP's do), say --piece folder.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

from cutaway.train.events import Report
from cutaway.train.loop import train
from cutaway.train.recipe import Recipe

KINDS = ("absolute", "relative")


def trained(given: argparse.Namespace, positions: str, seed: int) -> Report:
    recipe = Recipe.from_dict(
        {
            "model": {
                "layers": given.layers, "width": given.width, "heads": given.heads, "context": given.context,
                "positions": positions, "dropout": given.dropout,
            },
            "data": {"paths": [str(given.folder)], "held_out": given.held_out},
            "task": {"name": "performance", "piece": given.piece},
            "train": {
                "steps": given.steps, "batch": given.batch, "learning_rate": given.learning_rate, "seed": seed,
                "optimizer": given.optimizer, "sample_every": 0, "evaluate_every": 0,
            },
        }
    )  # fmt: skip
    output = given.output / f"{positions}-{seed}"
    if (output / "report.json").is_file():  # done before
        return Report(**json.loads((output / "report.json").read_text()))
    return train(recipe, output, resume=output.is_dir())


def main() -> None:
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("folder", type=Path)
    about.add_argument("output", type=Path)
    about.add_argument("--piece", default="file", choices=("file", "folder"))
    about.add_argument("--held-out", type=float, default=0.1)
    for name, usual in (
        ("steps", 20_000), ("seeds", 3), ("batch", 8), ("layers", 6), ("width", 256), ("heads", 4), ("context", 1_024),
    ):  # fmt: skip
        about.add_argument(f"--{name}", type=int, default=usual)
    about.add_argument("--learning-rate", type=float, default=6e-4)
    about.add_argument("--optimizer", default="adamw", choices=("adamw", "muon"))
    about.add_argument("--dropout", type=float, default=0.1)
    about.add_argument("--json", action="store_true")
    given = about.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    reports = {kind: [trained(given, kind, seed) for seed in range(given.seeds)] for kind in KINDS}
    table = {
        kind: {
            "per_event": [one.held_loss for one in reports[kind]],
            "per_note": [one.metrics.get("loss_per_note") for one in reports[kind]],
        }
        for kind in KINDS
    }
    if given.json:
        print(json.dumps(table))
        return
    print(
        f"{given.steps:,} steps of {given.batch} x {given.context:,} events, {given.seeds} seeds; nats on held-out data"
    )
    for kind, losses in table.items():
        for what, values in losses.items():
            known = [value for value in values if value is not None]
            apart = f" ± {statistics.stdev(known):.4f}" if len(known) > 1 else ""
            print(f"{kind:<10} {what.replace('_', ' '):<10} {statistics.mean(known):.4f}{apart}")


if __name__ == "__main__":
    main()
