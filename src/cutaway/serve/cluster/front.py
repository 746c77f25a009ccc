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
from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from cutaway.serve.cluster.affinity import beginning
from cutaway.serve.openai.errors import body as error_body
from cutaway.serve.settings import MIB, ServeSettings

PLAIN = (
    "type", "asgi", "http_version", "method", "scheme", "path", "raw_path", "query_string", "root_path", "headers",
    "client", "server",
)  # fmt: skip
"""What a replica is told of a request; the rest belongs to the process that received it."""
UPLOAD_TIMES = 10
"""An upload may take so many times as long as another request."""


class Front:
    """An ASGI app that has every request answered by a replica."""

    def __init__(self, handle: Any, settings: ServeSettings):
        self.handle, self.settings = handle.options(stream=True, method_name="answer"), settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await lifespan(receive, send)
            return
        if scope["type"] != "http":
            return
        given = await self.read_body(receive)
        if not isinstance(given, bytes):
            status, said = given
            await JSONResponse(error_body(status, said), status)(scope, receive, send)
            return
        told = {key: scope[key] for key in PLAIN if key in scope}
        answer = self.handle.remote(told, given, beginning(given))
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
            headers = {"Retry-After": "1"}
            await JSONResponse(error_body(503, said), 503, headers)(scope, receive, send)
        finally:
            gone.cancel()

    async def read_body(self, receive: Receive) -> bytes | tuple[int, str]:
        """The whole body, or the status and what to say to one that is too large or too slow."""
        parts: list[bytes] = []
        most, size = max(self.settings.body, self.settings.upload) + MIB, 0
        try:
            async with asyncio.timeout(UPLOAD_TIMES * self.settings.receive_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return 400, "The client has gone."
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > most:
                        return 413, f"The request has more than {most:,} bytes."
                    if not message.get("more_body"):
                        return b"".join(parts)
        except TimeoutError:
            return 408, "The request did not come in time."


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
