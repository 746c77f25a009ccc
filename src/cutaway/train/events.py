"""What a training tells whoever listens: one small record for each thing that happens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cutaway.train.data.shards import Report as Data
    from cutaway.train.recipe import Recipe


@dataclass(frozen=True)
class Progress:
    """Work before the training itself: how much of it is done."""

    what: str
    """'vocabulary' or 'tokens': learning a vocabulary from the data, or cutting the data into tokens."""
    done: int
    total: int
    """In characters or bytes; 0 if it is not known."""


@dataclass(frozen=True)
class Choice:
    """Something the recipe left out, what was chosen for it, and why."""

    key: str
    value: object
    why: str


@dataclass(frozen=True)
class Prepared:
    """Everything is ready and the first step begins."""

    recipe: Recipe
    """The whole recipe, choices included, as it stands in the output folder."""
    choices: tuple[Choice, ...]
    data: Data
    parameters: int
    learning: int
    """How many of the parameters change: all, unless LoRA leaves most alone."""
    device: str
    processes: int
    step: int
    """The last step already done: 0, or where a resumed training goes on from."""


@dataclass(frozen=True)
class Step:
    """The weights have been changed once."""

    step: int
    steps: int
    loss: float
    """The mean over the targets that count in this batch, in nats, before the change."""
    tokens: int
    """How many tokens have been read so far."""
    tokens_per_second: float
    learning_rate: float
    gradient_norm: float
    time: float
    """Seconds since the training began, pauses between resumed parts left out."""
    seconds_left: float


@dataclass(frozen=True)
class Evaluated:
    """Held-out data has been measured."""

    step: int
    held_loss: float
    """Nats per target that counts."""
    bits_per_byte: float | None
    """In plain text, where all of the held-out data was measured."""
    accuracy: float | None
    """In tasks that have classes."""
    whole: bool
    """Whether all held-out data was measured, or only some batches of it."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """What else the task measures, by name (see `cutaway.tasks.Loss`); accuracy is among it."""


@dataclass(frozen=True)
class Sampled:
    """The model has written something."""

    step: int
    prompt: str
    text: str
    reference: str | None
    """What the data has in this place, in tasks whose answer is written."""


@dataclass(frozen=True)
class Saved:
    """A checkpoint to resume from is on the disk."""

    step: int
    folder: Path


@dataclass(frozen=True)
class Report:
    """How a training ended."""

    folder: Path
    """The model's folder, which every verb takes."""
    reason: str
    """'done', 'patience' (ended early, by train.patience), or 'stopped' (by Ctrl-C, a signal or the caller)."""
    step: int
    steps: int
    loss: float | None
    """Of the last step."""
    held_loss: float | None
    """Of the weights in the folder, on held-out data."""
    bits_per_byte: float | None
    accuracy: float | None
    kept_step: int
    """The step the weights in the folder are from: the last, or the best."""
    tokens: int
    time: float
    metrics: Mapping[str, float] = field(default_factory=dict)
    """What else the task measures on held-out data, by name."""


@dataclass(frozen=True)
class Finished:
    """The training has ended and its folder is written."""

    report: Report


Event = Progress | Prepared | Step | Evaluated | Sampled | Saved | Finished
