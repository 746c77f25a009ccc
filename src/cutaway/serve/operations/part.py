"""Operations as a part of the server: health, readiness and metrics, and the layers every request passes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.middleware.cors import CORSMiddleware

from cutaway import __version__
from cutaway.errors import CutawayError
from cutaway.serve.openai.errors import body
from cutaway.serve.operations.access import Access
from cutaway.serve.operations.guard import Guard
from cutaway.serve.operations.observe import Figures, Observe, set_up_logs, spans
from cutaway.serve.part import Part
from cutaway.serve.pool import ModelPool
from cutaway.serve.settings import ServeSettings
from cutaway.serve.store.database import Database, Unavailable
from cutaway.serve.store.keys import Keys
from cutaway.serve.store.storage import NoRoom
from cutaway.serve.teaching.jobs import Jobs


class Operations(Part):
    def __init__(self, settings: ServeSettings, pool: ModelPool, database: Database | None):
        self.settings, self.pool, self.database = settings, pool, database
        self.figures = Figures()
        self.figures.ask("cutaway_models", "Models of the server.", ("state",), self.models)
        if database is not None:
            self.figures.ask("cutaway_jobs", "Fine-tuning jobs.", ("status",), self.jobs)
        self.figures.ask("cutaway_texts", "Texts and tokens of each model in memory.", ("model", "figure"), self.texts)
        self.ready = False

    def texts(self) -> dict[tuple[str, str], float]:
        awake = list(self.pool.awake.items())
        return {(name, figure): count for name, one in awake for figure, count in one.writer.figures().items()}

    def models(self) -> dict[tuple[str, ...], float]:
        return {("offered",): len(self.pool.offers), ("loaded",): len(self.pool.awake)}

    def jobs(self) -> dict[tuple[str, ...], float]:
        try:
            counts = Jobs(self.database).counts() if self.database is not None else {}
            return {(status,): count for status, count in counts.items()}
        except Unavailable:
            return {}

    def mount(self, app: FastAPI) -> None:
        api = APIRouter(tags=["operations"])

        @api.get("/health")
        async def health() -> dict[str, str]:
            """That the process lives."""
            return {"status": "ok", "version": __version__}

        @api.get("/ready", responses={503: {"description": "Not now."}})
        async def ready() -> Response:
            """That it can be asked: it has begun, it is not about to end, and its database answers."""
            wrong = None if self.ready else "The server begins or ends."
            if wrong is None and self.database is not None:
                try:
                    await asyncio.to_thread(self.database.ping)
                except CutawayError as error:
                    wrong = str(error)
            return JSONResponse({"status": wrong or "ok"}, 503 if wrong else 200)

        @api.get("/metrics")
        async def metrics() -> Response:
            """Figures for Prometheus."""
            text = await asyncio.to_thread(self.figures.text)
            return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

        app.include_router(api)
        app.add_exception_handler(Unavailable, unavailable)
        app.add_exception_handler(NoRoom, unavailable)
        if self.settings.needs_keys:
            app.add_middleware(Access, find=self.find_key(), origins=self.settings.origins)
        app.add_middleware(Guard, settings=self.settings)
        if self.settings.origins:
            app.add_middleware(
                CORSMiddleware, allow_origins=list(self.settings.origins), allow_methods=["GET", "POST", "DELETE"],
                allow_headers=["Authorization", "Content-Type"],
            )  # fmt: skip
        span = spans(self.settings.traces) if self.settings.traces else None
        app.add_middleware(Observe, figures=self.figures, span=span)

    def find_key(self) -> Callable[[str], Any]:
        if self.database is None:
            raise CutawayError("A server that needs keys needs a folder to keep them in (state).")
        keys = Keys(self.database)
        if all(key.revoked_at is not None for key in keys.listing()):
            asked = "This server is told to ask for keys (require_keys)"
            why = asked if self.settings.require_keys else "This server is to be reached from other machines"
            raise CutawayError(f"{why}, so it needs a key, and there is none. Make one: cutaway serve keys add NAME")
        return keys.find

    async def begin(self) -> None:
        set_up_logs(self.settings)
        self.ready = True

    async def end(self) -> None:
        self.ready = False


def unavailable(request: Request, error: Exception) -> Response:
    """The disk is full or the database busy: nothing was written, and the client may try again."""
    full = isinstance(error, NoRoom) or getattr(error, "full", False)
    status = 507 if full else 503
    return JSONResponse(body(status, str(error)), status, None if full else {"Retry-After": "2"})
