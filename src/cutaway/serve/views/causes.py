"""Causes: the share of each token in one that came after."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from cutaway.serve.explorer import Explorer


class Method(StrEnum):
    gradient = "gradient"
    integrated = "integrated"


def router(explorer: Explorer) -> APIRouter:
    api = APIRouter()

    @api.get("/traces/{key}/saliency")
    async def view(
        key: str,
        target: int,
        request: Request,
        method: Method = Method.gradient,
        steps: Annotated[int, Query(ge=1, le=64)] = 16,
    ) -> dict[str, Any]:
        from cutaway.inspect.saliency import saliency

        return await explorer.worker.run(
            request, lambda: saliency(explorer.run(key), [target], method.value, steps).to_dict()
        )

    return api
