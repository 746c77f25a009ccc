"""How much may be asked: limits on a request's size, on the time it takes, on how many there are; and only plain JSON.

A JSON body is read whole (it is small), looked at once, and handed on: what no endpoint can mean, such as NaN, numbers
beyond 64 bits, half a surrogate pair or a thousand brackets, is refused here, so that no endpoint has to think of it.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cutaway.serve.openai.errors import is_openai
from cutaway.serve.operations.access import refusal
from cutaway.serve.settings import MIB, ServeSettings

SURROGATE = re.compile("[\ud800-\udfff]")
DEEPEST = 32
"""Brackets within brackets that a body may have."""
UPLOADS = "/v1/files"
ONCE = ("host", "content-length", "content-type", "authorization", "origin")
"""Headers that another program on the way might read otherwise if there were two."""


class Refused(Exception):
    """A body that is not taken: the status, and why."""

    def __init__(self, status: int, said: str):
        super().__init__(said)
        self.status = status


class Guard:
    def __init__(self, app: ASGIApp, settings: ServeSettings):
        self.app, self.settings = app, settings
        self.busy = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if self.busy >= self.settings.requests:
            said = "The server is busy with as many requests as it takes. Try again in a moment."
            await refusal(scope["path"], 503, said, {"Retry-After": "1"})(scope, receive, send)
            return
        self.busy += 1
        begun = False
        body: Counted | None = None

        async def answer(message: Message) -> None:
            nonlocal begun
            if body is not None and body.refused and not begun:
                raise body.refused  # which the app may have taken for a mistake of its own
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        try:
            async with asyncio.timeout(self.settings.seconds):
                body = self.counted(scope, receive)
                await self.app(scope, await self.checked(scope, body), answer)
        except Refused as error:
            if not begun:
                close = {"Connection": "close"} if error.status in (408, 413) else None
                await refusal(scope["path"], error.status, str(error), close)(scope, receive, send)
        except TimeoutError:
            if not begun:
                said = f"The answer took longer than {self.settings.seconds:g} seconds, and was given up."
                await refusal(scope["path"], 504, said)(scope, receive, send)
        finally:
            self.busy -= 1

    def counted(self, scope: Scope, receive: Receive) -> Counted:
        """The body, if its head says nothing that is refused."""
        headers = Headers(scope=scope)
        for name in ONCE:
            if len(headers.getlist(name)) > 1:
                raise Refused(400, f"The header {name.title()} is there twice: which one is meant?")
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise Refused(415, "Compressed requests are not taken: send it as it is, without Content-Encoding.")
        uploads = scope["path"] == UPLOADS
        most = self.settings.upload + MIB if uploads else self.settings.body
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            raise Refused(400, "The Content-Length is not a number.")
        if int(length[:20]) > most:
            raise Refused(413, f"The request is larger than the {most:,} bytes that are taken here.")
        deadline = asyncio.get_running_loop().time() + self.settings.receive_seconds * (10 if uploads else 1)
        return Counted(receive, most, deadline)

    async def checked(self, scope: Scope, counted: Counted) -> Receive:
        """The same body, if it is one that may be sent; what is no JSON is only counted as it comes."""
        kind = Headers(scope=scope).get("content-type", "")
        if "json" not in kind:
            if is_openai(scope["path"]) and scope["path"] != UPLOADS and not kind.startswith("multipart/"):
                if await whole(counted):
                    raise Refused(415, "A request is JSON: say so with the header Content-Type: application/json.")
                return again(b"", counted.receive)
            return counted
        body = await whole(counted)
        if body:
            document = plain_json(body)
            if isinstance(document, dict) and self.settings.log_prompts:
                scope.setdefault("state", {})["asked"] = document.get("prompt", document.get("messages"))
        return again(body, counted.receive)


class Counted:
    """A body as it comes, no larger and no slower than it may be."""

    def __init__(self, receive: Receive, most: int, deadline: float):
        self.receive, self.most, self.deadline = receive, most, deadline
        self.size, self.more = 0, True
        self.refused: Refused | None = None

    async def __call__(self) -> Message:
        if not self.more:
            return await self.receive()  # from here on: whether the client has gone away
        try:
            async with asyncio.timeout_at(self.deadline):
                message = await self.receive()
        except TimeoutError:
            self.refused = Refused(408, "The request did not come in time.")
            raise self.refused from None
        self.more = message["type"] == "http.request" and message.get("more_body", False)
        self.size += len(message.get("body", b""))
        if self.size > self.most:
            self.refused = Refused(413, f"The request is larger than the {self.most:,} bytes that are taken here.")
            raise self.refused
        return message


async def whole(receive: Counted) -> bytes:
    parts = []
    while receive.more:
        parts.append((await receive()).get("body", b""))
    return b"".join(parts)


def again(body: bytes, receive: Receive) -> Receive:
    """A body that has been read, and after it whatever comes."""
    told = False

    async def answer() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return answer


def plain_json(body: bytes) -> Any:
    """The document, refused if it holds what cannot be meant."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused(400, "The request is not UTF-8 text.") from None
    try:
        document = json.loads(text, parse_constant=no_number, parse_int=whole_number, parse_float=number)
    except RecursionError:
        raise too_deep() from None
    except ValueError as error:
        raise Refused(400, f"The request is not JSON: {error}.") from None
    check(document, 0)
    return document


def check(value: Any, depth: int) -> None:
    if depth > DEEPEST:
        raise too_deep()
    if isinstance(value, str):
        if SURROGATE.search(value):
            raise Refused(400, "The request has half a character in it: a surrogate without its other half.")
    elif isinstance(value, list):
        for one in value:
            if not isinstance(one, int | float):
                check(one, depth + 1)
    elif isinstance(value, dict):
        for key, one in value.items():
            check(key, depth + 1)
            check(one, depth + 1)


def too_deep() -> Refused:
    return Refused(400, f"The request has more than {DEEPEST} brackets within each other.")


def no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def whole_number(text: str) -> int:
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise ValueError("a whole number is beyond 64 bits")
    return int(text)


def number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is beyond what can be computed with")
    return value
