"""What may come next: the likeliest tokens, as the model says and as the settings make of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cutaway.decoding.sampling import Sampling, draw, likeliest, probabilities, softmax
from cutaway.inspect.numbers import Token, ViewResult

if TYPE_CHECKING:
    from cutaway.inspect.runs import Run

SHOWN = 10
SKYLINE = 100
"""So many tokens are drawn side by side, to show where top-k and top-p cut."""


@dataclass(frozen=True)
class Next(ViewResult):
    """The likeliest next tokens: `own` is the model's probability, `chance` what temperature, top-k and top-p leave."""

    position: int
    tokens: tuple[Token, ...]
    """The first ones."""
    own: list[float]
    chance: list[float]
    possible: int
    """How many tokens can still be chosen."""
    vocabulary: int
    drawn: Token | None


def predict(run: Run, position: int, settings: Sampling, uniform: float | None = None) -> Next:
    """The beginning of the list of next tokens after one position, likeliest first; a uniform number draws one."""
    position, vocabulary = run.position(position), len(run.lm.tokenizer)
    scores = run.logits([position])[0].float().cpu().numpy()
    own, chance = softmax(scores)[:vocabulary], probabilities(scores[:vocabulary], settings)
    best = likeliest(own, SKYLINE)
    return Next(
        position=position,
        tokens=tuple(run.token(one) for one in best[:SHOWN].tolist()),
        own=own[best].tolist(),
        chance=chance[best].tolist(),
        possible=int((chance > 0).sum()),
        vocabulary=vocabulary,
        drawn=None if uniform is None else run.token(draw(chance, uniform)),
    )


def chances(run: Run, path: Sequence[int], nothing: Callable[[], Run]) -> list[float]:
    """How likely each token of a path was where it stands; the run is over the text and all of the path but its last.

    Where nothing was written, the first token of the path followed the end of another text: `nothing` gives that run.
    """
    run.token(path[-1])  # refuses what is no token
    places = [place for place in range(len(run) - len(path), len(run)) if place >= 0]
    logits = [*run.logits(places)]
    if len(places) < len(path):
        logits = [nothing().logits([-1])[0], *logits]
    return [float(row.softmax(-1)[one]) for row, one in zip(logits, path, strict=True)]
