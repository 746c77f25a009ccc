"""Transfer learning: a model that has read text learns to summarise from far fewer examples than a new one.

    python benchmarks/transfer.py [--recipe reuters] [--data FOLDER] [-o transfer] [--shares 0.01 0.1 1]
                                  [--steps 50 120 300] [--seeds 0 1 2] [--test 300]
                                  [--starts pretrained stacks scratch]
                                  [--pretrain KEY=VALUE] [--tune KEY=VALUE] [--json]

The claim is that of "Sample Efficient Text Summarization Using a Single Pre-Trained Transformer" (Khandelwal et al.,
2019), as the Illustrated GPT-2 tells it. A decoder learns the articles of train.jsonl as text
(recipes/reuters-text.toml), then to write their headlines (recipes/reuters.toml) with a share of the pairs. Beside it
the same model, with the same vocabulary, learns that from scratch; and an encoder with a decoder, half as many blocks
each and about as many weights, which has read the same articles in as many steps, of each the first half, to write the
second: the same pairs, steps, rates and order. A seed decides the pairs of a share, their order, and a new model's
weights. A tenth of the pairs (200 at most) is not learned from but says which step is kept. Measured on the same pairs
of test.jsonl for all: the loss per token of the headline, and ROUGE of headlines written greedily. recipes/reuters.py
makes the data (or recipes/titles.py, with --recipe titles); --pretrain and --tune change the two recipes, as
`cutaway train --set` does.

The output folder gets every model, results.json, and transfer.svg. What is finished is kept: stopped and started again,
it goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

import torch

import cutaway
from cutaway import checkpoint
from cutaway.errors import CutawayError
from cutaway.evaluate.answers import score_answers
from cutaway.tasks import Summary, load_task
from cutaway.tasks.scores import rouge
from cutaway.train.data.batches import once
from cutaway.train.data.shards import prepare
from cutaway.train.loop import train
from cutaway.train.picture import HEIGHT, TOP, WIDTH, frame, nice_ticks
from cutaway.train.recipe import Recipe, located
from cutaway.train.resuming import write_text

RECIPES = Path(__file__).resolve().parents[1] / "recipes"
LENGTH = 112
"""Tokens of an article and its headline together, in fine-tuning and in use: the first paragraph or two."""
ROOM, BATCH = 24, 16
HELD = 200
"""Of a share of the pairs, a tenth says which step is kept, but never more than these."""
MEASURES = {"loss": "loss per token", "rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
STARTS = {
    "pretrained": "decoder, pre-trained",
    "stacks": "encoder and decoder, pre-trained",
    "scratch": "decoder, from scratch",
}
LINES = {"pretrained": "train", "stacks": "both", "scratch": "held"}
"""The class of each in the picture."""


@dataclass(frozen=True)
class Experiment:
    """Everything that decides the numbers."""

    data: str
    shares: tuple[float, ...]
    steps: tuple[int, ...]
    """For each share, the same with and without pre-training."""
    seeds: tuple[int, ...]
    test: int
    pretrain: tuple[str, ...]
    tune: tuple[str, ...]
    recipe: str = "reuters"
    starts: tuple[str, ...] = tuple(STARTS)


class Stopped(Exception):
    """Somebody asked to stop; what was done is kept."""


def read(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_lines(path: Path, records: Sequence[Mapping[str, str]]) -> None:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, "".join(json.dumps(record) + "\n" for record in records))


def tell(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def learn(recipe: Recipe, folder: Path) -> None:
    """Train, or go on training, unless it is done."""
    if (folder / "report.json").exists() and json.loads((folder / "report.json").read_text())["reason"] == "done":
        return
    if train(recipe, folder, resume=True).reason != "done":
        raise Stopped


def text_recipe(asked: Experiment, output: Path) -> Recipe:
    """How the articles are read."""
    paths = json.dumps([str(Path(asked.data) / "train.jsonl")])
    cache = json.dumps(str(output / "cache"))
    changes = [f"data.paths={paths}", f"data.cache={cache}", "train.sample_every=0", *asked.pretrain]
    return Recipe.load(RECIPES / f"{asked.recipe}-text.toml", changes)


def pretrain(asked: Experiment, output: Path) -> None:
    """The models that have read the articles: a decoder; and an encoder with a decoder, with the same vocabulary."""
    text = text_recipe(asked, output)
    learn(text, output / "pretrained")
    if "stacks" not in asked.starts:
        return
    path = output / "pairs" / "halves.jsonl"
    write_lines(path, [halves(pair["article"]) for pair in read(Path(asked.data) / "train.jsonl")])
    shape = checkpoint.read_config(output / "pretrained")
    model = {
        "from": "", "kind": "transformer", "tokenizer": str(output / "pretrained"), "layers": max(1, shape.layers // 2),
        "width": shape.width, "heads": shape.heads, "context": shape.context, "shape": {"norm": "pre"},
    }  # fmt: skip
    data = {"cache": str(output / "cache"), "held_out": text.data.held_out}
    said = [f"data.paths={json.dumps([str(path)])}", f"task.room={shape.context // 2}"]
    pairs = Recipe.load(RECIPES / f"{asked.recipe}.toml", said)
    same = {name: value for name, value in asdict(text.train).items() if f"train.{name}" in text.set_keys}
    learn(pairs.but({"model": model, "data": data, "train": same}), output / "stacks")


def halves(article: str) -> dict[str, str]:
    """The first half of an article's words as what is read, the second as what is written."""
    words = article.split()
    middle = (len(words) + 1) // 2
    return {"article": " ".join(words[:middle]), "summary": " ".join(words[middle:])}


def share_of(pairs: Sequence[dict[str, str]], share: float, seed: int) -> list[dict[str, str]]:
    """So many of the pairs, chosen by the seed; a smaller share is part of a larger one."""
    order = random.Random(seed).sample(range(len(pairs)), len(pairs))
    return [pairs[number] for number in order[: max(10, round(share * len(pairs)))]]


def recipe_for(asked: Experiment, output: Path, start: str, share: float, seed: int) -> tuple[Recipe, int]:
    """How one run learns, and from how many pairs."""
    base = output / ("stacks" if start == "stacks" else "pretrained")
    pairs = share_of(read(Path(asked.data) / "train.jsonl"), share, seed)
    path = output / "pairs" / f"{share:g}-seed-{seed}.jsonl"
    write_lines(path, pairs)
    steps = asked.steps[asked.shares.index(share)]
    changes = [f"train.batch={BATCH}", f"train.length={LENGTH}", f"task.room={ROOM}", *asked.tune]
    recipe = Recipe.load(RECIPES / f"{asked.recipe}.toml", [f"data.paths={json.dumps([str(path)])}", *changes])
    shape = checkpoint.read_config(base)
    new = {name: getattr(shape, name) for name in ("layers", "width", "heads", "context")}
    model = {"from": "", "tokenizer": str(base), **new} if start == "scratch" else {"from": str(base)}
    often = max(1, steps // 10)
    how = {"steps": steps, "seed": seed, "keep": "best", "evaluate_every": often, "sample_every": 0}
    held = max(2, min(HELD, len(pairs) // 10))
    data = {"held_out": held, "seed": 0, "cache": str(output / "cache")}
    return recipe.but({"model": model, "data": data, "train": {**how, "checkpoint_every": steps}}), len(pairs)


def measure(folder: Path, asked: Experiment, output: Path) -> dict[str, float]:
    """The loss on the test's headlines, and ROUGE of the model's own."""
    lm, task = cutaway.load(folder), load_task(folder)
    assert isinstance(task, Summary)
    records = read(Path(asked.data) / "test.jsonl")[: asked.test]
    path = output / "pairs" / f"test-{asked.test}.jsonl"
    write_lines(path, records)
    test = prepare([path], lm.tokenizer, task, output / "cache", held_out=0).train
    total = count = 0.0
    with torch.inference_mode():
        for examples in once(test, 16, LENGTH):
            batch = task.collate(examples)
            total += task.loss(lm.model, batch.tensors).sum.item()
            count += batch.count
    score = score_answers(lm, task, records, beams=1)
    return {"loss": total / count, **parts(score.parts)}


def parts(named: Mapping[str, float]) -> dict[str, float]:
    return {"rouge1": named["ROUGE-1"], "rouge2": named["ROUGE-2"], "rougeL": named["ROUGE-L"]}


def lead(asked: Experiment) -> dict[str, Any]:
    """What needs no model: the first words of the article, as many as headlines have in the mean."""
    pairs, test = read(Path(asked.data) / "train.jsonl"), read(Path(asked.data) / "test.jsonl")[: asked.test]
    words = round(statistics.mean(len(pair["summary"].split()) for pair in pairs))
    first = [" ".join(pair["article"].split()[:words]) for pair in test]
    return {"words": words, **parts(rouge(first, [pair["summary"] for pair in test]).parts)}


def run(asked: Experiment, output: Path, start: str, share: float, seed: int) -> dict[str, Any]:
    """One fine-tuning, measured; done before, it is only read."""
    folder = output / "runs" / f"{start}-{share:g}-seed-{seed}"
    if (folder / "result.json").exists():
        return dict(json.loads((folder / "result.json").read_text()))
    begun = time.perf_counter()
    recipe, pairs = recipe_for(asked, output, start, share, seed)
    learn(recipe, folder)
    report = json.loads((folder / "report.json").read_text())
    found = {
        "start": start, "share": share, "seed": seed, "pairs": pairs, "steps": recipe.train.steps,
        "kept_step": report["kept_step"], **measure(folder, asked, output), "seconds": time.perf_counter() - begun,
    }  # fmt: skip
    write_text(folder / "result.json", json.dumps(found))
    tell(f"{STARTS[start]}, {share:.0%} of the pairs, seed {seed}: {shown(found)} ({found['seconds']:.0f} s)")
    return found


def shown(found: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {found[key]:.2f}" for key, name in MEASURES.items())


def spread(runs: Sequence[Mapping[str, Any]], start: str, share: float, key: str) -> tuple[float, float]:
    """The mean over the seeds, and the standard deviation between them."""
    values = [one[key] for one in runs if one["start"] == start and one["share"] == share]
    return statistics.mean(values), statistics.stdev(values) if len(values) > 1 else 0.0


def table(asked: Experiment, runs: Sequence[Mapping[str, Any]], first: Mapping[str, Any]) -> str:
    """Markdown: a row for each share and start."""
    lines = [f"| pairs | start | {' | '.join(MEASURES.values())} |", f"|---|---|{'---|' * len(MEASURES)}"]
    for share in asked.shares:
        pairs = next(one["pairs"] for one in runs if one["share"] == share)
        for start in asked.starts:
            cells = [spread(runs, start, share, key) for key in MEASURES]
            numbers = " | ".join(f"{mean:.2f} ± {deviation:.2f}" for mean, deviation in cells)
            lines.append(f"| {pairs:,} ({share:.0%}) | {STARTS[start]} | {numbers} |")
    lead_numbers = " | ".join(f"{first[key]:.2f}" for key in MEASURES if key != "loss")
    lines.append(f"| none | the article's first {first['words']} words | | {lead_numbers} |")
    return "\n".join(lines)


def picture(asked: Experiment, runs: Sequence[Mapping[str, Any]], first: Mapping[str, Any]) -> str:
    """Two panels, loss and ROUGE-1 over the share of the pairs: a dot for each seed, a line through the means."""
    panels = [panel(asked, runs, "loss", 56, None), panel(asked, runs, "rouge1", 56 + WIDTH // 2, first["rouge1"])]
    names = "".join(
        f'<path class="{LINES[start]}" d="M{at} 42h22"/><text x="{at + 28}" y="46">{STARTS[start]}</text>'
        for at, start in zip(range(56, WIDTH, 240), asked.starts, strict=False)
    )
    style = (
        ".lead { stroke: #888; stroke-dasharray: 4 4 } .dot-train { fill: #2a6f97 } "
        ".both { stroke: #4f772d; stroke-width: 2 } .dot-both { fill: #4f772d } "
        "@media (prefers-color-scheme: dark) { .dot-train { fill: #61b0d6 } .both { stroke: #90be6d } "
        ".dot-both { fill: #90be6d } }"
    )
    return frame("Headlines learned with and without pre-training", "".join([*panels, names]), style)


def panel(asked: Experiment, runs: Sequence[Mapping[str, Any]], key: str, left: float, line: float | None) -> str:
    wide, top, bottom = WIDTH / 2 - 90, TOP + 34, HEIGHT - 62
    values = [one[key] for one in runs] + ([line] if line is not None else [])
    room = (max(values) - min(values) or 1) * 0.08
    ticks = nice_ticks(min(values) - room, max(values) + room)
    low, high = min(min(values) - room, ticks[0]), max(max(values) + room, ticks[-1])

    def x(share: float) -> float:
        return left + wide * (asked.shares.index(share) + 0.5) / len(asked.shares)

    def y(value: float) -> float:
        return top + (bottom - top) * (high - value) / (high - low)

    def across(value: float, kind: str) -> str:
        return f'<path class="{kind}" d="M{left} {y(value):.1f}h{wide:.0f}"/>'

    drawn = [f'<text x="{left}" y="{TOP + 22}">{escape(MEASURES[key])}</text>']
    for tick in ticks:
        label = f'<text x="{left - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>'
        drawn.append(across(tick, "grid") + label)
    if line is not None:
        drawn.append(across(line, "lead"))
        drawn.append(f'<text x="{left + 4}" y="{y(line) - 6:.1f}">the first words of the article</text>')
    for share in asked.shares:
        drawn.append(f'<text x="{x(share):.1f}" y="{bottom + 20}" text-anchor="middle">{share:.0%}</text>')
    for start, kind in ((start, LINES[start]) for start in reversed(asked.starts)):
        means = [(x(share), y(spread(runs, start, share, key)[0])) for share in asked.shares]
        drawn.append(f'<path class="{kind}" d="M{"L".join(f"{a:.1f} {b:.1f}" for a, b in means)}"/>')
        some = [one for one in runs if one["start"] == start]
        drawn += [
            f'<circle class="dot-{kind}" cx="{x(one["share"]):.1f}" cy="{y(one[key]):.1f}" r="3"/>' for one in some
        ]
    middle = left + wide / 2
    drawn.append(f'<text x="{middle:.0f}" y="{HEIGHT - 16}" text-anchor="middle">share of the pairs</text>')
    return "".join(drawn)


def same_as_before(asked: Experiment, output: Path) -> None:
    """A folder holds one experiment; more seeds may be added to it."""
    path, now = output / "experiment.json", json.loads(json.dumps(asdict(asked)))
    if path.exists():
        was = json.loads(path.read_text())
        differ = [key for key in now if key not in ("seeds", "data") and was.get(key) != now[key]]
        if differ:
            raise CutawayError(
                f"{output} holds another experiment: {', '.join(f'{key} was {was.get(key)}' for key in differ)}. "
                "Choose another folder with -o."
            )
    output.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(now, indent=1) + "\n")


def experiment(asked: Experiment, output: Path) -> dict[str, Any]:
    """All of it: pre-training, then every run; the results, also written to the folder."""
    same_as_before(asked, output)
    pretrain(asked, output)
    held_loss = json.loads((output / "pretrained" / "report.json").read_text())["held_loss"]
    tell(f"pre-trained: {held_loss:.3f} nats per token of held-out articles")
    runs = [
        run(asked, output, start, share, seed)
        for seed in asked.seeds
        for share in asked.shares
        for start in asked.starts
    ]
    results = {"experiment": asdict(asked), "pretrained_held_loss": held_loss, "lead": lead(asked), "runs": runs}
    write_text(output / "results.json", json.dumps(results, indent=1) + "\n")
    write_text(output / "transfer.svg", picture(asked, runs, results["lead"]))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="reuters", choices=("titles", "reuters"), help="whose two recipes are used")
    parser.add_argument("--data", help="the folder with train.jsonl and test.jsonl [default: the recipe's name]")
    parser.add_argument("--starts", nargs="+", choices=STARTS, default=list(STARTS))
    parser.add_argument("-o", "--output", type=Path, default=Path("transfer"))
    parser.add_argument("--shares", type=float, nargs="+", default=[0.01, 0.1, 1.0])
    parser.add_argument("--steps", type=int, nargs="+", default=[50, 120, 300])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--test", type=int, default=300)
    parser.add_argument("--pretrain", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--tune", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if len(options.steps) != len(options.shares):
        parser.error("--steps needs a number for each of --shares")
    try:
        asked = Experiment(
            located(options.data or options.recipe, Path()), tuple(options.shares), tuple(options.steps),
            tuple(options.seeds), options.test, tuple(options.pretrain), tuple(options.tune), options.recipe,
            tuple(options.starts),
        )  # fmt: skip
        results = experiment(asked, options.output.absolute())
    except CutawayError as error:
        sys.exit(f"transfer: {error}")
    except (Stopped, KeyboardInterrupt):
        sys.exit("Stopped. The same command goes on.")
    print(json.dumps(results) if options.json else table(asked, results["runs"], results["lead"]))


if __name__ == "__main__":
    main()
