"""The loop: one for all tasks and models, from the first step or from a checkpoint, bit for bit the same either way."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from cutaway.errors import CutawayError
from cutaway.models.architecture import body
from cutaway.tasks import Arrays, Batch, Record
from cutaway.train import distributed, memory, resuming, state
from cutaway.train.data.batches import Batches, once
from cutaway.train.data.order import key
from cutaway.train.distributed import Team
from cutaway.train.events import Evaluated, Event, Finished, Prepared, Report, Saved, Step
from cutaway.train.learner import Learner, prepare_blocks
from cutaway.train.metrics import Lines, TensorBoard
from cutaway.train.model import build_model
from cutaway.train.optimizer import (
    clip,
    hold_frozen,
    learning_rate,
    make_optimizer,
    set_learning_rate,
    thawed,
)
from cutaway.train.pace import Clock, Pace
from cutaway.train.recipe import Recipe
from cutaway.train.result import write_result
from cutaway.train.samples import sample
from cutaway.train.start import Listener, Setup, start
from cutaway.train.state import State
from cutaway.train.teacher import read_teacher
from cutaway.train.threads import computing_in


def train(
    recipe: Recipe | None,
    output: Path | str,
    resume: bool = False,
    on_event: Listener | None = None,
    stop: Callable[[], bool] | None = None,
    device: torch.device | None = None,
    clock: Clock | None = None,
    records: Iterable[Record] | None = None,
) -> Report:
    """Train a model as the recipe says and write it to `output`, a folder that every verb and `transformers` take.

    With `resume` a training that was stopped or killed goes on from its last checkpoint (one that had none yet begins);
    the recipe may then be left out. `on_event` is told what happens (see events.py). When `stop` says so, or at Ctrl-C
    or SIGTERM, the training is saved after the step it is at, and ends. `clock` tells the seconds since all this was
    asked for, if that was before this call; only with `train.time` does the outcome depend on it. `records` in memory
    take the place of the recipe's files; they are kept in the folder.
    """
    output, clock = Path(output), clock or from_now()
    with distributed.team(device) as team, ExitStack() as stack:
        tell = on_event if on_event and team.first else ignore
        stack.enter_context(resuming.claimed(output) if team.first else nullcontext())
        ready, begun = start(recipe, output, resume, team, tell, records)
        stack.enter_context(computing_in(ready.recipe.train.threads))
        with memory.kept() if team.device.type == "cpu" else nullcontext():
            return Run(ready, output, team, tell).go(begun, stop or (lambda: False), clock)


def from_now() -> Clock:
    """A clock that begins now."""
    begun = time.monotonic()
    return lambda: time.monotonic() - begun


def ignore(event: Event) -> None:
    """For whom nobody listens."""


class Run:
    """A training under way, in this process."""

    def __init__(self, ready: Setup, output: Path, team: Team, tell: Listener):
        self.ready, self.output, self.team, self.tell = ready, output, team, tell
        self.settings, self.task, self.data = ready.recipe.train, ready.task, ready.dataset
        teacher = read_teacher(ready.recipe, team.device) if ready.recipe.teacher.from_ else None
        self.learner = Learner(build_model(ready, team, teacher), self.task, teacher)
        prepare_blocks(self.learner.model, self.settings.compile, self.settings.recompute)
        self.module = distributed.shared(self.learner, team, self.settings.shard, self.settings.precision)
        self.optimizer = make_optimizer(self.learner, self.settings)
        state.make_moments(self.optimizer)
        rows, length, seed = self.settings.batch, self.settings.length, self.settings.seed
        self.batches = Batches(self.data.train, rows, length, seed, team.rank, team.world, self.task.varied)
        self.step = self.tokens = 0
        self.loss: float | None = None
        self.best: dict[str, Any] | None = None
        self.measured: Evaluated | None = None
        never = ready.recipe.decided("train.evaluate_every") and not self.settings.evaluate_every
        if self.keeps_best and (never or not self.can_measure):
            patient = self.settings.patience > 0
            key, instead = ("patience", "leave it out") if patient else ("keep = 'best'", "keep the last")
            raise CutawayError(
                f"train.{key} needs regular evaluation on held-out data: "
                f"set data.held_out and train.evaluate_every, or {instead}."
            )

    def go(self, begun: Path | None, stop: Callable[[], bool], clock: Clock) -> Report:
        """Take every step that is left, then write the model."""
        was = self.restore(begun) if begun is not None else None
        if begun is not None and self.team.first:
            resuming.write_anew(self.ready.recipe, begun, self.output)
        size = state.size(self.tensors())
        if self.team.first:
            state.require_room(self.output, 3 * size)
        self.tell(self.prepared())
        self.pace = pace = Pace(
            self.ready.recipe, (lambda: self.team.agree(clock())) if self.settings.time else clock, size,
            self.held_batches(), self.step, was.progress if was else 0.0, was.time if was else 0.0,
        )  # fmt: skip
        asked, ended = False, pace.over() or self.waited_enough
        with interruptible(stop) as interrupted, self.records() as (metrics, samples):
            while not (ended or asked):
                happened, asked = self.take_step(interrupted)
                held = None
                if pace.due("evaluate"):
                    with pace.timed("evaluate"):
                        held = self.measure()
                self.record(metrics, happened, held)
                if pace.due("sample"):
                    with pace.timed("sample"):
                        self.sample(samples)
                ended = pace.over() or self.waited_enough
                if pace.due("checkpoint") or asked or ended:
                    with pace.timed("checkpoint"):
                        self.save()
        return self.finish()

    def take_step(self, interrupted: Callable[[], bool]) -> tuple[Step, bool]:
        """Learn from one batch; what came of it, and whether somebody asked to stop."""
        begun, number = self.pace.clock(), self.step + 1
        torch.manual_seed(key(self.settings.seed, number, self.team.rank))
        parts = self.collate(next(self.batches))
        loss = self.learn(parts)
        total, tokens, stops = self.team.sum(loss, sum(part.tokens for part in parts), interrupted())
        self.pace.advance(number)
        expected = self.pace.expected if self.pace.by_clock else None
        rate, deepest = learning_rate(number, self.settings, expected), thawed(number, self.settings, expected)
        hold_frozen(self.optimizer, deepest)
        loss = total / self.team.world
        length = clip(self.learner.parameters(), self.settings.clip) if math.isfinite(loss) else math.nan
        if not math.isfinite(length):
            raise self.lost(number, rate, loss)
        set_learning_rate(self.optimizer, rate, self.settings.layer_factor, deepest)
        self.optimizer.step()
        self.optimizer.zero_grad()
        speed = tokens / max(1e-9, self.pace.clock() - begun)
        self.step, self.loss = number, loss
        self.tokens += int(tokens)
        pace = self.pace
        return Step(number, pace.steps, loss, self.tokens, speed, rate, length, pace.time, pace.left()), stops > 0

    def collate(self, examples: Sequence[Arrays]) -> list[Batch]:
        """A batch of examples, in parts that go through the model at once."""
        rows = self.settings.at_once * self.data.train.together
        return [self.task.collate(examples[at : at + rows]) for at in range(0, len(examples), rows)]

    def forward(self, part: Batch, scale: float = 1.0) -> tuple[Tensor, dict[str, Tensor]]:
        """Up to the loss, in the precision of the training."""
        tensors = {name: one.to(self.team.device, non_blocking=True) for name, one in part.tensors.items()}
        with torch.autocast(self.team.device.type, torch.bfloat16, enabled=self.settings.precision == "bfloat16"):
            loss: tuple[Tensor, dict[str, Tensor]] = self.module(tensors, scale)
        return loss

    def learn(self, parts: Sequence[Batch]) -> float:
        """Go up and back with every part of a batch, adding up gradients; the mean loss over what counts in it."""
        [count] = self.team.sum(sum(part.count for part in parts))
        scale = self.team.world / max(1, count)
        losses = []
        for number, part in enumerate(parts, 1):
            with distributed.adding_up(self.module, last=number == len(parts)):
                loss, _ = self.forward(part, scale)
                loss.backward()
            losses.append(loss.detach())
        return float(torch.stack(losses).double().sum())

    @property
    def keeps_best(self) -> bool:
        return self.settings.keep == "best" or self.settings.patience > 0

    @property
    def waited_enough(self) -> bool:
        """Whether the held-out loss has not fallen for as many measurements as the recipe has patience for."""
        return bool(self.settings.patience and self.best and self.best.get("since", 0) >= self.settings.patience)

    @property
    def can_measure(self) -> bool:
        held = self.data.held
        return len(held.tokens) > held.ahead if held.packed else len(held) > 0

    @property
    def held_rows(self) -> int:
        held = self.data.held
        return len(held.tokens) // self.settings.length if held.packed else held.records

    def held_batches(self) -> int:
        return -(-self.held_rows // self.settings.batch) if self.can_measure else 0

    @torch.no_grad()
    def measure(self, whole: bool = False) -> Evaluated | None:
        """The loss on held-out data: on all of it, or on some batches, always the same ones."""
        if not self.can_measure:
            return None
        held, at_once = self.data.held, self.settings.at_once * self.team.world
        few = self.settings.evaluate_batches * -(-self.settings.batch // at_once)
        whole = whole or self.held_rows <= few * at_once
        where = (self.team.rank, self.team.world)
        some: Iterator[list[Arrays]] = once(held, at_once, self.settings.length, *where)
        if not whole:
            some = islice(Batches(held, at_once, self.settings.length, 0, *where), few)
        loss = count = 0.0
        sums: dict[str, float] = {}
        torch.manual_seed(key(self.settings.seed, 0, self.team.rank))  # what a task draws is the same each time
        self.module.eval()
        for examples in some:
            # Processes that share a model go through it together: one that is left without rows reads any, for nothing.
            for part in self.collate(examples or next(once(held, 1, self.settings.length))):
                part_loss, metrics = self.forward(part)
                for name, one in metrics.items():
                    sums[name] = sums.get(name, 0.0) + (one.item() if examples else 0.0)
                if examples:
                    loss, count = loss + part_loss.item(), count + part.count
        self.module.train()
        distributed.give_back(self.module)
        loss, count, *others = self.team.sum(loss, count, *sums.values())
        means = self.task.measures(loss / count, {name: n / count for name, n in zip(sums, others, strict=True)})
        bits = loss / math.log(2) / held.bytes if whole and held.packed and held.bytes else None
        return Evaluated(self.step, loss / count, bits, means.get("accuracy"), whole, means)

    def record(self, files: list[Lines | TensorBoard], happened: Step, held: Evaluated | None) -> None:
        """Write down and tell a step and what was measured after it; remember the best weights."""
        line = {name: value for name, value in asdict(happened).items() if name not in ("steps", "seconds_left")}
        if held:
            line |= {"held_loss": held.held_loss, **held.metrics}
        for file in files:
            file.add(line)
        self.tell(happened)
        if held:
            self.measured = held
            self.tell(held)
            if self.keeps_best and (self.best is None or held.held_loss < self.best["held_loss"]):
                self.best = {"step": self.step, "held_loss": held.held_loss, "since": 0}
                state.write_checkpoint(
                    self.output / "training" / "best", self.state(), state.weights(self.learner.model), self.team
                )
            elif self.keeps_best and self.best is not None:
                self.best = self.best | {"since": self.best.get("since", 0) + 1}

    def sample(self, files: list[Lines]) -> None:
        """Have the model write something. Where its weights are divided between processes, it cannot."""
        divided = distributed.divided(state.weights(self.learner.model))
        if not self.team.first or divided:
            return
        every = self.settings.sample_every
        number = self.step // every - 1 if every else self.pace.seen["sample"]
        prompt, seed = self.settings.prompt, self.settings.seed
        model, tokenizer = body(self.learner.model), self.ready.tokenizer
        written = sample(model, tokenizer, self.task, self.data, self.step, number, prompt, seed)
        if written is None:
            return
        for file in files:
            file.add({name: value for name, value in asdict(written).items() if value is not None})
        self.tell(written)

    @contextmanager
    def records(self) -> Iterator[tuple[list[Lines | TensorBoard], list[Lines]]]:
        """The files of metrics and samples, open; in one process only."""
        metrics: list[Lines | TensorBoard] = []
        samples: list[Lines] = []
        if self.team.first:
            metrics = [Lines(self.output / "metrics.jsonl", self.step)]
            samples = [Lines(self.output / "samples.jsonl", self.step)]
            metrics += [TensorBoard(self.output, self.step)] if self.settings.tensorboard else []
        try:
            yield metrics, samples
        finally:
            for file in (*metrics, *samples):
                file.close()

    def tensors(self) -> dict[str, Tensor]:
        """Everything in a checkpoint that is a tensor."""
        return state.weights(self.learner.model) | state.moments(self.learner.model, self.optimizer)

    def state(self) -> State:
        recipe, pace = self.ready.recipe.to_dict(), self.pace
        cursor = self.batches.state()
        return State(self.step, self.tokens, pace.time, cursor, recipe, self.loss, self.best, pace.progress)

    def save(self) -> None:
        folder = state.save_checkpoint(self.output / "training", self.state(), self.tensors(), self.team)
        self.tell(Saved(self.step, folder))

    def restore(self, begun: Path) -> State:
        """Be where the checkpoint was."""
        was = state.read_state(begun)
        self.batches.restore(was.cursor)
        self.step, self.tokens, self.loss, self.best = was.step, was.tokens, was.loss, was.best
        state.make_moments(self.optimizer, self.step)
        state.load_tensors(begun, self.tensors())
        return was

    def prepared(self) -> Prepared:
        sizes = [(one.numel(), one.requires_grad) for one in self.learner.parameters()]
        return Prepared(
            recipe=self.ready.recipe,
            choices=self.ready.choices,
            data=self.data.report,
            parameters=sum(size for size, _ in sizes),
            learning=sum(size for size, learns in sizes if learns),
            device=str(self.team.device),
            processes=self.team.world,
            step=self.step,
        )

    def finish(self) -> Report:
        """Measure the weights that are kept, and write the model's folder."""
        kept, pace = self.step, self.pace
        best = self.output / "training" / "best"
        if self.keeps_best and self.best is not None and best.is_dir():
            state.load_tensors(best, state.weights(self.learner.model))
            kept = state.read_state(best).step
        held = self.measured
        whole = pace.affords_whole()
        if not (held and held.whole >= whole and held.step == self.step == kept):
            held = self.measure(whole)
            if held:
                held = replace(held, step=kept)
                self.tell(held)
        report = Report(
            folder=self.output,
            reason="done" if pace.progress >= 1 else "patience" if self.waited_enough else "stopped",
            step=self.step,
            steps=pace.steps,
            loss=self.loss,
            held_loss=held.held_loss if held else None,
            bits_per_byte=held.bits_per_byte if held else None,
            accuracy=held.accuracy if held else None,
            metrics=dict(held.metrics) if held else {},
            kept_step=kept,
            tokens=self.tokens,
            time=pace.spent + pace.clock(),
        )
        write_result(self.ready, self.learner.model, report, self.team)
        self.tell(Finished(report))
        return report

    def lost(self, number: int, rate: float, loss: float) -> CutawayError:
        """What to say when the numbers have run away."""
        what = (
            f"The loss is {loss}"
            if not math.isfinite(loss)
            else f"The loss is {loss:.3f}, but its gradient is not a number"
        )
        before = state.latest(self.output / "training")
        intact = (
            f"The checkpoint of step {state.read_state(before).step:,} is intact"
            if before
            else "Nothing had been saved yet"
        )
        return CutawayError(
            f"{what} at step {number:,}, with a learning rate of {rate:.2e}: training has diverged, and was "
            f"stopped before it could damage the weights. {intact}. Start again with a lower learning rate, such as "
            f"{self.settings.learning_rate / 3:.0e}, or a longer warm-up."
        )


@contextmanager
def interruptible(stop: Callable[[], bool]) -> Iterator[Callable[[], bool]]:
    """Ctrl-C and SIGTERM are noted, to be looked at after each step; a second Ctrl-C ends everything at once."""
    heard: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if heard and number == signal.SIGINT:
            raise KeyboardInterrupt
        heard.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(heard) or stop()
    finally:
        for number, old in before.items():
            signal.signal(number, old)
