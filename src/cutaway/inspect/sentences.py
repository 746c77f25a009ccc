"""How near the meanings of texts are: an encoder's vector for each, and the cosine of every two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from cutaway.inspect.numbers import Table, ViewResult
from cutaway.inspect.runs import Run


@dataclass(frozen=True)
class Sentences(ViewResult):
    """Texts, and how near every two of them are."""

    texts: tuple[str, ...]
    """The run's own text first, then the others."""
    tokens: tuple[int, ...]
    """How many tokens each has, [CLS] and [SEP] among them."""
    cosines: Table
    """1 for the same direction, 0 for nothing in common. [text, text]"""
    width: int
    """How long the vectors are."""


def sentences(run: Run, texts: Sequence[str] = ()) -> Sentences:
    """The vectors of the run's text and of others (`lm.embed`), compared."""
    rows = [list(run.ids), *run.lm.sentences(list(texts))] if texts else [list(run.ids)]
    vectors = F.normalize(torch.as_tensor(run.lm.embed(rows)).float(), dim=-1)  # [text, width]
    found = (vectors @ vectors.T).cpu().numpy()
    return Sentences((run.text, *texts), tuple(map(len, rows)), found, vectors.shape[1])
