"""What guessing ahead is worth: the same tokens read with guesses and without, in three kinds of text.

    python benchmarks/speculation.py [--size gpt2] [--weights int8] [--tokens 192] [--rounds 5] [--json]

One repeats itself, one does not, and the stories are what the built-in model writes (at its recommended settings):
there its table of n-grams guesses. `--size builtin` reads with that model; for the other sizes random weights of that
shape do the work of real ones. The texts' tokens are given, so that both read the very same.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import cutaway
from cutaway.bench.run import random_weights
from cutaway.models.gpt2.shape import SIZES
from cutaway.runtime.native.engine import Engine
from cutaway.text.tokenizer import Tokenizer

PROSE = (Path(__file__).parents[1] / "docs" / "generation.md").read_text(encoding="utf-8")
PHRASE = "The robot must obey the orders given it by human beings, except where such orders would conflict. "


def seconds(engine: Engine, ids: list[int], prompt: int, guess: bool) -> float:
    """How long it takes to write these tokens after the first `prompt` of them."""
    engine.look_up = guess
    batch = engine.open()
    batch.add([ids[:prompt]])
    begun = time.perf_counter()
    for token in ids[prompt:]:
        batch.step([token])
    return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="gpt2", choices=["builtin", *SIZES])
    parser.add_argument("--weights", default="int8")
    parser.add_argument("--tokens", type=int, default=192)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    builtin = cutaway.load(weights=asked.weights)
    if asked.size == "builtin":
        assert isinstance(builtin.runtime, Engine)
        engine, tokenizer = builtin.runtime, builtin.tokenizer
    else:
        engine, tokenizer = Engine(random_weights(SIZES[asked.size], asked.weights)), Tokenizer.load("gpt2")
        engine.ngrams = builtin.ngrams
    prompt = 64
    stories = [builtin.generate(seed=seed, max_tokens=prompt + asked.tokens, stop=[]).ids for seed in range(6)]
    texts = {
        "repeats": [(tokenizer.encode(PHRASE) * 100)[: prompt + asked.tokens]],
        "does not": [tokenizer.encode(PROSE)[: prompt + asked.tokens]],
        "tells stories": [ids for ids in stories if len(ids) > 2 * prompt],
    }
    ratios: dict[str, list[float]] = {name: [] for name in texts}
    for count in range(asked.rounds + 1):  # the first warms up
        for name, each in texts.items():
            plain, ahead = (sum(seconds(engine, ids, prompt, guess) for ids in each) for guess in (False, True))
            ratio = plain / ahead
            if count:
                ratios[name].append(ratio)
    found = {name: statistics.median(values) for name, values in ratios.items()}
    if asked.json:
        print(json.dumps({"size": asked.size, "weights": asked.weights, "speed_with_guesses": found}))
        return
    for name, ratio in found.items():
        low, high = min(ratios[name]), max(ratios[name])
        print(f"text that {name:<13} {ratio:5.2f} x as fast with guesses ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
