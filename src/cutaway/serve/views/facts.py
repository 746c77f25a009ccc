"""Facts: the numbers that the sentences of the guided tour speak of, on the model being shown."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from cutaway.serve.explorer import Explorer


class Questions(BaseModel):
    """A text, and what is asked about it: kinds of `cutaway.inspect.facts`, each under a name."""

    model: str = Field("builtin", max_length=1_000)
    text: str = Field("", max_length=10_000)
    facts: dict[str, dict[str, Any]] = Field(max_length=8)
    own: bool = False
    """Whether the text is the reader's own, and not the one that the questions were written for."""


def router(explorer: Explorer) -> APIRouter:
    api = APIRouter()

    @api.post("/facts")
    async def answer(body: Questions, request: Request) -> dict[str, Any]:
        from cutaway.inspect.facts import facts

        def work() -> dict[str, Any]:
            found = facts(explorer.trace(body.model, body.text)[1], body.facts, body.own)
            return {name: {key: value.to_dict() for key, value in fact.items()} for name, fact in found.items()}

        return await explorer.worker.run(request, work)

    return api
