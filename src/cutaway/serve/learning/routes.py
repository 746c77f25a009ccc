"""What the page of learning asks for.

    POST /api/learning              {page, text, seed}   a training: a line that says what it is, and then nothing; it
                                                         lives as long as this answer is being listened to
    POST /api/learning/KEY/show     {step, row, position, known}   train as far as this step, and tell of it
    GET  /api/learning/KEY/matrix   one matrix after a step, as numbers
    GET  /api/learning/KEY/cell     one weight in a step
    GET  /api/learning/KEY/sample   what the model writes after a step
    POST /api/learning/KEY/open     {step}   put the untrained and the trained model among those of the explorer
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from cutaway.serve.arrays import binary

if TYPE_CHECKING:
    from cutaway.serve.explorer import Explorer

LOOK = 0.25
"""Seconds between two looks whether the page is still there."""
STEPS = 100_000
Step = Annotated[int, Query(ge=0, le=STEPS)]
Named = Annotated[str, Query(max_length=200)]


class Begin(BaseModel):
    """What is to be learned, and by whom: a page has one training at a time."""

    page: str = Field("", max_length=64)
    text: str = Field(max_length=100_000)
    seed: int = Field(0, ge=0, lt=1 << 31)


class Shown(BaseModel):
    """Which step, and which position of which of its windows; the losses of the first `known` steps are known."""

    step: int = Field(0, ge=0, le=STEPS)
    row: int = Field(0, ge=0, lt=16)
    position: int = Field(0, ge=0, lt=1_024)
    known: int = Field(0, ge=0, le=STEPS)


class Opened(BaseModel):
    step: int = Field(0, ge=0, le=STEPS)


def router(explorer: Explorer) -> APIRouter:
    api = APIRouter(prefix="/learning")
    sessions = explorer.learning

    @api.post("")
    async def begin(body: Begin, request: Request) -> StreamingResponse:
        """Begin; the training ends with the answer."""
        key, about = await run_in_threadpool(sessions.begin, body.page or body.text[:64], body.text, body.seed)

        async def living() -> AsyncIterator[bytes]:
            try:
                yield json.dumps({"key": key, **about}).encode() + b"\n"
                while key in sessions.open and not await request.is_disconnected():
                    await asyncio.sleep(LOOK)
            finally:
                sessions.end(key)

        return StreamingResponse(living(), media_type="application/x-ndjson")

    @api.post("/{key}/show")
    def show(key: str, body: Shown) -> dict[str, Any]:
        found: dict[str, Any] = sessions.ask(key, "show", **body.model_dump())[0]
        return found

    @api.get("/{key}/matrix")
    def matrix(
        key: str, name: Named, step: Step = 0, kind: Literal["value", "change", "update", "gradient"] = "value"
    ) -> Response:
        said, raw = sessions.ask(key, "matrix", step=step, name=name, kind=kind)
        return binary(np.frombuffer(raw, "<f4").reshape(said["shape"]))

    @api.get("/{key}/cell")
    def cell(key: str, name: Named, step: Step = 0, row: int = 0, column: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = sessions.ask(key, "cell", step=step, name=name, row=row, column=column)[0]
        return found

    @api.get("/{key}/sample")
    def sample(key: str, step: Step = 0) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = sessions.ask(key, "sample", step=step)[0]
        return found

    @api.post("/{key}/open")
    def open_models(key: str, body: Opened) -> list[str]:
        """The names under which both can be chosen now."""
        folders = sessions.save(key, body.step)
        for name, folder in folders.items():
            explorer.models.offer(name, folder)
            explorer.forget(name)
        return list(folders)

    return api
