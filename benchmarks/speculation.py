"""What guessing ahead is worth: the same tokens read with look-up and without, in text that repeats itself or not.

    python benchmarks/speculation.py [--size gpt2] [--weights int8] [--tokens 192] [--rounds 5] [--json]

Random weights of GPT-2's shape do the work of real ones; the texts' tokens are given, so that both read the very same.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

from cutaway.bench.run import random_weights
from cutaway.models.gpt2.shape import SIZES
from cutaway.runtime.native.engine import Engine
from cutaway.text.tokenizer import Tokenizer

PROSE = (Path(__file__).parents[1] / "docs" / "generation.md").read_text(encoding="utf-8")
PHRASE = "The robot must obey the orders given it by human beings, except where such orders would conflict. "


def seconds(engine: Engine, ids: list[int], prompt: int, look_up: bool) -> float:
    """How long it takes to write these tokens after the first `prompt` of them."""
    engine.look_up = look_up
    batch = engine.open()
    batch.add([ids[:prompt]])
    begun = time.perf_counter()
    for token in ids[prompt:]:
        batch.step([token])
    return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="gpt2", choices=SIZES)
    parser.add_argument("--weights", default="int8")
    parser.add_argument("--tokens", type=int, default=192)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    engine, tokenizer = Engine(random_weights(SIZES[asked.size], asked.weights)), Tokenizer.load("gpt2")
    prompt = 64
    texts = {
        "repeats": (tokenizer.encode(PHRASE) * 100)[: prompt + asked.tokens],
        "does not": tokenizer.encode(PROSE)[: prompt + asked.tokens],
    }
    ratios: dict[str, list[float]] = {name: [] for name in texts}
    for count in range(asked.rounds + 1):  # the first warms up
        for name, ids in texts.items():
            ratio = seconds(engine, ids, prompt, look_up=False) / seconds(engine, ids, prompt, look_up=True)
            if count:
                ratios[name].append(ratio)
    found = {name: statistics.median(values) for name, values in ratios.items()}
    if asked.json:
        print(json.dumps({"size": asked.size, "weights": asked.weights, "speed_with_look_up": found}))
        return
    for name, ratio in found.items():
        low, high = min(ratios[name]), max(ratios[name])
        print(f"text that {name:<9} {ratio:5.2f} x as fast with look-up ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
