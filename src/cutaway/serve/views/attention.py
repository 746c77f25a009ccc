"""Attention: all heads at a glance, one head's table at each stage, and one row of it with its numbers."""

from __future__ import annotations

from collections import OrderedDict
from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from cutaway.inspect.numbers import rounded
from cutaway.serve.arrays import binary
from cutaway.serve.explorer import Explorer

GLANCES = 256
"""So many answers about all heads are remembered: small, and for a long text dear."""


class Stage(StrEnum):
    """What the table holds: before the mask, after it, after softmax."""

    scores = "scores"
    masked = "masked"
    weights = "weights"


def router(explorer: Explorer) -> APIRouter:
    api = APIRouter()
    glances: OrderedDict[tuple[str, int | None, int], dict[str, Any]] = OrderedDict()

    @api.get("/traces/{key}/heads")
    async def glance(
        key: str,
        request: Request,
        layer: int | None = None,
        picture: Annotated[int, Query(ge=0, le=64)] = 24,
    ) -> dict[str, Any]:
        from cutaway.inspect.attention import heads

        def work() -> dict[str, Any]:
            run, asked = explorer.run(key), (key, layer, picture)
            if asked not in glances:
                glances[asked] = heads(run, None if layer is None else [layer], picture).to_dict()
                while len(glances) > GLANCES:
                    glances.popitem(last=False)
            return glances[asked]

        return await explorer.worker.run(request, work)

    @api.get("/traces/{trace}/looking")
    async def head_between(trace: str, position: int, key: int, request: Request) -> dict[str, Any]:
        """The head that looks most from one token to another."""
        from cutaway.inspect.attention import looking

        def work() -> dict[str, Any]:
            layer, head, weight = looking(explorer.run(trace), position, key)
            return {"layer": layer, "head": head, "weight": rounded(weight)}

        return await explorer.worker.run(request, work)

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
