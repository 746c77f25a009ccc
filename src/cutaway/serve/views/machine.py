"""The whole machine: its numbers for a window of tokens, in as few questions as a picture has layers of paint."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from cutaway.inspect.numbers import rounded
from cutaway.serve.arrays import binary
from cutaway.serve.explorer import Explorer

Names = Annotated[list[str], Query(min_length=1, max_length=1_024)]
First = Annotated[int, Query(ge=0)]
Count = Annotated[int, Query(ge=1)]


def router(explorer: Explorer) -> APIRouter:
    api = APIRouter()

    @api.get("/traces/{key}/machine/folded")
    async def folded(
        key: str,
        name: Names,
        request: Request,
        first: First = 0,
        count: Count = 64,
        cells: Annotated[int, Query(ge=1, le=128)] = 24,
    ) -> Response:
        """Vectors of a window of tokens, each as its length and a few cells."""
        from cutaway.inspect import machine

        return await explorer.worker.run(
            request, lambda: binary(machine.folded(explorer.made(key), name, first, count, cells))
        )

    @api.get("/traces/{key}/machine/looks")
    async def looks(key: str, name: Names, request: Request, k: Annotated[int, Query(ge=1, le=16)] = 4) -> Response:
        """What each token attends to most, over all heads."""
        from cutaway.inspect import machine

        return await explorer.worker.run(
            request, lambda: binary(machine.looks(explorer.made(key), name, k), exact=True)
        )

    @api.get("/traces/{key}/machine/rows")
    async def rows(
        key: str, name: Names, request: Request, position: int = -1, first: First = 0, count: Count = 64
    ) -> Response:
        """One token's row of some tables, head by head."""
        from cutaway.inspect import machine

        return await explorer.worker.run(
            request, lambda: binary(machine.rows(explorer.made(key), name, position, first, count))
        )

    @api.get("/traces/{key}/machine/expected")
    async def expected(key: str, request: Request, first: First = 0, count: Count = 64) -> dict[str, Any]:
        """The likeliest token after each of a window's."""
        from cutaway.inspect import machine

        def work() -> dict[str, Any]:
            words, shares = machine.expected(explorer.run(key), first, count)
            return {"words": [word.to_dict() for word in words], "shares": rounded(shares)}

        return await explorer.worker.run(request, work)

    return api
