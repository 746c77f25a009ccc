"""Any piece of any named intermediate: the strips that every page draws."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from cutaway.serve.arrays import binary
from cutaway.serve.explorer import Explorer


def router(explorer: Explorer) -> APIRouter:
    api = APIRouter()

    @api.get("/traces/{key}/values")
    async def view(
        key: str, name: str, request: Request, position: int | None = None, head: int | None = None
    ) -> dict[str, Any]:
        from cutaway.inspect.values import values

        return await explorer.worker.run(request, lambda: values(explorer.run(key), name, position, head).to_dict())

    @api.get("/traces/{key}/table")
    async def table(key: str, name: str, request: Request, head: int | None = None) -> Response:
        """All of an intermediate, or one head's, as numbers: of a long text too many for JSON."""
        from cutaway.inspect.values import values

        return await explorer.worker.run(request, lambda: binary(values(explorer.run(key), name, head=head).values))

    return api
