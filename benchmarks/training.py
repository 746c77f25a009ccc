"""How fast a model is trained: Cutaway, transformers.Trainer and a plain loop, each in a process of its own.

    python benchmarks/training.py [--shape 10m] [--steps 12] [--rounds 3] [--precision float32] [--threads N] [--json]

The same shape, data (the same rows in the same order), batch, precision and optimiser. Cutaway runs as `cutaway train`
does, metrics and a checkpoint included. A step's time is the median of all steps but the first two of each round; the
contenders take turns, so that a busy machine slows all of them. The peak is the most memory a process has held.
Trainer needs `accelerate` (pip install accelerate); without it, it is left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

SHAPES: dict[str, dict[str, int]] = {
    "tiny": {"vocabulary": 400, "layers": 2, "width": 32, "heads": 2, "context": 32, "batch": 4},
    "10m": {"vocabulary": 8_192, "layers": 6, "width": 320, "heads": 5, "context": 256, "batch": 8},
    "124m": {"vocabulary": 50_257, "layers": 12, "width": 768, "heads": 12, "context": 256, "batch": 4},
}
"""Vocabulary, layers, width, heads, tokens in a row, rows in a batch."""
RATE = 1e-4
UNCOUNTED = 2
"""Steps at the start of a process that find nothing ready yet."""


def write_text(path: Path) -> None:
    """A text of about 2 MB: made-up words, some far more frequent than others, as words are."""
    dice = random.Random(0)
    words = ["".join(dice.choices("etaoinshrdlucmfwypvbg", k=dice.randint(2, 9))) for _ in range(20_000)]
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    lines = (" ".join(dice.choices(words, weights, k=400)) + "." for _ in range(1_000))
    path.write_text("\n<|endoftext|>\n".join(lines), encoding="utf-8")


def recipe_for(folder: Path, shape: str, steps: int, precision: str) -> dict[str, Any]:
    size = SHAPES[shape]
    model = {name: size[name] for name in ("layers", "width", "heads", "context")}
    tokenizer = "gpt2" if size["vocabulary"] == 50_257 else str(folder / f"tokenizer-{shape}")
    how = {"steps": steps, "batch": size["batch"], "learning_rate": RATE, "warm_up": 0, "schedule": "constant"}
    never = {"checkpoint_every": steps, "evaluate_every": 0, "sample_every": 0}
    return {
        "model": {**model, "tokenizer": tokenizer, "dropout": 0.0},
        "data": {"paths": [str(folder / "text.txt")], "cache": str(folder / "cache"), "held_out": 1},
        "train": {**how, **never, "precision": precision},
    }


def prepare(folder: Path, shape: str) -> None:
    """Learn the vocabulary and cut the data into tokens, before any clock runs."""
    from cutaway import Tokenizer
    from cutaway.tasks import Language
    from cutaway.train.data.shards import prepare

    write_text(folder / "text.txt")
    entries = SHAPES[shape]["vocabulary"]
    if entries == 50_257:
        tokenizer = Tokenizer.load("gpt2")
    else:
        tokenizer = Tokenizer.train_files([folder / "text.txt"], entries)
        tokenizer.save(folder / f"tokenizer-{shape}")
    prepare([folder / "text.txt"], tokenizer, Language(), folder / "cache", held_out=1)


def cutaway(folder: Path, shape: str, steps: int, precision: str) -> list[float]:
    """The whole of `cutaway train`, its events timed."""
    from cutaway.train.events import Step
    from cutaway.train.loop import train
    from cutaway.train.recipe import Recipe

    times: list[float] = []

    def hear(event: object) -> None:
        if isinstance(event, Step):
            times.append(time.perf_counter())

    recipe = Recipe.from_dict(recipe_for(folder, shape, steps, precision))
    with tempfile.TemporaryDirectory() as output:
        train(recipe, Path(output) / "model", on_event=hear)
    return times


def rows(folder: Path, shape: str, precision: str, steps: int) -> Any:
    """The batches Cutaway's loop would learn from."""
    import torch

    from cutaway.train import start
    from cutaway.train.data.batches import Batches
    from cutaway.train.distributed import Team
    from cutaway.train.recipe import Recipe

    recipe = Recipe.from_dict(recipe_for(folder, shape, steps, precision))
    ready = start.set_up(recipe, Team(torch.device("cpu")), lambda event: None)
    size = SHAPES[shape]
    batches = Batches(ready.dataset.train, size["batch"], size["context"], seed=0)
    return len(ready.tokenizer), map(ready.task.collate, batches)


def trainer(folder: Path, shape: str, steps: int, precision: str) -> list[float]:
    """transformers' GPT-2 and its Trainer, with nothing but training switched on."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

    size = SHAPES[shape]
    vocabulary, batches = rows(folder, shape, precision, steps)
    examples = [
        {"input_ids": row, "labels": row}
        for _, batch in zip(range(steps), batches, strict=False)
        for row in batch.tensors["inputs"]
    ]
    torch.manual_seed(0)
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=vocabulary, n_positions=size["context"], n_embd=size["width"], n_layer=size["layers"],
            n_head=size["heads"], resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, bos_token_id=0, eos_token_id=0,
            loss_type="ForCausalLM",
        )
    )  # fmt: skip
    times: list[float] = []

    class Clock(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, *_: Any, **__: Any) -> None:
            times.append(time.perf_counter())

    with tempfile.TemporaryDirectory() as output:
        arguments = TrainingArguments(
            output_dir=output, max_steps=steps, per_device_train_batch_size=size["batch"], learning_rate=RATE,
            lr_scheduler_type="constant", weight_decay=0.1, adam_beta2=0.95, logging_strategy="no",
            save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True, bf16=precision == "bfloat16",
        )  # fmt: skip
        Trainer(model=model, args=arguments, train_dataset=examples, callbacks=[Clock()]).train()
    return times


def plain(folder: Path, shape: str, steps: int, precision: str) -> list[float]:
    """Our model in the ten lines everybody writes."""
    import torch

    from cutaway.models.gpt2.model import GPT
    from cutaway.models.gpt2.shape import Config

    size = SHAPES[shape]
    vocabulary, batches = rows(folder, shape, precision, steps)
    torch.manual_seed(0)
    model = GPT(
        Config(vocabulary=vocabulary, **{name: size[name] for name in ("layers", "width", "heads", "context")})
    ).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    times: list[float] = []
    for _, batch in zip(range(steps), batches, strict=False):
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            logits = model(batch.tensors["inputs"])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), batch.tensors["targets"].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        loss.item()
        times.append(time.perf_counter())
    return times


CONTENDERS = {"cutaway": cutaway, "transformers.Trainer": trainer, "plain loop": plain}


def contender(name: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """One contender in a process of its own: the seconds of each step that counts, and the peak in bytes."""
    command = [sys.executable, __file__, "--run", name, "--folder", str(folder), "--shape", options.shape]
    command += ["--steps", str(options.steps), "--precision", options.precision]
    environment = os.environ | {"OMP_NUM_THREADS": str(options.threads), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"{name} failed:\n{done.stderr[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def run(name: str, folder: Path, options: argparse.Namespace) -> None:
    times = CONTENDERS[name](folder, options.shape, options.steps, options.precision)
    spent = [later - earlier for earlier, later in pairwise(times)][UNCOUNTED - 1 :]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(json.dumps({"seconds": spent, "peak": peak}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="10m")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--run", choices=CONTENDERS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run(options.run, options.folder, options)
        return
    names = [name for name in CONTENDERS if name != "transformers.Trainer" or importlib.util.find_spec("accelerate")]
    seconds: dict[str, list[float]] = {name: [] for name in names}
    peaks: dict[str, int] = dict.fromkeys(names, 0)
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), options.shape)
        for _ in range(options.rounds):
            for name in names:
                found = contender(name, Path(folder), options)
                seconds[name] += found["seconds"]
                peaks[name] = max(peaks[name], found["peak"])
    tokens = SHAPES[options.shape]["batch"] * SHAPES[options.shape]["context"]
    speeds = {name: tokens / statistics.median(seconds[name]) for name in names}
    if options.json:
        print(json.dumps({name: {"tokens_per_second": speeds[name], "peak": peaks[name]} for name in names}))
        return
    size = SHAPES[options.shape]
    print(f"{options.shape}: {', '.join(f'{name} {value:,}' for name, value in size.items())}")
    print(f"{options.precision}, {options.threads} threads, {platform.processor() or platform.machine()}\n")
    print(f"{'':22}{'tokens/s':>10}{'of Cutaway':>12}{'peak MB':>10}")
    for name in names:
        share = speeds[name] / speeds["cutaway"]
        print(f"{name:22}{speeds[name]:>10,.0f}{share:>12.2f}{peaks[name] / 1e6:>10,.0f}")


if __name__ == "__main__":
    main()
