"""Presenting, and the remote control of it: a second browser sends next, back or play, the page on the wall obeys.

    POST /api/stage                       begin: gives a token nobody can guess, and where a phone finds the remote
    POST /api/stage/TOKEN     {...}       what is being shown, for the remote to say
    GET  /api/stage/TOKEN/orders          a stream of what the remote asks for
    GET  /api/remote/TOKEN                a stream of what is being shown
    POST /api/remote/TOKEN    {do}        next, back or play

The explorer answers on this machine only. With `cutaway explore --remote` a second door is open to the network: it
gives out the page's files and answers under /api/remote/, for those who have the token, and nothing else.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Literal

from fastapi import APIRouter, FastAPI, Path
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, Field
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from cutaway.errors import CutawayError
from cutaway.serve.part import Part
from cutaway.serve.recent import Recent

STAGES = 8
"""So many presentations can be under way; beginning another ends the one used longest ago."""
LISTENERS = 16
"""So many browsers can listen to one."""
ALIVE = 15.0
"""Seconds after which a stream says that it is still there."""
Token = Path(max_length=64)


class NoStage(CutawayError):
    """There is no such presentation, or it is over."""


class OnTheWall(BaseModel):
    """What the page on the wall shows: the step, its place in the tour, and the words only the remote shows."""

    title: str = Field("", max_length=2_000)
    at: int = Field(0, ge=0)
    all: int = Field(0, ge=0)
    part: str = Field("", max_length=40)
    notes: str = Field("", max_length=20_000)
    next: str = Field("", max_length=2_000)
    language: str = Field("", max_length=20)


class Order(BaseModel):
    do: Literal["next", "back", "play"]


class Begun(BaseModel):
    """A presentation's token, and the address where a phone in the same network finds the remote, if it can."""

    token: str
    address: str | None


@dataclass
class Channel:
    """What is said to everyone who listens; whoever comes later hears the last of it, if there is to be any."""

    repeat: bool = False
    last: dict[str, Any] | None = None
    listeners: list[asyncio.Queue[dict[str, Any]]] = field(default_factory=list)

    def say(self, what: dict[str, Any]) -> None:
        self.last = what if self.repeat else None
        for listener in self.listeners:
            listener.put_nowait(what)

    async def heard(self) -> AsyncIterator[str]:
        """As server-sent events, until the listener hangs up."""
        mine: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.listeners = [*self.listeners[-LISTENERS + 1 :], mine]
        if self.last is not None:
            mine.put_nowait(self.last)
        try:
            yield ": here\n\n"
            while mine in self.listeners:
                try:
                    yield f"data: {json.dumps(await asyncio.wait_for(mine.get(), ALIVE))}\n\n"
                except TimeoutError:
                    yield ": here\n\n"
        finally:
            self.listeners = [one for one in self.listeners if one is not mine]


@dataclass
class Stage:
    orders: Channel = field(default_factory=Channel)
    shown: Channel = field(default_factory=lambda: Channel(repeat=True))


class Presenting(Part):
    """Presentations, as a part of the explorer: those under way, by token.

    `door` is the port that is open to the network, if there is one, and `address` where a phone finds it.
    """

    def __init__(self, door: int | None = None, address: str | None = None):
        self.door, self.address = door, address
        self.under_way: Recent[str, Stage] = Recent(STAGES)

    def mount(self, app: FastAPI) -> None:
        app.include_router(router(self), prefix="/api")
        app.state.explorer.presenting = True
        if self.door is not None:
            app.add_middleware(Door, port=self.door)

    def begin_stage(self) -> str:
        token = secrets.token_urlsafe(24)
        self.under_way.keep(token, Stage())
        return token

    def find(self, token: str) -> Stage:
        if token not in self.under_way:
            raise NoStage("There is no such presentation, or it is over. Open the remote's link again.", "no_stage")
        return self.under_way.keep(token, self.under_way[token])


class Door:
    """What is asked through the port that is open to the network: the page's files and the remote, and nothing else."""

    def __init__(self, app: ASGIApp, port: int):
        self.app, self.port = app, port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or (scope.get("server") or ("", 0))[1] != self.port:
            await self.app(scope, receive, send)
            return
        asked = Headers(scope=scope)
        own = asked.get("origin", "").partition("://")[2] in ("", asked.get("host", ""))
        if not own or not lets_in(scope["method"], scope["path"]):
            said = {"code": "elsewhere", "what": "Only the remote control is here.", "remedy": "", "values": {}}
            await JSONResponse({"error": said}, 403)(scope, receive, send)
            return
        # Under which name it was asked does not matter here: whoever has no token gets nothing.
        headers = [(b"host", b"127.0.0.1"), *(one for one in scope["headers"] if one[0] not in (b"host", b"origin"))]
        await self.app({**scope, "headers": headers}, receive, send)


def lets_in(method: str, path: str) -> bool:
    page = path in ("/", "/index.html") or path.startswith("/assets/")
    return path.startswith("/api/remote/") or (method in ("GET", "HEAD") and page)


def router(stages: Presenting) -> APIRouter:
    api = APIRouter()

    def stream(channel: Channel) -> StreamingResponse:
        return StreamingResponse(channel.heard(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    @api.post("/stage")
    async def begin() -> Begun:
        """Begin a presentation that a remote can control."""
        return Begun(token=stages.begin_stage(), address=stages.address)

    @api.post("/stage/{token}", status_code=204)
    async def show(shown: OnTheWall, token: str = Token) -> None:
        """What is being shown now."""
        stages.find(token).shown.say(shown.model_dump())

    @api.get("/stage/{token}/orders", response_class=StreamingResponse)
    async def orders(token: str = Token) -> StreamingResponse:
        """What the remote asks for, as it does."""
        return stream(stages.find(token).orders)

    @api.get("/remote/{token}", response_class=StreamingResponse)
    async def shown(token: str = Token) -> StreamingResponse:
        """What is being shown, as it changes."""
        return stream(stages.find(token).shown)

    @api.post("/remote/{token}", status_code=204)
    async def order(order: Order, token: str = Token) -> None:
        """Have the page on the wall go on, go back, or play."""
        stages.find(token).orders.say(order.model_dump())

    return api
