"""The gaps of a text: any of its tokens are hidden, and an encoder says from both sides what may stand there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch

from cutaway.checks import check_count
from cutaway.errors import CutawayError
from cutaway.inspect.numbers import Token, ViewResult
from cutaway.inspect.runs import Run


@dataclass(frozen=True)
class Guess(ViewResult):
    """What may stand in a gap."""

    token: Token
    probability: float


@dataclass(frozen=True)
class Hidden(ViewResult):
    """One gap: what may stand there, and what stood there before it was hidden."""

    position: int
    guesses: tuple[Guess, ...]
    """The likeliest entries of the vocabulary, likeliest first."""
    token: Token | None
    """What was hidden; None where the text itself has `[MASK]`."""
    probability: float | None
    """How likely the model finds that."""
    rank: int | None
    """Its place in the list of all, from 1."""


@dataclass(frozen=True)
class Gaps(ViewResult):
    """The gaps of a text, in order. All of them are empty at the same time: no guess helps with another."""

    gaps: tuple[Hidden, ...]


@torch.no_grad()
def gaps(run: Run, hide: Sequence[int] = (), k: int = 5) -> Gaps:
    """What may stand where the tokens `hide` stood, and wherever the text has `[MASK]`: the k likeliest."""
    lm, tokenizer = run.lm, cast(Any, run.lm.tokenizer)
    if not hasattr(tokenizer, "special"):
        raise CutawayError(f"{lm.name} has no WordPiece vocabulary, so there is no [MASK] to hide a token behind.")
    mask, framed = tokenizer.special("mask"), {tokenizer.special("cls"), tokenizer.special("sep")}
    hidden = {run.position(one) for one in hide}
    for at in sorted(hidden):
        if run.ids[at] in framed:
            name = tokenizer.spelling(run.ids[at])
            raise CutawayError(f"Token {at} is {name}, which frames the text: there is nothing to guess. Hide a word.")
    ids = [mask if at in hidden else one for at, one in enumerate(run.ids)]
    empty = [at for at, one in enumerate(ids) if one == mask]
    if not empty:
        return Gaps(())
    device = next(lm.model.parameters()).device
    vectors = lm.model.read(torch.tensor([ids], device=device))[0, empty]  # [gap, width]
    chances = lm.model.score(vectors).float().softmax(-1)[:, : len(tokenizer)].cpu()
    best = chances.topk(min(check_count(k, 1), len(tokenizer)))

    def entry(one: int) -> Token:
        return Token(one, tokenizer.spelling(one).encode())  # with its ##

    found = []
    for row, at in enumerate(empty):
        stood = run.ids[at] if run.ids[at] != mask else None
        chance = None if stood is None else float(chances[row, stood])
        rank = None if stood is None else int((chances[row] > chances[row, stood]).sum()) + 1
        listed = zip(best.indices[row].tolist(), best.values[row].tolist(), strict=True)
        guesses = tuple(Guess(entry(one), share) for one, share in listed)
        found.append(Hidden(at, guesses, None if stood is None else entry(stood), chance, rank))
    return Gaps(tuple(found))
