"""Asking a trained tagger or a model that answers questions: texts in, tags or the answers' places out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch

from cutaway.errors import CutawayError
from cutaway.language_model import LanguageModel
from cutaway.models.architecture import context_of
from cutaway.runtime.encoding import batches
from cutaway.tasks.answer import about
from cutaway.tasks.marks import Marks, Progress, Questions, Tagging, Window, entities
from cutaway.tasks.task import LeftOut, Record

LONGEST = 30
"""An answer has at most so many tokens, as in the scripts for SQuAD."""


@dataclass(frozen=True)
class Entity:
    """Words that are one name."""

    kind: str
    text: str
    first: int
    """Which word it begins with, from 0."""
    last: int


@dataclass(frozen=True)
class Tagged:
    """A text's words with their tags."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    """For the words that were read: those at the end of a text that is too long have none."""
    probabilities: tuple[float, ...]
    entities: tuple[Entity, ...]
    cut: int = 0
    """How many tokens did not fit."""


@dataclass(frozen=True)
class Found:
    """An answer, and where it stands in the context."""

    text: str
    """Empty where the model finds none."""
    start: int | None
    end: int | None
    """The characters from `start` up to `end`, this one not among them."""
    probability: float
    """Among all stretches of the context that could be the answer."""


def head_scores(lm: LanguageModel, task: Marks, rows: Sequence[Sequence[int]], progress: Progress | None) -> list[Any]:
    """What the head says of every token of every row: [token, class] each, in the order of the rows."""
    model, config = cast(Any, lm.model), cast(Any, lm.config)
    if getattr(config, "head", None) != task.head or (task.head == "tags" and config.labels != task.head_labels):
        raise CutawayError(f"{lm.name} has no head for {task.name}: train a BERT for it (cutaway train --task ...).")
    found: list[Any] = [None] * len(rows)
    done = 0
    for numbers in batches(rows):
        longest = max(len(rows[number]) for number in numbers)
        ids = torch.tensor([[*rows[n], *[0] * (longest - len(rows[n]))] for n in numbers], device=lm.device)
        lengths = torch.tensor([len(rows[n]) for n in numbers], device=lm.device)
        mask = torch.arange(longest, device=lm.device) < lengths[:, None]
        with torch.inference_mode():
            scores = model.eval()(ids, mask=mask).float().cpu()
        for number, row in zip(numbers, scores, strict=True):
            found[number] = row[: len(rows[number])]
        done += len(numbers)
        if progress:
            progress(done, len(rows))
    return found


def tag(
    lm: LanguageModel, task: Tagging, texts: Sequence[Sequence[str]], progress: Progress | None = None
) -> list[Tagged]:
    """The tag of each word of each text."""
    task = task.within(context_of(lm.config))
    forms = [task.form(words, lm.tokenizer) for words in texts]
    made = []
    scores = head_scores(lm, task, [ids for ids, *_ in forms], progress)
    for words, (_, starts, cut), row in zip(texts, forms, scores, strict=True):
        chances = row[starts].softmax(-1)
        best = chances.max(-1)
        tags = tuple(task.labels[number] for number in best.indices.tolist())
        names = tuple(Entity(kind, " ".join(words[a : b + 1]), a, b) for kind, a, b in entities(tags))
        made.append(Tagged(tuple(words), tags, tuple(best.values.tolist()), names, cut))
    return made


def find_answers(
    lm: LanguageModel, task: Questions, records: Sequence[Record], progress: Progress | None = None
) -> list[Found | None]:
    """The answer to each record's question; None for a question that leaves no room for its context."""
    task = task.within(context_of(lm.config))
    windows: list[tuple[int, Window]] = []
    for number, record in enumerate(records):
        with about(number + 1, "Record"):
            try:
                windows += [(number, one) for one in task.windows(record, lm.tokenizer)]
            except LeftOut:
                continue
    scores = head_scores(lm, task, [one.ids for _, one in windows], progress)
    found: list[Found | None] = []
    for number, record in enumerate(records):
        own = [(one, row) for (of, one), row in zip(windows, scores, strict=True) if of == number]
        found.append(best_span(own, str(record["context"]), task.unanswerable) if own else None)
    return found


def best_span(windows: Sequence[tuple[Window, Any]], context: str, unanswerable: bool) -> Found:
    """The likeliest stretch over all windows of a context: the score of its first token and that of its last, added."""
    totals, places = [], []
    for window, row in windows:
        start, end = row[window.first : -1].unbind(-1)  # [context token]; the last one is [SEP]
        table = start[:, None] + end[None]
        allowed = torch.ones_like(table).triu().tril(LONGEST - 1).bool()
        totals.append(table[allowed])
        places += [(window.offsets[a][0], window.offsets[b][1]) for a, b in allowed.nonzero().tolist()]
    if unanswerable:  # as little as any window gives it
        totals.append(torch.stack([row[0].sum() for _, row in windows]).min()[None])
    chances = torch.cat(totals).softmax(0)
    best = int(chances.argmax())
    if best == len(places):
        return Found("", None, None, float(chances[best]))
    first, last = places[best]
    return Found(context[first:last], first, last, float(chances[best]))
