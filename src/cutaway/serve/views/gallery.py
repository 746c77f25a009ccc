"""The gallery: the examples of The Illustrated GPT-2 on a loaded model."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from cutaway.inspect.view import find
from cutaway.serve.explorer import Explorer

Model = Annotated[str, Query(max_length=1_000)]


def router(explorer: Explorer) -> APIRouter:
    api = APIRouter()

    def model(name: str) -> Any:
        lm = explorer.models.get(name)
        find("attention").check(lm)
        return lm

    @api.get("/gallery/words")
    async def words(request: Request, name: Model = "builtin", layer: int = 0, head: int = 0) -> dict[str, Any]:
        """ "robot must obey orders": who attends to whom, unmasked and masked."""
        from cutaway.inspect import gallery

        return await explorer.worker.run(request, lambda: gallery.four_words(model(name), layer, head).to_dict())

    @api.get("/gallery/mixture")
    async def mixture(request: Request, name: Model = "builtin") -> dict[str, Any]:
        """What "it" becomes in the second law."""
        from cutaway.inspect import gallery

        asked = (name, "gallery", "mixture")
        return await explorer.worker.run(
            request, lambda: explorer.once(asked, lambda: gallery.mixture(model(name)).to_dict())
        )

    @api.get("/gallery/loop")
    async def loop(request: Request, name: Model = "builtin", seed: int = 1) -> dict[str, Any]:
        """A text written with the likeliest token each time, and one that is drawn."""
        from cutaway.inspect import gallery

        return await explorer.worker.run(request, lambda: gallery.loop(model(name), seed=seed).to_dict())

    @api.get("/gallery/batch")
    async def batch(request: Request, name: Model = "builtin") -> dict[str, Any]:
        """Four examples for training from four words."""
        from cutaway.inspect import gallery

        return await explorer.worker.run(request, lambda: gallery.batch(model(name)).to_dict())

    return api
