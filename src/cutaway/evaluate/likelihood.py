"""How likely a model finds given tokens after those before them: what perplexity, LAMBADA and lm-eval are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cutaway.errors import CutawayError
from cutaway.models.architecture import cached, context_of
from cutaway.models.gpt2.model import GPT
from cutaway.runtime.torch_texts import halves

TOKENS_AT_ONCE = 4_096
"""How many tokens, padding included, go through the model together."""
SCORES_AT_ONCE = 256
"""For how many positions the scores of the whole vocabulary are held at once."""

Progress = Callable[[int, int], None]
"""Is told how much is done, and of how much."""


@dataclass(frozen=True)
class Row:
    """A sequence of ids; those from `start` on (1 or more) are to be scored, each given all before it."""

    ids: list[int]
    start: int


@dataclass(frozen=True)
class Scores:
    """What a model says of the tokens of one row that are scored."""

    logprobs: Tensor
    """The log-probability of each [token], in float64."""
    likeliest: Tensor
    """Whether each was the likeliest of all tokens [token]."""
    likeliest_allowed: bool
    """Whether the first was the likeliest of those that are not barred."""


@torch.inference_mode()
def score(
    model: GPT, rows: Sequence[Row], barred: Sequence[int] = (), progress: Progress | None = None
) -> list[Scores]:
    """The scores of every row, in order. Rows of like length are read together; `barred` ids are no first answers.

    A row's last id is only predicted, never read, so that a row may be one longer than the context.
    """
    check(rows, model)
    found: dict[int, Scores] = {}
    total, done = sum(len(row.ids) for row in rows), 0
    for numbers in together(rows) if cached(model) else ([number] for number in range(len(rows))):
        some = [rows[number] for number in numbers]
        for number, scores in zip(numbers, score_batch(model, some, barred), strict=True):
            found[number] = scores
        done += sum(len(row.ids) for row in some)
        if progress:
            progress(done, total)
    return [found[number] for number in range(len(rows))]


def check(rows: Sequence[Row], model: GPT) -> None:
    context = context_of(model.config)
    for row in rows:
        if not 1 <= row.start < len(row.ids):
            raise CutawayError("Nothing can be scored without a token before it and a token to score.")
        if len(row.ids) - 1 > context:
            raise CutawayError(f"{len(row.ids) - 1:,} tokens do not fit: this model has {context:,} positions.")


def together(rows: Sequence[Row]) -> Iterator[list[int]]:
    """The numbers of the rows to be read together: longest first, so that little is padded and memory peaks at once."""
    batch: list[int] = []
    for number in sorted(range(len(rows)), key=lambda number: -len(rows[number].ids)):
        if batch and (len(batch) + 1) * (len(rows[batch[0]].ids) - 1) > TOKENS_AT_ONCE:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def score_batch(model: GPT, rows: list[Row], barred: Sequence[int]) -> Iterator[Scores]:
    device = next(model.parameters()).device
    length = max(len(row.ids) for row in rows) - 1
    ids = torch.tensor(
        [row.ids[:-1] + [0] * (length + 1 - len(row.ids)) for row in rows], device=device
    )  # [row, token]
    hidden = halves(model)[0](ids)  # [row, token, width]; padding stands on the right, where nobody looks at it
    wanted = torch.cat([hidden[at, row.start - 1 : len(row.ids) - 1] for at, row in enumerate(rows)])  # [scored, width]
    targets = torch.tensor([token for row in rows for token in row.ids[row.start :]], device=device)  # [scored]
    counts = [len(row.ids) - row.start for row in rows]
    firsts = torch.tensor([0, *counts[:-1]], device=device).cumsum(0)
    logprobs, best = vocabulary_scores(model, wanted, targets)
    allowed = best[firsts] if not barred else first_choice(model, wanted[firsts], barred)
    right = (allowed == targets[firsts]).tolist()
    for one, chosen, target, first in zip(
        logprobs.split(counts), best.split(counts), targets.split(counts), right, strict=True
    ):
        yield Scores(one.cpu(), (chosen == target).cpu(), first)


def vocabulary_scores(model: GPT, hidden: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """The log-probability of each target after its vector [scored, width], and the likeliest token; both [scored]."""
    logprobs, best = [], []
    _, score = halves(model)
    for some, wanted in zip(hidden.split(SCORES_AT_ONCE), targets.split(SCORES_AT_ONCE), strict=True):
        logits = score(some).float()  # [some, vocabulary]
        chosen = logits.gather(1, wanted[:, None])[:, 0].double()
        logprobs.append(chosen - logits.logsumexp(dim=-1).double())
        best.append(logits.argmax(dim=-1))
    return torch.cat(logprobs), torch.cat(best)


def first_choice(model: GPT, hidden: Tensor, barred: Sequence[int]) -> Tensor:
    """The likeliest token after each vector among those that are not barred."""
    never = torch.tensor(list(barred), device=hidden.device)
    _, score = halves(model)
    return torch.cat(
        [score(some).float().index_fill(1, never, -torch.inf).argmax(-1) for some in hidden.split(SCORES_AT_ONCE)]
    )
