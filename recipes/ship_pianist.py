"""Put a trained pianist into the package: float16, its task, its recommended settings, its loss curve, and its card.

    python recipes/ship_pianist.py my-pianist --samples 200

Samples are composed from nothing, written as MIDI, and held against the performances that were held out of its training
(by the recipe beside its weights). The card (README.md there) is pianist-card.md, filled with what is measured now.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import shutil
import tempfile
import time
from typing import Any

import torch

import cutaway
from cutaway import checkpoint
from cutaway.evaluate.performances import Performed, evaluate_performances
from cutaway.music.compose import compose
from cutaway.music.events import Events
from cutaway.music.midi import write_midi
from cutaway.tasks import load_task, save_task
from cutaway.train.recipe import Recipe
from cutaway.train.start import prepare_data

HERE = pathlib.Path(__file__).parent
PIANIST = pathlib.Path(cutaway.__file__).parent / "data" / "pianist"
MOST = 16_000_000
"""Bytes of all files that ship."""
RECOMMENDED: dict[str, Any] = {"temperature": 0.95, "top_k": None, "top_p": 0.97}
SECONDS = 30.0
AT_ONCE = 20


def ship(trained: pathlib.Path, folder: pathlib.Path = PIANIST) -> None:
    """The model, as it will be loaded."""
    lm = cutaway.load(trained)
    checkpoint.write_model(lm.model, lm.tokenizer, folder, torch.float16, recommended=RECOMMENDED)
    save_task(load_task(trained), folder)
    shutil.copy(trained / "loss.svg", folder / "loss.svg")


def held_out(trained: pathlib.Path, folder: pathlib.Path) -> int:
    """Write what the training never saw as MIDI files; how many."""
    task = load_task(trained)
    data = prepare_data(Recipe.load(trained / "recipe.toml"), task, task.own_tokenizer(), lambda event: None)
    for number in range(len(data.held)):
        write_midi(Events().decode(int(one) for one in data.held[number][1:]), folder / f"held-{number}.mid")
    return len(data.held)


def perform(lm: cutaway.LanguageModel, count: int, folder: pathlib.Path) -> tuple[float, float, int]:
    """Compose so many, each 30 seconds from nothing; seconds it took, seconds of music, events."""
    took = music = 0.0
    events = 0
    for first in range(0, count, AT_ONCE):
        begun = time.perf_counter()
        found = compose(lm, SECONDS, seed=first, samples=min(AT_ONCE, count - first))
        took += time.perf_counter() - begun
        for one in found:
            music += one.performance.seconds
            events += len(one.ids)
            write_midi(one.performance, folder / f"composed-{first + one.sample:03}.mid")
    return took, music, events


def table(found: Performed) -> str:
    lines = [
        "| | composed: median (5% to 95%) | held out: median (5% to 95%) | composed within the latter |",
        "|---|---|---|---|",
    ]
    for name, own in found.measures.items():
        other = found.reference[name]
        said = [f"{one.middle:.3g} ({one.low:.3g} to {one.high:.3g})" for one in (own, other)]
        lines.append(f"| {name} | {said[0]} | {said[1]} | {found.within[name]:.0%} |")
    return "\n".join(lines)


def main() -> None:
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("trained", type=pathlib.Path)
    about.add_argument("--samples", type=int, default=200)
    about.add_argument("--keep", type=pathlib.Path, help="a folder for the samples and the held-out performances")
    about.add_argument("--before", default="", help="for the card: what it went on from, if not from nothing")
    given = about.parse_args()
    ship(given.trained)
    lm = cutaway.load(PIANIST)
    with tempfile.TemporaryDirectory() as made:
        place = given.keep or pathlib.Path(made)
        composed, others = place / "composed", place / "held-out"
        for one in (composed, others):
            one.mkdir(parents=True, exist_ok=True)
        count = held_out(given.trained, others)
        took, music, events = perform(lm, given.samples, composed)
        found = evaluate_performances(composed, against=others)
    report = json.loads((given.trained / "report.json").read_text())
    words = {
        "weights": f"{sum(one.numel() for one in lm.model.parameters()) / 1e6:.2f}",
        "size": f"{(PIANIST / 'model.safetensors').stat().st_size / 1e6:.1f}",
        "steps": f"{report['step']:,}",
        "trained": f"{report['tokens'] / 1e6:.1f}",
        "minutes": round(report["time"] / 60),
        "held": count,
        "per_event": f"{report['held_loss']:.3f}",
        "per_note": f"{report['metrics']['loss_per_note']:.2f}",
        "samples": given.samples,
        "before": f", after {given.before}" if given.before else "",
        "table": table(found),
        "speed": f"{music / took:.1f}",
        "rate": f"{events / took:,.0f}",
        **{name: f"{getattr(lm.config, name):,}" for name in ("layers", "width", "heads", "context")},
    }
    card = (HERE / "pianist-card.md").read_text(encoding="utf-8")
    for name, value in words.items():
        card = card.replace(f"{{{name}}}", str(value))
    (PIANIST / "README.md").write_text(card, encoding="utf-8")
    size = sum(path.stat().st_size for path in PIANIST.iterdir())
    if size > MOST:
        raise SystemExit(f"{PIANIST} is {size / 1e6:.1f} MB, and at most {MOST / 1e6:.0f} MB may ship.")
    print(f"{PIANIST}: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
