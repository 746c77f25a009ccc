"""Walk: the model's map, what the picture of a step shows, and how any one number in it was made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from cutaway.inspect.view import views
from cutaway.models.steps import Map, model_map
from cutaway.serve.explorer import Explorer


@dataclass(frozen=True)
class Shown(Map):
    """A model's map, and the views that fit it."""

    views: tuple[str, ...]


def router(explorer: Explorer) -> APIRouter:
    api = APIRouter()
    known = views(installed=True).values()  # as of the addresses, which are made now

    @api.get("/models/map")
    def model(name: Annotated[str, Query(max_length=1_000)]) -> Shown:
        """The steps of a loaded model, its places, and the views that fit it."""
        lm = explorer.models.get(name)
        fitting = tuple(one.name for one in known if one.fits(lm))
        return Shown(**vars(model_map(lm.config)), views=fitting)

    @api.get("/traces/{key}/walk/{step}")
    async def view(
        key: str,
        step: str,
        request: Request,
        layer: int = 0,
        head: int = 0,
        position: int = -1,
        limit: Annotated[int, Query(ge=1, le=128)] = 32,
    ) -> dict[str, Any]:
        from cutaway.inspect.walk import walk

        return await explorer.worker.run(
            request, lambda: walk(explorer.run(key), step, layer, head, position, limit).to_dict()
        )

    @api.get("/traces/{key}/explain")
    async def cell(
        key: str,
        request: Request,
        name: str,
        position: int,
        column: int,
        head: int | None = None,
        terms: Annotated[int, Query(ge=0, le=64)] = 8,
    ) -> dict[str, Any]:
        from cutaway.inspect.arithmetic import explain

        return await explorer.worker.run(
            request, lambda: explain(explorer.run(key), name, position, column, head, terms).to_dict()
        )

    return api
