"""Predict: the likeliest next tokens, as the model says and as the settings make of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from cutaway.inspect.numbers import rounded
from cutaway.serve.explorer import Explorer

if TYPE_CHECKING:
    from torch import Tensor

    from cutaway.decoding.sampling import Sampling
    from cutaway.inspect.runs import Run

SHOWN = 10
SKYLINE = 100
"""So many tokens are drawn side by side, to show where top-k and top-p cut."""


class Branches(BaseModel):
    """Ways on from a text, each a list of ids."""

    model: str = Field(max_length=1_000)
    text: str = Field("", max_length=2_000_000)
    paths: list[Annotated[list[int], Field(min_length=1, max_length=256)]] = Field(max_length=32)


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


def predict(logits: Tensor, settings: Sampling, vocabulary: int, position: int, uniform: float | None = None) -> Next:
    """The beginning of the list of next tokens for one position's scores [vocabulary], likeliest first."""
    from cutaway.decoding.sampling import draw, likeliest, probabilities, softmax

    scores = logits.float().cpu().numpy()
    own, chance = softmax(scores)[:vocabulary], probabilities(scores[:vocabulary], settings)
    best = likeliest(own, SKYLINE)
    return Next(
        position=position,
        ids=best.tolist(),
        own=own[best].tolist(),
        chance=chance[best].tolist(),
        possible=int((chance > 0).sum()),
        vocabulary=vocabulary,
        drawn=None if uniform is None else draw(chance, uniform),
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
            from cutaway.decoding.sampling import Sampling  # with numpy, which the page need not wait for

            settings = Sampling(temperature=temperature, top_k=top_k or None, top_p=top_p)
            run = explorer.run(key)
            at = run.position(position)
            found = predict(run.logits([at])[0], settings, len(run.lm.tokenizer), at, dice)
            return as_json(found, run)

        return await explorer.worker.run(request, work)

    @api.post("/branches")
    async def chances(body: Branches, request: Request) -> list[list[float]]:
        """The model's own probability of each token of each path, after the text and the tokens before it."""
        return await explorer.worker.run(
            request, lambda: [rounded(along(explorer, body.model, body.text, path)) for path in body.paths]
        )

    return api


def along(explorer: Explorer, model: str, text: str, path: list[int]) -> list[float]:
    """How likely each token of a path was where it stands."""
    run = explorer.trace(model, text, path[:-1])[1]
    run.token(path[-1])  # refuses what is no token
    before = [place for place in range(len(run) - len(path), len(run)) if place >= 0]
    logits = [*run.logits(before)]
    if len(before) < len(path):  # nothing written: the first token followed the end of another text
        logits = [explorer.trace(model, text)[1].logits([-1])[0], *logits]
    return [float(row.softmax(-1)[one]) for row, one in zip(logits, path, strict=True)]


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
