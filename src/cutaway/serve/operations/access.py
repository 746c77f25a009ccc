"""Who may ask: whoever shows a key that is in force and has the scope; on this machine alone, anyone.

Programs send `Authorization: Bearer KEY`. A browser is asked for the key once, by a form, and keeps it in a cookie that
no script and no other page can use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from cutaway.serve.openai import errors
from cutaway.serve.store.database import Unavailable
from cutaway.serve.store.keys import Key

COOKIE = "cutaway_key"
OPEN = ("/health", "/ready")
"""What anyone may ask: a load balancer has no key."""
SCOPES = (
    ("/v1/files", "teach"), ("/v1/fine_tuning", "teach"), ("/api/jobs", "teach"), ("/metrics", "metrics"),
    ("/api", "explain"), ("/v1/explain", "explain"), ("/v1", "use"), ("/tokenize", "use"), ("/detokenize", "use"),
    ("/openapi.json", None),
)  # fmt: skip
"""What each address asks of a key; None: any key will do. The page itself and its files are no secret."""
FORM = """<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Cutaway</title>
<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui;max-width:26rem;margin:15vh auto;padding:0 1rem}
input,button{font:inherit;padding:.5rem;width:100%%;box-sizing:border-box;margin:.3rem 0}</style>
<h1>Cutaway</h1>%s<form method="post" action="/enter"><label for="key">API key · API 密钥 · Ключ API</label>
<input id="key" name="key" type="password" autocomplete="current-password" required autofocus>
<button>Enter · 进入 · Войти</button></form>"""
REFUSED = "<p role='alert'>This key is not in force. · 此密钥无效。 · Этот ключ не действует.</p>"


class Access:
    """Refuse requests without a key. `find` looks one up; it may block, and runs in a thread."""

    def __init__(self, app: ASGIApp, find: Callable[[str], Key | None], origins: Sequence[str] = ()):
        self.app, self.find, self.origins = app, find, frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = await self.judge(scope, receive)
        await (answer or self.app)(scope, receive, send)

    async def judge(self, scope: Scope, receive: Receive) -> Response | None:
        """A refusal, or None for whom may ask."""
        path, headers = scope["path"], Headers(scope=scope)
        if path in OPEN:
            return None
        if foreign(headers, self.origins):
            return refusal(path, 403, "This server answers no pages from elsewhere.")
        if path == "/enter" and scope["method"] == "POST":
            return await self.enter(receive)
        wanted = next((scope for start, scope in SCOPES if path == start or path.startswith(f"{start}/")), "")
        shown = secret_of(headers)
        try:
            key = await asyncio.to_thread(self.find, shown) if shown and (wanted != "" or path == "/") else None
        except Unavailable as error:
            return refusal(path, 503, str(error), {"Retry-After": "2"})
        if wanted == "":
            return HTMLResponse(FORM % "", 401) if path in ("/", "/index.html") and key is None else None
        if key is None:
            said = "This server needs an API key that is in force: Authorization: Bearer KEY."
            return refusal(path, 401, said, {"WWW-Authenticate": "Bearer"})
        if wanted is not None and wanted not in key.scopes:
            return refusal(path, 403, f"The key {key.id} is not for this: it lacks the scope {wanted!r}.")
        scope.setdefault("state", {})["key"] = key.id
        return None

    async def enter(self, receive: Receive) -> Response:
        """The form of the page: a key, for the cookie."""
        body = b""
        while True:
            part = await receive()
            body += part.get("body", b"")
            if len(body) > 4_096 or not part.get("more_body"):
                break
        [secret, *_] = parse_qs(body.decode("utf-8", "replace")).get("key", [""])
        if await asyncio.to_thread(self.find, secret.strip()) is None:
            return HTMLResponse(FORM % REFUSED, 401)
        answer = RedirectResponse("/", 303)
        answer.set_cookie(COOKIE, secret.strip(), httponly=True, samesite="strict", path="/")
        return answer


def secret_of(headers: Headers) -> str:
    """The key that a request shows."""
    kind, _, secret = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and secret.strip():
        return secret.strip()
    return cookie_parser(headers.get("cookie", "")).get(COOKIE, "")


def foreign(headers: Headers, origins: frozenset[str]) -> bool:
    """Whether a page from elsewhere asks, through the browser of somebody who has a key."""
    origin = headers.get("origin")
    return origin is not None and origin not in origins and origin.partition("://")[2] != headers.get("host")


def refusal(path: str, status: int, said: str, headers: dict[str, str] | None = None) -> Response:
    """A refusal in the form that the one who asked reads."""
    if errors.is_openai(path):
        code = {401: "invalid_api_key", 403: "insufficient_permissions"}.get(status)
        return JSONResponse(errors.body(status, said, code=code), status, headers)
    what, _, remedy = said.partition(": ")
    body = {"code": "access", "what": f"{what}." if remedy else what, "remedy": remedy, "values": {}}
    return JSONResponse({"error": body}, status, headers)
