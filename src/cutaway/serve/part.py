"""What the server is put together from: each part brings its routes, and begins and ends with the server."""

from __future__ import annotations

from fastapi import FastAPI


class Part:
    """Something the server offers. A part overrides what it needs of these three."""

    def mount(self, app: FastAPI) -> None:
        """Add routes (`app.include_router`) and middleware (`app.add_middleware`: plain ASGI, see OwnPagesOnly)."""

    async def begin(self) -> None:
        """The server starts, inside its event loop, before the first request."""

    async def end(self) -> None:
        """The server stops: finish or free what is left. Parts end in the reverse order."""
