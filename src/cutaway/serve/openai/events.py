"""Answers that come piece by piece (server-sent events), and askers who go away before the end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from cutaway.serve.openai import errors

T = TypeVar("T")
DONE = b"data: [DONE]\n\n"


class Gone(Exception):
    """Whoever asked has hung up."""


def event(data: Any) -> bytes:
    """One event; JSON has no line ends inside, so that it is one line."""
    return b"data: " + json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n\n"


class EventStream(Response):
    """Sends events as they come. When the client goes away the source is closed at once, in the middle of a wait."""

    media_type = "text/event-stream"

    def __init__(self, source: AsyncIterator[bytes]):
        super().__init__(headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self.source = source

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.create_task(self.send_all(send))
        watching = asyncio.create_task(hung_up(receive))
        try:
            await asyncio.wait({sending, watching}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, watching):
                task.cancel()
            for task in (sending, watching):
                with suppress(asyncio.CancelledError, OSError):
                    await task

    async def send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            async for part in self.source:
                await send({"type": "http.response.body", "body": part, "more_body": True})
        except Exception as error:  # the status has been sent: the error is an event
            body = errors.explain(error)[1]
            await send({"type": "http.response.body", "body": event(body), "more_body": True})
        finally:
            close = getattr(self.source, "aclose", None)
            if close is not None:
                await close()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def hung_up(receive: Receive) -> None:
    """Returns when the client has gone away."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Do the work, or stop it as soon as the client goes away."""
    working = asyncio.create_task(work)
    watching = asyncio.create_task(hung_up(request.receive))
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Gone
        return working.result()
    finally:
        for task in (working, watching):
            if not task.done():
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
