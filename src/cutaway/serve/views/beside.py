"""Two sides: how two texts, or two models, differ in what a page shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from cutaway.serve.explorer import Explorer


class Side(BaseModel):
    model: str = Field("builtin", max_length=1_000)
    text: str = Field("", max_length=2_000_000)
    more: list[int] = Field(default_factory=list, max_length=4_096)


class Sides(BaseModel):
    """A text in a model on each side; what is compared (`cutaway.inspect.beside`), and where."""

    left: Side
    right: Side
    of: str = Field("next", max_length=40)
    position: int = -1
    other: int | None = None
    layer: int = Field(0, ge=0)
    head: int = Field(0, ge=0)


def results() -> dict[tuple[str, str], Callable[[], Any]]:
    """What is answered, for the OpenAPI document; looked up when it is asked for."""

    def beside() -> Any:
        from cutaway.inspect.beside import Beside

        return Beside

    return {("/api/beside", "post"): beside}


def router(explorer: Explorer) -> APIRouter:
    api = APIRouter()

    @api.post("/beside")
    async def compare(body: Sides, request: Request) -> dict[str, Any]:
        """How two sides differ."""
        from cutaway.inspect.beside import beside
        from cutaway.inspect.view import find

        def work() -> dict[str, Any]:
            runs = [explorer.trace(side.model, side.text, side.more)[1] for side in (body.left, body.right)]
            for run in runs:
                find("lens").check(run.lm)
            key = ("beside", body.model_dump_json())
            where: Any = body.model_dump(exclude={"left", "right"})
            return explorer.once(key, lambda: beside(runs[0], runs[1], **where).to_dict())

        found: dict[str, Any] = await explorer.worker.run(request, work)
        return found

    return api
