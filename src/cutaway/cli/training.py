"""What a training tells, shown as it happens: on a terminal, in a log, or as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from textwrap import indent
from typing import Any, Self

from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bars
from rich.text import Text

from cutaway.checkpoint.locate import SHIPPED
from cutaway.cli import progress, screen
from cutaway.tasks import task_from
from cutaway.train.events import Evaluated, Event, Finished, Prepared, Progress, Report, Sampled, Step

WORK = {"vocabulary": "learning a vocabulary", "tokens": "cutting the data into tokens"}


class Lines:
    """One JSON object for each thing that happens, on standard output."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, event: Event) -> None:
        screen.show_json({"event": type(event).__name__.lower(), **to_json(event)})


def to_json(event: Event) -> dict[str, Any]:
    if isinstance(event, Prepared):
        rest = {name: getattr(event, name) for name in ("parameters", "learning", "device", "processes", "step")}
        choices = [asdict(choice) for choice in event.choices]
        return {"recipe": event.recipe.to_dict(), "choices": choices, "data": asdict(event.data), **rest}
    values = asdict(event.report if isinstance(event, Finished) else event)
    values |= values.pop("metrics", {})
    return {name: str(value) if isinstance(value, Path) else value for name, value in values.items()}


class Screen:
    """For a person: what was chosen, a line that lives, measurements and samples, and where it all is in the end.

    Where nobody watches, the line that lives is left out, and the others make a log.
    """

    def __init__(self, output: Path):
        self.output, self.verb, self.prompt = output, "", ""
        self.stack = ExitStack()
        self.bars: Callable[[str, int, int], None] | None = None
        self.live: Bars | None = None
        self.last: Step | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def __call__(self, event: Event) -> None:
        match event:
            case Progress():
                self.work(event)
            case Prepared():
                self.begin(event)
            case Step():
                self.last = event
                if self.live is not None:
                    self.live.update(self.live.task_ids[0], total=event.steps, completed=event.step, said=told(event))
            case Evaluated():
                screen.err().print(measured(event, self.last), soft_wrap=True)
            case Sampled():
                self.prompt = event.prompt if event.reference is None else ""
                screen.aside(sample(event))
            case Finished():
                self.end(event.report)

    def work(self, event: Progress) -> None:
        if self.bars is None:
            self.bars = self.stack.enter_context(progress.files())
        self.bars(WORK[event.what], event.done, event.total)

    def begin(self, event: Prepared) -> None:
        self.stack.close()
        self.verb = task_from(event.recipe.task).verb
        for line in plan(event):
            screen.aside(line)
        self.live = self.stack.enter_context(
            Bars(
                BarColumn(bar_width=None, complete_style="green", finished_style="green"),
                TextColumn("{task.fields[said]}", markup=False),
                console=screen.err(),
                transient=True,
                disable=not screen.err().is_terminal or screen.err().is_dumb_terminal,
            )
        )
        self.live.add_task("", total=event.recipe.train.steps, completed=event.step, said="the first step")

    def end(self, report: Report) -> None:
        self.stack.close()
        if report.reason == "stopped":
            screen.aside(f"Stopped and saved after step {report.step:,} of {report.steps:,}.")
            screen.aside(go_on(self.output))
            return
        screen.show(Text(str(report.folder)))
        if report.reason == "patience":
            screen.aside(
                f"Ended early, after step {report.step:,} of {report.steps:,}: the held-out loss was no longer falling."
            )
        screen.aside(result(report))
        beside = ("metrics.jsonl", "samples.jsonl", "loss.svg", "recipe.toml", "report.json", "adapter")
        screen.aside(f"Also in the folder: {', '.join(name for name in beside if (report.folder / name).exists())}")
        begin = f" {shlex.quote(self.prompt)}" if self.prompt else ""
        if self.verb:
            folder = str(report.folder)
            named = f"./{folder}" if folder in SHIPPED else folder  # by its name alone, an included model is meant
            screen.aside(f"Try it: cutaway {self.verb} --model {shlex.quote(named)}{begin}")


def plan(event: Prepared) -> Iterator[str]:
    """What is about to happen: the model, the data, and every choice with its reason."""
    model = event.recipe.model
    shape = f"{model.layers} blocks × {model.width} wide, {model.heads} heads, {model.context:,} positions"
    made = f"going on from {model.from_}" if model.from_ else shape
    learning = "" if event.learning == event.parameters else f", of which {event.learning:,} learn"
    yield f"Model: {made}; {event.parameters:,} parameters{learning}"
    yield from event.data.refused
    yield f"Data: {event.data}"
    for why, group in groupby(event.choices, key=lambda choice: choice.why):
        chosen = ", ".join(f"{choice.key} = {number(choice.value)}" for choice in group)
        yield f"Chosen: {chosen} ({why})"
    processes = "" if event.processes == 1 else f", {event.processes} processes"
    where = f"Resumes after step {event.step:,}" if event.step else "Starts"
    settings = event.recipe.train
    long = f"for {settings.time}, or {settings.steps:,} steps" if settings.time else f"{settings.steps:,} steps"
    yield f"{where}: {long} on {event.device}{processes}"
    if settings.time:
        yield "How many steps fit into this time depends on the machine; with --steps alone, nothing depends on it."


def number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def told(step: Step) -> str:
    """The line that lives."""
    place = f"step {step.step:,} of {step.steps:,} · loss {step.loss:.3f}"
    return f"{place} · {step.tokens_per_second:,.0f} tokens/s · {duration(step.seconds_left)} left"


def measured(event: Evaluated, last: Step | None) -> str:
    """The line that stays, after held-out data was measured."""
    parts = [f"step {event.step:,}"]
    if last is not None and last.step == event.step:
        parts.append(f"loss {last.loss:.3f}")
    parts += held_out(event.held_loss, event.bits_per_byte, event.accuracy, event.metrics)
    if last is not None and last.step < last.steps:
        parts += [f"{last.tokens_per_second:,.0f} tokens/s", f"{duration(last.seconds_left)} left"]
    return " · ".join(parts)


def held_out(loss: float | None, bits: float | None, accuracy: float | None, metrics: Mapping[str, float]) -> list[str]:
    parts = [] if loss is None else [f"held-out loss {loss:.3f}"]
    parts += [] if bits is None else [f"{bits:.3f} bits per byte"]
    parts += [] if accuracy is None else [f"{100 * accuracy:.1f} % right"]
    return parts + [f"{value:.3f} per note" for name, value in metrics.items() if name == "loss_per_note"]


def sample(event: Sampled) -> str:
    """What the model wrote, after what it was given; and what it should have."""
    text = event.prompt + event.text
    text += "" if event.reference is None else f"\n(in the data: {event.reference})"
    return indent(screen.harmless(text), "    ")


def result(report: Report) -> str:
    parts = [f"{report.step:,} steps in {duration(report.time)}"]
    parts += [] if report.loss is None else [f"loss {report.loss:.3f}"]
    parts += held_out(report.held_loss, report.bits_per_byte, report.accuracy, report.metrics)
    parts += [] if report.kept_step == report.step else [f"the best weights, of step {report.kept_step:,}"]
    return " · ".join(parts)


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `1 h 05 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"


def go_on(output: Path) -> str:
    return f"Resume with: cutaway train --resume -o {shlex.quote(str(output))}"


def interrupted(output: Path) -> str:
    """What to say when a training was left before it could save what it was at."""
    from cutaway.train import state

    last = state.latest(output / "training")
    if last is None:
        return "Interrupted before the first checkpoint. Start again with the same command."
    return f"Interrupted. The checkpoint of step {state.read_state(last).step:,} is there. {go_on(output)}"
