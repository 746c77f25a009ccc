"""Which notes of a performance attend to which: the weights of events, added up note by note."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from cutaway.errors import CutawayError
from cutaway.inspect.numbers import Cube, Table, ViewResult, array
from cutaway.inspect.runs import Run
from cutaway.music.places import placed
from cutaway.music.vocabulary import is_of_events


@dataclass(frozen=True)
class Notes(ViewResult):
    """One layer's attention from notes to earlier notes.

    A note attends where its key goes down; what it gives to the beginning or the end of another, that note gets.
    """

    layer: int
    notes: tuple[int, ...]
    """The note-on event of every note in the run, by position; the numbers of notes below count these."""
    attended: Cube
    """The earlier notes that get the most, by number; -1 where there are no more. [note, head, place]"""
    weights: Cube
    """What each of these gets. [note, head, place]"""
    rest: Table
    """What goes to no earlier note: to times, velocities, the start, and to the note itself. [note, head]"""


@torch.no_grad()
def notes(run: Run, layer: int = 0, k: int = 6) -> Notes:
    """The earlier notes that each note attends to the most, in each head of a layer."""
    if not is_of_events(run.lm.tokenizer):
        raise CutawayError(
            f"{run.lm.name} reads text, and a text has no notes: choose a model of performances.",
            "no_pianist",
            name=run.lm.name,
        )
    layer = run.layer(layer)
    found = placed(run.ids)
    count = len(found.on)
    table = run[f"blocks.{layer}.attention.weights"][:, torch.as_tensor(found.on)].float()  # [head, note, event]
    owner = torch.as_tensor(np.where(found.owners() < 0, count, found.owners()))
    shares = torch.zeros(*table.shape[:2], count + 1).index_add_(2, owner, table)  # [head, note, note, and nobody's]
    given = shares[..., :count].tril(-1)  # a note begins after those before it
    weights, attended = given.topk(min(k, count), dim=2)
    attended = attended.masked_fill(weights == 0, -1)
    return Notes(
        layer,
        tuple(found.on.tolist()),
        array(attended.transpose(0, 1).float()),
        array(weights.transpose(0, 1)),
        array((table.sum(2) - given.sum(2)).T),
    )
