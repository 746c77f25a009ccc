"""Layers: what each layer would already say, a window of positions at a time."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from cutaway.serve.explorer import Explorer

WINDOW = 64
"""Positions in one answer: for each, every layer scores the whole vocabulary."""


def router(explorer: Explorer) -> APIRouter:
    api = APIRouter()

    @api.get("/traces/{key}/lens")
    async def view(
        key: str,
        request: Request,
        first: int = 0,
        count: Annotated[int, Query(ge=1, le=WINDOW)] = WINDOW,
        k: Annotated[int, Query(ge=1, le=20)] = 5,
        watch: Annotated[list[int] | None, Query(max_length=8)] = None,
    ) -> dict[str, Any]:
        from cutaway.inspect.lens import lens

        def work() -> dict[str, Any]:
            run = explorer.run(key)
            start = run.position(first)
            positions = list(range(start, min(start + count, len(run))))
            return lens(run, positions, k, watch=tuple(watch or ())).to_dict()

        return await explorer.worker.run(request, work)

    return api
