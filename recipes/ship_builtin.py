"""Put a trained model into the package as the one that ships: float16, with its tokenizer and recommended settings.

    python recipes/ship_builtin.py exhibit-training/model

The card (README.md there) is written by hand, from what benchmarks/exhibits.py measures.
"""

from __future__ import annotations

import argparse
import pathlib

import torch

import cutaway
from cutaway import checkpoint

BUILTIN = pathlib.Path(cutaway.__file__).parent / "data" / "builtin"
MOST = 20_000_000
"""Bytes of all files that ship."""
RECOMMENDED = {"temperature": 0.8, "top_k": 40}
"""How it writes best: see the card."""


def ship(model: pathlib.Path, folder: pathlib.Path = BUILTIN, most: int = MOST) -> None:
    lm = cutaway.load(model)
    checkpoint.write(lm.model, lm.tokenizer, folder, torch.float16, recommended=RECOMMENDED)
    size = sum(path.stat().st_size for path in folder.iterdir())
    if size > most:
        raise SystemExit(f"{folder} is {size / 1e6:.1f} MB, and at most {most / 1e6:.0f} MB may ship.")
    print(f"{folder}: {size / 1e6:.1f} MB, {sum(one.numel() for one in lm.model.parameters()):,} weights")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, help="the model to ship: the `model` folder of a training")
    ship(parser.parse_args().model)


if __name__ == "__main__":
    main()
