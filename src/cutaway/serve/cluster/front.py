"""What stands before the replicas where requests go by how they begin: it reads a request and hands it on whole.

Ray's own proxy chooses a replica before the body has come. The front reads the body, the router (router.py) chooses by
it, and the messages of the answer come back one by one. When the client goes away, the replica hears of it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cutaway.serve.cluster.affinity import beginning
from cutaway.serve.operations.access import Access, refusal
from cutaway.serve.operations.guard import Guard, Refused, whole
from cutaway.serve.settings import ServeSettings
from cutaway.serve.store import open_database
from cutaway.serve.store.keys import Keys

PLAIN = (
    "type", "asgi", "http_version", "method", "scheme", "path", "raw_path", "query_string", "root_path", "headers",
    "client", "server",
)  # fmt: skip
"""What a replica is told of a request; the rest belongs to the process that received it."""


def create_front(handle: Any, settings: ServeSettings) -> ASGIApp:
    """The front, which reads no body of one who has no key."""
    front = Front(handle, settings)
    return Access(front, Keys(open_database(settings)).find, settings.origins) if settings.needs_keys else front


class Front:
    """An ASGI app that has every request answered by a replica."""

    def __init__(self, handle: Any, settings: ServeSettings):
        self.handle = handle.options(stream=True, method_name="answer")
        self.guard = Guard(self, settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await lifespan(receive, send)
            return
        if scope["type"] != "http":
            return
        try:
            body = await whole(self.guard.counted(scope, receive))
        except Refused as error:
            await refusal(scope["path"], error.status, str(error))(scope, receive, send)
            return
        told = {key: scope[key] for key in PLAIN if key in scope}
        answer = self.handle.remote(told, body, beginning(body))
        gone = asyncio.ensure_future(disconnected(receive))
        gone.add_done_callback(lambda one: None if one.cancelled() else answer.cancel())
        begun = False
        try:
            async for message in answer:
                begun = True
                await send(message)
        except Exception as error:  # the replica has died, or the client has gone
            if gone.done():
                return
            if begun:
                raise  # the answer breaks off, and is seen to
            said = f"The replica that was to answer is gone ({type(error).__name__}). Try again."
            await refusal(scope["path"], 503, said, {"Retry-After": "1"})(scope, receive, send)
        finally:
            gone.cancel()


class Behind:
    """A replica that is asked by the front: the whole server, without a socket."""

    def __init__(self, settings: ServeSettings):
        self.settings, self.name = settings, secrets.token_hex(4)
        self.open = AsyncExitStack()
        self.app: Any = None
        self.beginning = asyncio.Lock()

    async def begin(self) -> None:
        """In the loop that answers, before the first request."""
        async with self.beginning:
            if self.app is None:
                from cutaway.serve.server import create_server

                app = create_server(self.settings)
                await self.open.enter_async_context(app.router.lifespan_context(app))
                self.app = app

    async def check_health(self) -> None:
        await self.begin()

    async def answer(self, scope: dict[str, Any], body: bytes, blocks: list[bytes]) -> AsyncIterator[Message]:
        """The messages of the answer, as the app sends them. `blocks` was for the router."""
        await self.begin()
        messages: asyncio.Queue[Message | Exception | None] = asyncio.Queue()
        gone, read = asyncio.Event(), False

        async def receive() -> Message:
            nonlocal read
            if not read:
                read = True
                return {"type": "http.request", "body": body, "more_body": False}
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["x-replica"] = self.name
            messages.put_nowait(message)

        async def run() -> None:
            try:
                await self.app(scope, receive, send)
                messages.put_nowait(None)
            except Exception as error:
                messages.put_nowait(error)

        task = asyncio.ensure_future(run())
        try:
            while (message := await messages.get()) is not None:
                if isinstance(message, Exception):
                    raise message
                yield message
        finally:
            gone.set()
            if not task.done():
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def end(self) -> None:
        await self.open.aclose()


async def lifespan(receive: Receive, send: Send) -> None:
    """Begins and ends with nothing to do."""
    while True:
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return


async def disconnected(receive: Receive) -> None:
    """Until the client goes away."""
    while (await receive())["type"] != "http.disconnect":
        pass
