"""Branches: how likely each token of several ways on from a text is, and which ways there are."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from cutaway.inspect.numbers import rounded
from cutaway.serve.explorer import Explorer


class Branches(BaseModel):
    """Ways on from a text, each a list of ids."""

    model: str = Field(max_length=1_000)
    text: str = Field("", max_length=2_000_000)
    paths: list[Annotated[list[int], Field(min_length=1, max_length=256)]] = Field(max_length=32)


def router(explorer: Explorer) -> APIRouter:
    api = APIRouter()

    @api.post("/branches")
    async def chances(body: Branches, request: Request) -> list[list[float]]:
        """The model's own probability of each token of each path, after the text and the tokens before it."""

        def along(path: list[int]) -> list[float]:
            from cutaway.inspect.next import chances

            run = explorer.trace(body.model, body.text, path[:-1])[1]
            found: list[float] = rounded(chances(run, path, lambda: explorer.trace(body.model, body.text)[1]))
            return found

        return await explorer.worker.run(request, lambda: [along(path) for path in body.paths])

    @api.get("/traces/{key}/ahead")
    async def ahead(key: str, request: Request) -> dict[str, Any]:
        """The likeliest ways on from the end of the text, as a tree."""

        def work() -> dict[str, Any]:
            from cutaway.inspect.ahead import ahead

            run = explorer.run(key)
            return {"ways": explorer.once((key, "ahead"), lambda: [one.to_dict() for one in ahead(run.lm, run.ids)])}

        return await explorer.worker.run(request, work)

    return api
