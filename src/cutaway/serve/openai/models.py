"""`GET /v1/models`: what can be asked."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, FastAPI

from cutaway.serve.part import Part
from cutaway.serve.pool import ModelPool, Offer


class ModelList(Part):
    """The models of this server, and that they can be asked."""

    def __init__(self, pool: ModelPool):
        self.pool = pool

    def mount(self, app: FastAPI) -> None:
        api = APIRouter(prefix="/v1", tags=["models"])

        @api.get("/models")
        async def models() -> dict[str, Any]:
            """Every model of this server."""
            return {"object": "list", "data": [self.about(offer) for offer in self.pool.offers.values()]}

        @api.get("/models/{name:path}")
        async def model(name: str) -> dict[str, Any]:
            """One of them."""
            return self.about(self.pool.find(name))

        app.include_router(api)

    def about(self, offer: Offer) -> dict[str, Any]:
        return {
            "id": offer.name, "object": "model", "created": offer.created, "owned_by": offer.owner,
            "loaded": offer.name in self.pool.awake,
        }  # fmt: skip

    async def end(self) -> None:
        self.pool.close()
