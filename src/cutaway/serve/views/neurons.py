"""Neurons: the activations of a layer, the strongest at a token, one of them, and what fires together."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from cutaway.serve.arrays import binary
from cutaway.serve.explorer import Explorer

Layers = Annotated[list[int] | None, Query(max_length=256)]
Seed = Annotated[int, Query(ge=0, lt=1 << 32)]


def router(explorer: Explorer) -> APIRouter:
    api = APIRouter()

    @api.get("/traces/{key}/activations")
    async def table(key: str, layer: int, request: Request) -> Response:
        def work() -> Response:
            run = explorer.run(key)
            return binary(run[f"blocks.{run.layer(layer)}.mlp.activation"].float().cpu().numpy())

        return await explorer.worker.run(request, work)

    @api.get("/traces/{key}/neurons")
    async def strongest(
        key: str,
        request: Request,
        layer: Layers = None,
        position: int | None = None,
        top: Annotated[int, Query(ge=1, le=64)] = 10,
    ) -> dict[str, Any]:
        from cutaway.inspect.neurons import neurons

        return await explorer.worker.run(request, lambda: neurons(explorer.run(key), layer, top, position).to_dict())

    @api.get("/traces/{key}/neuron")
    async def one(key: str, layer: int, neuron: int, request: Request) -> dict[str, Any]:
        from cutaway.inspect.neurons import neuron as look

        return await explorer.worker.run(request, lambda: look(explorer.run(key), layer, neuron).to_dict())

    @api.get("/traces/{key}/groups")
    async def alike(
        key: str, request: Request, count: Annotated[int, Query(ge=1, le=64)] = 8, layer: Layers = None, seed: Seed = 0
    ) -> dict[str, Any]:
        from cutaway.inspect.factors import groups

        return await explorer.worker.run(request, lambda: groups(explorer.run(key), count, layer, seed).to_dict())

    @api.get("/traces/{key}/factors")
    async def parts(
        key: str, request: Request, count: Annotated[int, Query(ge=2, le=20)] = 8, layer: Layers = None, seed: Seed = 0
    ) -> dict[str, Any]:
        from cutaway.inspect.factors import factors

        return await explorer.worker.run(request, lambda: factors(explorer.run(key), count, layer, seed).to_dict())

    return api
