"""Attention: all heads at a glance, one head's table at each stage, and one row of it with its numbers."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from cutaway.serve.arrays import binary
from cutaway.serve.explorer import Explorer


class Stage(StrEnum):
    """What the table holds: before the mask, after it, after softmax."""

    scores = "scores"
    masked = "masked"
    weights = "weights"


def router(explorer: Explorer) -> APIRouter:
    api = APIRouter()

    @api.get("/traces/{key}/heads")
    async def glance(
        key: str,
        request: Request,
        layer: int | None = None,
        picture: Annotated[int, Query(ge=0, le=64)] = 24,
    ) -> dict[str, Any]:
        from cutaway.inspect.attention import heads

        layers = None if layer is None else [layer]
        return await explorer.worker.run(request, lambda: heads(explorer.run(key), layers, picture).to_dict())

    @api.get("/traces/{key}/attention/{stage}")
    async def table(key: str, stage: Stage, layer: int, head: int, request: Request) -> Response:
        def work() -> Response:
            run = explorer.run(key)
            name = f"blocks.{run.layer(layer)}.attention.{stage}"
            return binary(run[name][run.head(head)].float().cpu().numpy())

        return await explorer.worker.run(request, work)

    @api.get("/traces/{key}/attention")
    async def row(
        key: str,
        layer: int,
        head: int,
        position: int,
        request: Request,
        parts: str = "scores,masked,weights",
    ) -> dict[str, Any]:
        from cutaway.inspect.attention import attention

        return await explorer.worker.run(
            request,
            lambda: attention(explorer.run(key), layer, head, position).to_dict(parts=tuple(parts.split(","))),
        )

    return api
