"""Weights: every matrix of a model with its shape and count, its picture, and how its numbers are spread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request

from cutaway.errors import CutawayError, nearest
from cutaway.inspect.numbers import rounded
from cutaway.models.gpt2.shape import SIZES
from cutaway.serve.explorer import Explorer

if TYPE_CHECKING:
    from cutaway.inspect.picture import Picture
    from cutaway.language_model import LanguageModel

Model = Annotated[str, Query(max_length=1_000)]
Name = Annotated[str, Query(max_length=200)]


def router(explorer: Explorer) -> APIRouter:
    api = APIRouter()

    @api.get("/weights")
    def table(model: Model = "builtin", size: Annotated[str, Query(max_length=100)] = "") -> dict[str, Any]:
        """Every matrix of a model; or of one of GPT-2's four sizes, from its shape alone."""
        from cutaway.inspect.parameters import parameters

        if size and size not in SIZES:
            raise CutawayError(f"GPT-2 has no size {size!r}.{nearest(size, SIZES)}")
        config = SIZES[size] if size else explorer.models.get(model).config
        return {"model": size or model, **parameters(config).to_json()}

    @api.get("/weights/sizes")
    def sizes() -> list[dict[str, Any]]:
        """GPT-2's four sizes, with what the paper printed and how it came to it."""
        from cutaway.inspect.parameters import parameters

        found = []
        for name, config in SIZES.items():
            told = parameters(config).to_json()
            shape = {one: getattr(config, one) for one in ("layers", "heads", "width")}
            found.append({"name": name, **shape, **{one: told[one] for one in ("total", "parts", "paper")}})
        return found

    @api.get("/weights/matrix")
    async def matrix(
        model: Model,
        name: Name,
        request: Request,
        size: Annotated[int, Query(ge=1, le=128)] = 64,
        bins: Annotated[int, Query(ge=1, le=200)] = 61,
    ) -> dict[str, Any]:
        from cutaway.inspect.distribution import distribution

        def work() -> dict[str, Any]:
            lm = explorer.models.get(model)
            spread = distribution(lm, name, bins).to_dict()
            return {"model": model, "picture": as_stored(lm, name, size).to_dict(), "distribution": spread}

        asked = (model, "matrix", name, size, bins)  # weights do not change
        return await explorer.drawing.run(request, lambda: explorer.once(asked, work))

    @api.get("/weights/pictures")
    async def pictures(
        model: Model,
        name: Annotated[list[str], Query(min_length=1, max_length=24)],
        request: Request,
        size: Annotated[int, Query(ge=1, le=32)] = 16,
    ) -> dict[str, Any]:
        """Small pictures of several matrices: the means, and the largest weight of each."""

        def work() -> dict[str, Any]:
            lm = explorer.models.get(model)
            found = {}
            for one in name:
                explorer.drawing.check()
                seen = as_stored(lm, one, size)
                found[one] = {"mean": rounded(seen.mean), "std": rounded(seen.total["std"])}
            return {"model": model, "pictures": found}

        return await explorer.drawing.run(request, work)

    @api.get("/weights/neighbours")
    async def neighbours(
        request: Request, model: Model, word: Name, k: Annotated[int, Query(ge=1, le=32)] = 8
    ) -> dict[str, Any]:
        """The tokens whose embeddings are most like that of a word."""
        from cutaway.inspect.discover import neighbours

        return await explorer.drawing.run(request, lambda: neighbours(explorer.models.get(model), word, k).to_dict())

    @api.get("/weights/waves")
    async def waves(request: Request, model: Model) -> dict[str, Any]:
        """How the positions lie along the directions in which they differ most."""
        from cutaway.inspect.discover import waves

        def work() -> dict[str, Any]:
            found: dict[str, Any] = waves(explorer.models.get(model)).to_dict()
            return found

        return await explorer.drawing.run(request, lambda: explorer.once((model, "waves"), work))

    return api


def as_stored(lm: LanguageModel, name: str, size: int) -> Picture:
    """A matrix as the page draws it and its table counts it: inputs x outputs."""
    from cutaway.inspect.parameters import find
    from cutaway.inspect.picture import picture

    return picture(lm, find(lm.config, name).stored, size)
