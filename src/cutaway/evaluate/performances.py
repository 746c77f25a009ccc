"""Performances measured: how well a pianist predicts them, and how one folder compares with another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from cutaway.errors import CutawayError
from cutaway.evaluate.likelihood import Progress
from cutaway.evaluate.perplexity import Perplexity, perplexity
from cutaway.language_model import LanguageModel
from cutaway.music import statistics
from cutaway.music.events import Events
from cutaway.music.folder import Folder, read_folder
from cutaway.music.performance import Performance
from cutaway.music.statistics import Spread
from cutaway.music.vocabulary import is_of_events


@dataclass(frozen=True)
class Performed:
    """What was found of some performances."""

    on: str
    performances: int
    notes: int
    seconds: float
    measures: Mapping[str, Spread]
    """Where nine of ten of them lie (see `cutaway.music.statistics.Measures`)."""
    pitch_classes: list[float]
    """The share of all notes that are a C, a C sharp, ..."""
    refused: list[str]
    """Why files could not be read, each a sentence."""
    against: str | None = None
    excerpt: float | None = None
    """Seconds of the excerpts that those compared with were cut into: the median length of these performances."""
    reference: Mapping[str, Spread] = field(default_factory=dict)
    within: Mapping[str, float] = field(default_factory=dict)
    """The share of these performances that lies where nine of ten of the others do."""
    model: str | None = None
    loss: Perplexity | None = None
    """Over events, where a model was given."""

    @property
    def loss_per_note(self) -> float | None:
        """Nats for all that it takes to play a note."""
        return None if self.loss is None else self.loss.nats_per_token * self.loss.tokens / max(1, self.notes)

    @property
    def how(self) -> str:
        parts = [f"{self.performances:,} performances, {self.notes:,} notes, {self.seconds:,.0f} seconds"]
        parts += [f"left out: {len(self.refused):,}"] * bool(self.refused)
        if self.loss is not None:
            window = f"windows of {self.loss.window:,} events, {self.loss.stride:,} apart"
            parts.append(f"{self.loss.tokens:,} events, each predicted once, {window}")
        if self.excerpt is not None:
            parts.append(f"compared with excerpts of {self.excerpt:.0f} seconds of {self.against}")
        return "; ".join(parts) + "."

    def as_dict(self) -> dict[str, Any]:
        found = asdict(self)
        found |= {"loss_per_event": self.loss.nats_per_token if self.loss else None, "how": self.how}
        return found | {"loss_per_note": self.loss_per_note}


def evaluate_performances(
    on: str | Path,
    lm: LanguageModel | None = None,
    against: str | Path | None = None,
    limit: int | None = None,
    window: int | None = None,
    stride: int | None = None,
    progress: Progress | None = None,
) -> Performed:
    """Measure the performances in a file or folder; with a model, how well it predicts them."""
    folder = read_folder(on)
    if not folder.performances:
        raise CutawayError(f"No performance in {on} can be read. The first: {folder.refused[0]}")
    played = list(folder.performances.values())[:limit]
    measured = [statistics.measure(one) for one in played]
    found = Performed(
        str(on),
        len(played),
        sum(map(len, played)),
        sum(one.seconds for one in played),
        statistics.spread(measured),
        np.average([statistics.pitch_classes(one) for one in played], axis=0, weights=[*map(len, played)]).tolist(),
        folder.refused,
    )
    changes: dict[str, Any] = {}
    if against is not None:
        seconds = median(one.seconds for one in played)
        reference = statistics.spread([statistics.measure(one) for one in cut(read_folder(against), seconds)])
        within = statistics.within(measured, reference)
        changes |= {"against": str(against), "excerpt": seconds, "reference": reference, "within": within}
    if lm is not None:
        if not is_of_events(lm.tokenizer):
            raise CutawayError(f"{lm.name} predicts text, and {on} holds performances: name a pianist with --model.")
        events = Events()
        texts = [lm.tokenizer.decode(events.encode(one)) for one in played]
        changes |= {"model": lm.name, "loss": perplexity(lm, texts, window, stride, progress=progress)}
    return replace(found, **changes)


def cut(folder: Folder, seconds: float) -> list[Performance]:
    found = [piece for one in folder.performances.values() for piece in statistics.excerpts(one, seconds)]
    if not found:
        raise CutawayError(f"There is nothing to compare with: {folder.refused[0]}")
    return found
