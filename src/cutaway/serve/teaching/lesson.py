"""One job in a process of its own: `python -m cutaway.serve.teaching.lesson FOLDER`.

    FOLDER/
      job.json          what to do: the model to start from, its name, the hyperparameters, the seed
      training.jsonl    what to learn
      validation.jsonl  what to measure it on, if that was given
      model/            the training (see cutaway.train), and in the end the model
      steps/            a model of each checkpoint on the way
      finished.json     how it ended; written last

It runs the one training loop, which goes on from its last checkpoint bit for bit, and tells of it in JSON lines on
standard output. When standard input ends (the server has closed it, or is no more) it saves after the step it is at.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cutaway.atomic import write_text
from cutaway.errors import CutawayError

JOB, MODEL, STEPS, FINISHED = "job.json", "model", "steps", "finished.json"
DATA, VALIDATION = "training.jsonl", "validation.jsonl"
COMMAND = ["-m", "cutaway.serve.teaching.lesson"]
"""What Python is called with, before the folder."""
EPOCHS = 3
"""How often the data is gone through, if nothing is said."""
AGAIN = 0.2
"""Seconds between two looks whether a training that has lost its server has saved and ended."""


def main(folder: Path) -> int:
    """Train what the folder says. 0: it has ended or was stopped; 2: it cannot be done, as the last line tells."""
    gone = threading.Event()
    threading.Thread(target=wait_for_the_end, args=(gone,), daemon=True).start()
    try:
        wait_for_the_other(folder / MODEL / "training", gone)
        learn(folder, gone)
    except CutawayError as error:
        full = "disk is full" in str(error) or "bytes left" in str(error)
        tell("error", message=str(error), kind="full" if full else "mistake")
        return 2
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        tell("error", message="The disk is full. Make room.", kind="full")
        return 2
    except MemoryError:
        tell("error", message="There is not enough memory to train this model on this data.", kind="mistake")
        return 2
    return 0


def wait_for_the_end(gone: threading.Event) -> None:
    while os.read(0, 1024):
        pass
    gone.set()


def tell(event: str, **values: Any) -> None:
    try:
        sys.stdout.write(json.dumps({"event": event, **values}) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the server is no more; we are about to know


def wait_for_the_other(training: Path, gone: threading.Event) -> None:
    """A server that was killed leaves a training that saves and ends by itself: wait for that."""
    from cutaway.train import lock

    while training.is_dir() and not gone.is_set():
        try:
            with lock.held(training):
                return
        except CutawayError:
            time.sleep(AGAIN)


def learn(folder: Path, gone: threading.Event) -> None:
    from cutaway.train import loop, state
    from cutaway.train.events import Evaluated, Event, Prepared, Saved, Step

    output = folder / MODEL
    begun = state.latest(output / "training") is not None or (output / "recipe.toml").is_file()
    recipe = None if begun else recipe_for(folder)
    steps = measured_every = 0
    taken: dict[str, Any] = {}  # a step that is about to be measured: both are told together

    def on_event(event: Event) -> None:
        nonlocal steps, measured_every
        match event:
            case Prepared():
                steps = event.recipe.train.steps
                measured_every = event.recipe.train.evaluate_every if event.recipe.data.validation else 0
                tell("begun", step=event.step, steps=steps, past=past_steps(output, event.step, steps))
            case Step():
                taken.update(asdict(event))
            case Evaluated() if taken:
                taken["held_loss"] = event.held_loss
        if taken and ("held_loss" in taken or not measured_every or taken["step"] % measured_every):
            tell("step", **metrics(taken, steps))
            taken.clear()
        if isinstance(event, Saved) and event.step < steps:
            keep_model(event.folder, output, folder / STEPS / str(event.step))
            tell("checkpoint", step=event.step)

    report = loop.train(recipe, output, resume=True, on_event=on_event, stop=gone.is_set)
    if report.reason == "stopped":
        tell("stopped", step=report.step)
        return
    ended = {"steps": report.step, "tokens": report.tokens, "loss": report.loss, "full_valid_loss": report.held_loss}
    write_text(folder / FINISHED, json.dumps(ended))
    tell("finished")


def metrics(line: dict[str, Any], steps: int) -> dict[str, Any]:
    """A step as OpenAI's events tell it, and a little more."""
    named = {"step": line["step"], "train_loss": line["loss"], "total_steps": steps}
    if "held_loss" in line:
        named["valid_loss"] = line["held_loss"]
    return named | {key: line[key] for key in ("learning_rate", "tokens", "tokens_per_second") if key in line}


def past_steps(output: Path, step: int, steps: int) -> list[dict[str, Any]]:
    """The steps up to the checkpoint that it goes on from: a server that was killed may not have heard of all."""
    from cutaway.train.metrics import read_lines

    lines = read_lines(output / "metrics.jsonl") if step else []
    return [metrics(line, steps) for line in lines if line["step"] <= step]


def recipe_for(folder: Path) -> Any:
    """The recipe of a new job."""
    from cutaway import checkpoint
    from cutaway.checkpoint.locate import locate
    from cutaway.models.architecture import context_of, count_parameters
    from cutaway.serve.teaching.records import task_for
    from cutaway.tasks import task_from
    from cutaway.train.plan import usual_rate
    from cutaway.train.recipe import Recipe

    job = json.loads((folder / JOB).read_text(encoding="utf-8"))
    base, wanted = locate(job["base"]), job["hyperparameters"]
    settings = task_for(next(iter(records(folder))), base)
    validation = folder / VALIDATION
    if validation.is_file():
        other = task_for(next(iter(records(folder, VALIDATION))), base)
        if other["name"] != settings["name"]:
            raise CutawayError(
                f"The validation file has records for the task {other['name']}, and the training file for "
                f"{settings['name']}: both must have the same fields."
            )
    task, shape = task_from(settings), checkpoint.read_config(base)
    rows = sum(1 for _ in records(folder))
    batch = min(16, max(1, rows // 4))
    length = context_of(shape)
    if task.packed:
        tokens = count_tokens(folder, base)
        length = min(length, max(16, tokens // 4))
        rows = max(1, tokens // length)
        batch = min(rows, max(1, 4_096 // length))
    batch = given(wanted, "batch_size", batch)
    if batch > rows:
        raise CutawayError(f"The batch size is {batch:,}, and there are only {rows:,} rows to learn from.")
    steps = -(-given(wanted, "n_epochs", EPOCHS) * rows // batch)
    train: dict[str, Any] = {"steps": steps, "batch": batch, "seed": job["seed"], "sample_every": 0}
    if task.packed:
        train["length"] = length
    if validation.is_file():
        train["evaluate_every"] = -(-steps // 10)  # at each checkpoint
    multiplier = given(wanted, "learning_rate_multiplier", None)
    if multiplier is not None:
        train["learning_rate"] = float(f"{multiplier * usual_rate(count_parameters(shape)) / 10:.2e}")
    return Recipe.from_dict(
        {
            "model": {"from": str(base)},
            "data": {
                "paths": [str((folder / DATA).absolute())],
                "validation": [str(validation.absolute())] if validation.is_file() else [],
                "held_out": 0,
                "cache": str(folder / "cache"),
            },
            "task": settings,
            "train": train,
        }
    )


def given(wanted: dict[str, Any], name: str, otherwise: Any) -> Any:
    value = wanted.get(name, "auto")
    return otherwise if value == "auto" else value


def records(folder: Path, name: str = DATA) -> Iterator[dict[str, Any]]:
    from cutaway.serve.teaching.records import read_records

    with (folder / name).open("rb") as file:
        yield from read_records(file)


def count_tokens(folder: Path, base: Path) -> int:
    from cutaway.text.tokenizer import Tokenizer

    tokenizer = Tokenizer.load(base)
    return sum(len(tokenizer.encode(str(record["text"]))) + 1 for record in records(folder))


def keep_model(saved: Path, output: Path, into: Path) -> None:
    """The weights of a checkpoint as a model of its own."""
    import torch

    from cutaway.tasks import task_from
    from cutaway.train import resuming, state
    from cutaway.train.recipe import Recipe
    from cutaway.train.result import saved_model

    if not into.exists():
        recipe = Recipe.from_dict(state.read_state(saved).recipe)
        with torch.random.fork_rng(devices=[]):
            saved_model(recipe, task_from(recipe.task), resuming.written_tokenizer(output), saved, into)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
