"""Large tables as numbers: any intermediate, one head at each stage, and the activations of a layer."""

from __future__ import annotations

from enum import StrEnum

from fastapi import APIRouter, Request, Response

from cutaway.inspect.view import find
from cutaway.serve.arrays import binary
from cutaway.serve.explorer import Explorer


class Stage(StrEnum):
    """What the table of a head holds: before the mask, after it, after softmax."""

    scores = "scores"
    masked = "masked"
    weights = "weights"


def router(explorer: Explorer) -> APIRouter:
    api = APIRouter()

    @api.get("/traces/{key}/attention/{stage}")
    async def head_table(key: str, stage: Stage, layer: int, head: int, request: Request) -> Response:
        def work() -> Response:
            run = explorer.run(key)
            find("attention").check(run.lm)
            name = f"blocks.{run.layer(layer)}.attention.{stage}"
            return binary(run[name][run.head(head)].float().cpu().numpy())

        return await explorer.worker.run(request, work)

    @api.get("/traces/{key}/activations")
    async def activations(key: str, layer: int, request: Request) -> Response:
        def work() -> Response:
            run = explorer.run(key)
            find("neurons").check(run.lm)
            return binary(run[f"blocks.{run.layer(layer)}.mlp.activation"].float().cpu().numpy())

        return await explorer.worker.run(request, work)

    @api.get("/traces/{key}/table")
    async def table(key: str, name: str, request: Request, head: int | None = None) -> Response:
        """All of an intermediate, or one head's, as numbers: of a long text too many for JSON."""
        from cutaway.inspect.values import values

        return await explorer.worker.run(request, lambda: binary(values(explorer.run(key), name, head=head).values))

    return api
