"""Predict: the likeliest next tokens, as the model says and as the settings make of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request

from cutaway.inspect.numbers import rounded
from cutaway.serve.explorer import Explorer

if TYPE_CHECKING:
    from torch import Tensor

    from cutaway.inspect.run import Run
    from cutaway.sampling import Sampling

SHOWN = 10
SKYLINE = 100
"""So many tokens are drawn side by side, to show where top-k and top-p cut."""


@dataclass(frozen=True)
class Next:
    """The likeliest next tokens: `own` is the model's probability, `chance` what temperature, top-k and top-p leave."""

    position: int
    ids: list[int]
    own: list[float]
    chance: list[float]
    possible: int
    """How many tokens can still be chosen."""
    vocabulary: int
    drawn: int | None


def predict(logits: Tensor, how: Sampling, vocabulary: int, position: int, dice: float | None = None) -> Next:
    """The beginning of the list of next tokens for one position's scores [vocabulary], likeliest first."""
    import torch

    from cutaway.sampling import draw, probabilities

    own = logits.float().softmax(dim=-1)[:vocabulary]
    chance = probabilities(logits, how)[:vocabulary]
    best = own.topk(min(SKYLINE, vocabulary)).indices
    return Next(
        position=position,
        ids=best.tolist(),
        own=own[best].tolist(),
        chance=chance[best].tolist(),
        possible=int((chance > 0).sum()),
        vocabulary=vocabulary,
        drawn=None if dice is None else int(draw(chance[None], torch.tensor([dice], dtype=torch.float64))[0]),
    )


def router(explorer: Explorer) -> APIRouter:
    api = APIRouter()

    @api.get("/traces/{key}/predict")
    async def view(
        key: str,
        request: Request,
        position: int = -1,
        temperature: float = 1.0,
        top_k: Annotated[int, Query(ge=0)] = 0,
        top_p: float = 1.0,
        dice: Annotated[float | None, Query(ge=0, lt=1)] = None,
    ) -> dict[str, Any]:
        def work() -> dict[str, Any]:
            from cutaway.sampling import Sampling  # with torch, which the page need not wait for

            how = Sampling(temperature=temperature, top_k=top_k or None, top_p=top_p)
            run = explorer.run(key)
            at = run.position(position)
            found = predict(run.logits([at])[0], how, len(run.lm.tokenizer), at, dice)
            return as_json(found, run)

        return await explorer.worker.run(request, work)

    return api


def as_json(found: Next, run: Run) -> dict[str, Any]:
    return {
        "position": found.position,
        "tokens": [run.token(one).to_dict() for one in found.ids[:SHOWN]],
        "own": rounded(found.own),
        "chance": rounded(found.chance),
        "possible": found.possible,
        "vocabulary": found.vocabulary,
        "drawn": None if found.drawn is None else run.token(found.drawn).to_dict(),
    }
