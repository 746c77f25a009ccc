"""The explorer over HTTP: the page and its files, the models, the runs, and a view of a run by name.

    GET  /api/models                      what can be chosen
    POST /api/models          {name}      wake one;  GET /api/models/waking?name=  how far it is
    GET  /api/models/map?name=            its steps and its places, by which the pages draw it
    POST /api/tokens          {model, text, ids}    how a text is cut, and what ids stand for
    POST /api/traces          {model, text, more}   carry a text through; gives an id, the tokens and the shapes
    GET  /api/tour                        the tour that the explorer was given, as its file says it now
    GET  /api/progress                    how far the answer is that is being computed
    POST /api/facts           {model, text, facts}  what the sentences of the guided tour claim, as numbers
    POST /api/beside          {left, right, of}     how two sides differ: two texts, or two models
    POST /api/both_ways       {model, text}         an encoder's attention beside the built-in GPT-2's
    GET  /api/traces/ID/VIEW?...          a piece of it: what `cutaway.inspect` says, as JSON (or as numbers)

Every mistake is `{"error": {"code", "what", "remedy", "values"}}`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, Field
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cutaway import __version__
from cutaway.errors import CutawayError
from cutaway.inspect.numbers import tokens_of
from cutaway.serve.explorer import Explorer, Forgotten
from cutaway.serve.models import NotAwake, Waking
from cutaway.serve.openai import errors as openai
from cutaway.serve.part import Part
from cutaway.serve.schema import describe
from cutaway.serve.views import beside, both_ways, contest, declared, piano, routers
from cutaway.serve.worker import Outdated

STATIC = Path(__file__).parent / "static"
LOCAL = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d+)?", re.IGNORECASE)
HEADERS = {
    "Cache-Control": "no-cache",  # file names are fixed: ask each time whether they changed
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
    "frame-ancestors 'self'",  # two sides: the page shows itself beside itself
}
LONGEST = 2_000_000
"""Characters a text may have before it is even cut into tokens."""


class Name(BaseModel):
    name: str = Field(min_length=1, max_length=1_000)


class Text(BaseModel):
    """A text, the tokens picked after it, and what is changed inside the model while it is read."""

    model: str = "builtin"
    text: str = Field("", max_length=LONGEST)
    more: list[int] = Field(default_factory=list, max_length=4_096)
    changes: list[dict[str, Any]] = Field(default_factory=list, max_length=64)


class Words(BaseModel):
    """A text to cut into tokens, or ids to show as tokens."""

    model: str = "builtin"
    text: str = Field("", max_length=LONGEST)
    ids: list[int] = Field(default_factory=list, max_length=4_096)


def create_app(explorer: Explorer, hosts: re.Pattern[str] = LOCAL, parts: Sequence[Part] = ()) -> FastAPI:
    """The explorer as an ASGI app, and the parts that are served beside it.

    Only pages that it served itself may ask it: `hosts` are its own names.
    """

    @asynccontextmanager
    async def living(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as ends:
            ends.callback(explorer.close)
            for part in parts:
                ends.push_async_callback(part.end)
                await part.begin()
            yield

    app = FastAPI(title="Cutaway", version=__version__, lifespan=living, docs_url=None, redoc_url=None)
    app.state.explorer = explorer
    app.add_middleware(OwnPagesOnly, hosts=hosts)
    for kind in (
        CutawayError,
        openai.ApiError,
        RequestValidationError,
        HTTPException,
        Outdated,
        MemoryError,
        Exception,
    ):
        app.add_exception_handler(kind, refuse)
    app.include_router(shell(explorer), prefix="/api")
    for router in routers(explorer):
        app.include_router(router, prefix="/api")
    for part in parts:
        part.mount(app)
    describe(app, declared.results() | beside.results() | both_ways.results() | contest.results() | piano.results())
    if STATIC.is_dir():
        app.mount("/", StaticFiles(directory=STATIC, html=True))
    return app


def shell(explorer: Explorer) -> APIRouter:
    """What every page needs: that the server lives, the models, and the runs."""
    api = APIRouter()

    @api.get("/health")
    def health() -> dict[str, str]:
        return {"version": __version__}

    @api.get("/tour")
    def tour() -> dict[str, Any]:
        """The tour that the explorer was given, if any; and whether a presentation can have a remote control."""
        return {"tour": explorer.tour and explorer.tour.get(), "remote": explorer.presenting}

    @api.get("/progress")
    def working() -> dict[str, Any]:
        """How far the question is that the models are busy with."""
        return explorer.worker.progress()

    @api.get("/models")
    def models() -> list[dict[str, Any]]:
        return explorer.models.listing()

    @api.post("/models")
    def wake(model: Name) -> dict[str, Any]:
        return waking(explorer.models.wake(model.name))

    @api.get("/models/waking")
    def progress(name: Annotated[str, Query(max_length=1_000)]) -> dict[str, Any]:
        return waking(explorer.models.progress(name))

    @api.post("/tokens")
    def tokens(body: Words) -> list[dict[str, Any]]:
        lm = explorer.models.get(body.model)
        return [one.to_dict() for one in tokens_of(lm.tokenizer, [*lm.ids(body.text), *lm.ids(body.ids)])]

    @api.post("/traces")
    async def trace(body: Text, request: Request) -> dict[str, Any]:
        def work() -> dict[str, Any]:
            key, run = explorer.trace(body.model, body.text, body.more, body.changes)
            about = run.to_dict()
            del about["names"]  # those of the model's map, and the most of it
            return {"id": key, **about, "model": body.model}

        return await explorer.worker.run(request, work)

    return api


def waking(now: Waking) -> dict[str, Any]:
    error = None if now.error is None else explain(now.error)[1]
    return {
        "name": now.name, "phase": now.phase, "file": now.file, "done": now.done, "total": now.total, "error": error
    }  # fmt: skip


class OwnPagesOnly:
    """Refuse what a page from elsewhere sends through the user's browser, by address or by trickery with names.

    Plain ASGI: behind Starlette's own kind of middleware an endpoint never learns that its asker has hung up.
    """

    def __init__(self, app: ASGIApp, hosts: re.Pattern[str]):
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        asked = Headers(scope=scope)
        origin = asked.get("origin")
        if not self.hosts.fullmatch(asked.get("host", "")) or (
            origin and not self.hosts.fullmatch(origin.partition("://")[2])
        ):
            said = "This explorer answers only the page it served itself."
            plain = openai.is_openai(scope["path"])
            body = openai.body(403, said) if plain else {"error": message("elsewhere", said)}
            await JSONResponse(body, 403)(scope, receive, send)
            return

        async def answer(part: Message) -> None:
            if part["type"] == "http.response.start":
                MutableHeaders(scope=part).update(HEADERS)
            await send(part)

        await self.app(scope, receive, answer)


def refuse(request: Request, error: Exception) -> Response:
    if openai.is_openai(request.url.path) or isinstance(error, openai.ApiError):
        if isinstance(error, HTTPException) and error.status_code == 404:
            error = otherwise(request) or error
        code, said, headers = openai.explain(error)
        return JSONResponse(said, code, headers)
    status, body = explain(error)
    return JSONResponse({"error": body}, status)


def otherwise(request: Request) -> openai.ApiError | None:
    """Where there is nothing because it was asked for with another method than the address answers to."""
    for address, methods in request.app.openapi()["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", address), request.url.path):
            if request.method.lower() in methods:
                return None
            known = ", ".join(sorted(one.upper() for one in methods))
            return openai.ApiError(405, f"This address answers to {known}, not to {request.method}.", allow=known)
    return None


def explain(error: Exception) -> tuple[int, dict[str, Any]]:
    """A mistake as the page shows it: what was wrong, and what to do."""
    for kind, status, code in (
        (NotAwake, 409, "asleep"),
        (Forgotten, 404, "forgotten"),
        (CutawayError, 422, "mistake"),
    ):
        if isinstance(error, kind):
            return status, message(error.code or code, str(error), error.values)
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        return 422, message("mistake", f"{where}: {first['msg']}.")
    if isinstance(error, HTTPException):
        return error.status_code, message("missing", f"There is nothing at this address: {error.detail}.")
    if isinstance(error, Outdated):
        return 499, message("outdated", "A newer question took the place of this one.")
    if isinstance(error, MemoryError):
        return 507, message("memory", "There is not enough memory for this. Choose a smaller model or a shorter text.")
    text = f"{type(error).__name__}: {error}"
    return 500, message("bug", f"This is a bug in Cutaway: {text}. Please report it.", {"what": text})


def message(code: str, text: str, values: dict[str, Any] | None = None) -> dict[str, Any]:
    what, _, remedy = text.partition(". ")
    return {"code": code, "what": what if what.endswith(".") else f"{what}.", "remedy": remedy, "values": values or {}}
