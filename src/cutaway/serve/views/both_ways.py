"""An encoder's attention beside that of the built-in GPT-2, over the same sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from cutaway.serve.explorer import Explorer

OTHER = "builtin"


class Sentence(BaseModel):
    """A text in an encoder, one of its heads, and the head of the built-in GPT-2 that stands beside it."""

    model: str = Field(max_length=1_000)
    text: str = Field("", max_length=100_000)
    layer: int = Field(0, ge=0)
    head: int = Field(0, ge=0)
    other_layer: int | None = Field(None, ge=0)
    other_head: int | None = Field(None, ge=0)


def results() -> dict[tuple[str, str], Callable[[], Any]]:
    """What is answered, for the OpenAPI document; looked up when it is asked for."""

    def answer() -> Any:
        from cutaway.inspect.both_ways import BothWays

        return BothWays

    return {("/api/both_ways", "post"): answer}


def router(explorer: Explorer) -> APIRouter:
    api = APIRouter()

    @api.post("/both_ways")
    async def both_ways(body: Sentence, request: Request) -> dict[str, Any]:
        """The two heads, over pieces of the sentence that both models cut alike."""
        from cutaway.inspect.both_ways import both_ways as look
        from cutaway.inspect.runs import run
        from cutaway.inspect.view import find

        def work() -> dict[str, Any]:
            mine = explorer.trace(body.model, body.text)[1]
            find("sentences").check(mine.lm)
            lm: Any = explorer.models.for_task(OTHER)
            other = run(lm, explorer.tokens(lm, body.text, ()))
            return look(mine, other, body.layer, body.head, body.other_layer, body.other_head).to_dict()

        found: dict[str, Any] = await explorer.worker.run(request, work)
        return found

    return api
