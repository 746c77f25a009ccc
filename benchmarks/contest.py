"""The contest: four machines learn to translate from the same pairs, and are asked the same sentences.

    python benchmarks/contest.py [--data multi30k] [--target fr] [-o contest] [--steps 1400] [--seeds 0 1 2]
                                 [--kinds plain attention transformer gpt2] [--test 1000] [--beams 4]
                                 [--set KEY=VALUE] [--json] [--ship]

A recurrent network without attention, one with it, the Transformer (encoder and decoder), and GPT-2's decoder alone:
each by its own recipe (recipes/multi30k*.toml), with the rates and regularisation that suit it. The budget is the same
pairs, the same vocabulary and the same number of steps of 64 pairs, so that each reads the same tokens, in an order
that the seed decides. The processor time it took is measured and told; it is not the budget, which would depend on the
machine then, and a run could not be repeated or resumed exactly. A seed decides the weights at the beginning, too.

BLEU is sacrebleu's on the test set, the mean over the seeds; its interval (95 %) is a bootstrap of 1,000 resamples of
the sentences and of the seeds, the same sentences for all. The output folder gets every model, its translations,
results.json, contest.md and contest.svg. What is finished is kept: stopped and started again, it goes on where it was.
--ship puts the numbers into the package as well (src/cutaway/data/contest), where the explorer's page Contest shows
them; given with a contest that is done, it does only that.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

import cutaway
from cutaway import checkpoint
from cutaway.atomic import write_text
from cutaway.errors import CutawayError
from cutaway.inspect.contest import RESULTS
from cutaway.models.architecture import count_parameters
from cutaway.tasks import Translation, load_task
from cutaway.train.loop import train
from cutaway.train.picture import HEIGHT, LEFT, RIGHT, TOP, WIDTH, frame, nice_ticks
from cutaway.train.recipe import Recipe, located

RECIPES = Path(__file__).resolve().parents[1] / "recipes"
LANGUAGES = {"fr": "French", "de": "German"}
KINDS = {
    "plain": ("recurrent", "multi30k-rnn-plain.toml"),
    "attention": ("recurrent, with attention", "multi30k-rnn-attention.toml"),
    "transformer": ("encoder and decoder", "multi30k-transformer.toml"),
    "gpt2": ("decoder only", "multi30k.toml"),
}
"""What each is called, and its recipe."""
RESAMPLES = 1_000


@dataclass(frozen=True)
class Contest:
    """Everything that decides the numbers."""

    data: str
    target: str
    kinds: tuple[str, ...]
    steps: int
    seeds: tuple[int, ...]
    test: int
    """How many sentences of the test set; 0 takes all."""
    beams: int
    changes: tuple[str, ...]


class Stopped(Exception):
    """Somebody asked to stop; what was done is kept."""


def tell(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def file(asked: Contest, name: str, language: str) -> Path:
    """A file of the data, compressed or not."""
    paths = [Path(asked.data) / f"{name}.{language}{end}" for end in (".gz", "")]
    for path in paths:
        if path.is_file():
            return path
    raise CutawayError(
        f"{paths[0]} is missing: the contest needs {name} in English and {asked.target} (--data FOLDER)."
    )


def lines(path: Path) -> list[str]:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8").splitlines()


def pairs(asked: Contest) -> list[dict[str, str]]:
    """The sentences that are asked, with their translations."""
    both = [lines(file(asked, "test_2016_flickr", language)) for language in ("en", asked.target)]
    if len(both[0]) != len(both[1]):
        raise CutawayError(f"The test set has {len(both[0])} English sentences and {len(both[1])} translations.")
    return [{"source": a, "target": b} for a, b in zip(*both, strict=True)][: asked.test or None]


def recipe_for(asked: Contest, output: Path, kind: str, seed: int) -> Recipe:
    """How one of them learns: by its recipe, for the budget of all."""
    paths = [str(file(asked, "train", language)) for language in ("en", asked.target)]
    given = [f"data.paths={json.dumps(paths)}", f"data.cache={json.dumps(str(output / 'cache'))}"]
    recipe = Recipe.load(RECIPES / KINDS[kind][1], [*given, *asked.changes])
    often = max(1, asked.steps // 10)
    return recipe.but({"train": {
        "steps": asked.steps, "seed": seed, "evaluate_every": often, "checkpoint_every": often, "sample_every": 0,
    }})  # fmt: skip


def run(asked: Contest, output: Path, kind: str, seed: int) -> dict[str, Any]:
    """One of them trained and asked; done before, it is only read."""
    folder = output / "runs" / f"{kind}-seed-{seed}"
    kept, spent = folder / "result.json", folder / "seconds.json"
    if kept.exists():
        return dict(json.loads(kept.read_text()))
    recipe, before = recipe_for(asked, output, kind, seed), time.process_time()
    report = folder / "report.json"
    if not (report.exists() and json.loads(report.read_text())["reason"] == "done"):
        ended = train(recipe, folder, resume=True).reason == "done"
        seconds = (json.loads(spent.read_text()) if spent.exists() else 0.0) + time.process_time() - before
        write_text(spent, json.dumps(seconds))
        if not ended:
            raise Stopped
    lm, task, records = cutaway.load(folder), load_task(folder), pairs(asked)
    assert isinstance(task, Translation)
    answers = [one.text for one in task.answer(lm, records, asked.beams)]
    trained = json.loads(report.read_text())
    found = {
        "kind": kind, "seed": seed, "weights": count_parameters(checkpoint.read_config(folder)),
        "tokens": trained["tokens"], "held_loss": trained["held_loss"],
        "seconds": json.loads(spent.read_text()) if spent.exists() else None,
        "bleu": score(counts(answers, records)), "answers": answers,
    }  # fmt: skip
    write_text(kept, json.dumps(found, ensure_ascii=False))
    tell(f"{KINDS[kind][0]}, seed {seed}: BLEU {found['bleu']:.1f}")
    return found


def counts(answers: Sequence[str], records: Sequence[Mapping[str, str]]) -> np.ndarray:
    """What BLEU adds up, for each sentence: right n-grams, all n-grams, both lengths. [sentence, 10]"""
    from sacrebleu.metrics import BLEU

    metric = BLEU(effective_order=True)
    found = [metric.sentence_score(one, [record["target"]]) for one, record in zip(answers, records, strict=True)]
    return np.array([[*one.counts, *one.totals, one.sys_len, one.ref_len] for one in found])


def score(table: np.ndarray) -> float:
    """BLEU of a corpus of these sentences."""
    from sacrebleu.metrics import BLEU

    sums = [int(one) for one in table.sum(0)]
    found: float = BLEU.compute_bleu(sums[:4], sums[4:8], sums[8], sums[9], smooth_method="exp").score
    return found


def interval(tables: Sequence[np.ndarray], seed: int = 0) -> tuple[float, float]:
    """Where 95 % of the means lie, if other sentences and other seeds had been drawn."""
    dice = np.random.default_rng(seed)
    means = []
    for _ in range(RESAMPLES):
        sentences = dice.integers(len(tables[0]), size=len(tables[0]))  # the same for all that are asked with this seed
        drawn = dice.integers(len(tables), size=len(tables))
        means.append(statistics.mean(score(tables[one][sentences]) for one in drawn))
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def summary(asked: Contest, runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One line for each of them."""
    records, found = pairs(asked), []
    for kind in asked.kinds:
        own = [one for one in runs if one["kind"] == kind]
        spent = [one["seconds"] for one in own if one["seconds"] is not None]
        found.append({
            "kind": kind, "name": KINDS[kind][0], "weights": own[0]["weights"], "tokens": own[0]["tokens"],
            "seconds": statistics.mean(spent) if spent else None, "each": [one["bleu"] for one in own],
            "bleu": statistics.mean(one["bleu"] for one in own),
            "interval": interval([counts(one["answers"], records) for one in own]),
        })  # fmt: skip
    return found


def table(asked: Contest, rows: Sequence[Mapping[str, Any]]) -> str:
    """The results as Markdown."""
    head = "| machine | weights | tokens read | processor minutes | BLEU | 95 % | each seed |"
    made = [head, "|---|---|---|---|---|---|---|"]
    for one in rows:
        minutes = "" if one["seconds"] is None else f"{one['seconds'] / 60:.1f}"
        low, high = one["interval"]
        each = ", ".join(f"{bleu:.1f}" for bleu in one["each"])
        made.append(
            f"| {one['name']} | {one['weights'] / 1e6:.2f} M | {one['tokens'] / 1e6:.2f} M | {minutes} | "
            f"{one['bleu']:.1f} | {low:.1f} to {high:.1f} | {each} |"
        )
    return "\n".join(made)


def picture(asked: Contest, rows: Sequence[Mapping[str, Any]]) -> str:
    """A bar for each, the interval on it as a line, a dot for each seed."""
    bottom, wide = HEIGHT - 60, (WIDTH - LEFT - RIGHT) / len(rows)
    highest = max(1.0, *(max(one["interval"][1], *one["each"]) for one in rows))
    ticks = nice_ticks(0, highest * 1.05)
    top = max(ticks[-1], highest * 1.05)

    def y(bleu: float) -> float:
        return bottom - (bottom - TOP - 10) * bleu / top

    drawn = [
        f'<path class="grid" d="M{LEFT} {y(tick):.1f}h{WIDTH - LEFT - RIGHT}"/>'
        f'<text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>'
        for tick in ticks
    ]
    for number, one in enumerate(rows):
        middle, (low, high) = LEFT + wide * (number + 0.5), one["interval"]
        drawn += [
            f'<rect x="{middle - 32:.0f}" y="{y(one["bleu"]):.1f}" width="64" height="{bottom - y(one["bleu"]):.1f}"/>',
            f'<path class="held" d="M{middle:.0f} {y(low):.1f}V{y(high):.1f}"/>',
            *(f'<circle cx="{middle + 18:.0f}" cy="{y(bleu):.1f}" r="3"/>' for bleu in one["each"]),
            f'<text x="{middle:.0f}" y="{bottom + 20}" text-anchor="middle">{escape(one["name"])}</text>',
            f'<text x="{middle:.0f}" y="{bottom + 40}" text-anchor="middle">{one["bleu"]:.1f}</text>',
        ]
    title = f"BLEU after {asked.steps:,} steps of the same pairs, English to {LANGUAGES[asked.target]}"
    return frame(title, "".join(drawn), "rect { fill: #2a6f97; opacity: .35 }")


def shipped(asked: Contest, results: Mapping[str, Any]) -> dict[str, Any]:
    """What the explorer's page Contest shows: the table, without the translations."""
    told = ("kind", "weights", "tokens", "seconds", "bleu", "interval", "each")
    return {
        "target": asked.target, "steps": asked.steps, "seeds": list(asked.seeds), "beams": asked.beams,
        "test": len(results["runs"][0]["answers"]),
        "rows": [{name: one[name] for name in told} for one in results["rows"]],
    }  # fmt: skip


def same_as_before(asked: Contest, output: Path) -> None:
    """A folder holds one contest; more seeds and kinds may be added to it."""
    path, now = output / "contest.json", json.loads(json.dumps(asdict(asked)))
    if path.exists():
        was = json.loads(path.read_text())
        differ = [key for key in now if key not in ("seeds", "kinds", "data") and was[key] != now[key]]
        if differ:
            raise CutawayError(
                f"{output} holds another contest: {', '.join(f'{key} was {was[key]}' for key in differ)}. "
                "Choose another folder with -o."
            )
    output.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(now, indent=1) + "\n")


def contest(asked: Contest, output: Path) -> dict[str, Any]:
    """All of it; a seed for all of them before the next, so that what is there at any time can be compared."""
    pairs(asked)  # refused before anything is trained
    same_as_before(asked, output)
    runs = [run(asked, output, kind, seed) for seed in asked.seeds for kind in asked.kinds]
    rows = summary(asked, runs)
    results = {"contest": asdict(asked), "rows": rows, "runs": runs}
    write_text(output / "results.json", json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    write_text(output / "contest.md", table(asked, rows) + "\n")
    write_text(output / "contest.svg", picture(asked, rows))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="multi30k", help="the folder with train.en.gz, test_2016_flickr.en.gz, ...")
    parser.add_argument("--target", choices=LANGUAGES, default="fr")
    parser.add_argument("-o", "--output", type=Path, default=Path("contest"))
    parser.add_argument("--kinds", choices=KINDS, nargs="+", default=list(KINDS))
    parser.add_argument("--steps", type=int, default=1_400)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--test", type=int, default=0, help="so many sentences of the test set; 0: all")
    parser.add_argument("--beams", type=int, default=4)
    parser.add_argument("--set", dest="changes", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--ship", action="store_true", help="have the explorer show the results")
    given = parser.parse_args()
    try:
        asked = Contest(
            located(given.data, Path()), given.target, tuple(given.kinds), given.steps, tuple(given.seeds), given.test,
            given.beams, tuple(given.changes),
        )  # fmt: skip
        results = contest(asked, given.output.absolute())
    except CutawayError as error:
        sys.exit(f"contest: {error}")
    except (Stopped, KeyboardInterrupt):
        sys.exit("Stopped. The same command goes on.")
    if given.ship:
        RESULTS.parent.mkdir(exist_ok=True)
        write_text(RESULTS, json.dumps(shipped(asked, results), indent=1) + "\n")
    print(json.dumps(results, ensure_ascii=False) if given.json else table(asked, results["rows"]))


if __name__ == "__main__":
    main()
