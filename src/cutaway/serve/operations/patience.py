"""A client that opens a connection and sends its head letter by letter holds it for so many seconds, and no longer;
and a head that goes on and on is not kept in memory."""

from __future__ import annotations

import asyncio
from typing import Any

LONGEST = 1 << 16
"""Bytes of a head that may have come before its end is there (h11 has the same limit of its own)."""


def patient_protocol(seconds: float) -> type[asyncio.Protocol]:
    """uvicorn's protocol, which by itself waits for the head of a request forever."""
    return httptools_protocol(seconds) or h11_protocol(seconds)


class Waiting:
    """Closes a connection, if a head does not come in time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float):
        self.loop, self.seconds = loop, seconds
        self.timer: asyncio.TimerHandle | None = None

    def start(self, transport: Any) -> None:
        """From the first moment that a head is missing; not anew for each letter of it."""
        if self.timer is None and not transport.is_closing():
            self.timer = self.loop.call_later(self.seconds, self.end, transport)

    def stop(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def end(self, transport: Any) -> None:
        self.timer = None
        if not transport.is_closing():
            transport.close()


def h11_protocol(seconds: float) -> type[asyncio.Protocol]:
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Patient(H11Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.waiting = Waiting(self.loop, seconds)
            self.look()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self.look()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self.look()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self.waiting.stop()

        def look(self) -> None:
            if self.conn.their_state is h11.IDLE and self.conn.our_state is h11.IDLE:
                self.waiting.start(self.transport)
            else:
                self.waiting.stop()

    return Patient


def httptools_protocol(seconds: float) -> type[asyncio.Protocol] | None:
    """The same for the faster one, where it is installed."""
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    except ImportError:
        return None

    class Patient(HttpToolsProtocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.waiting = Waiting(self.loop, seconds)
            self.waiting.start(transport)
            self.head = 0

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.waiting.timer is None or self.transport.is_closing():
                return
            self.head += len(data)
            if self.head > LONGEST:
                self.send_400_response("The head of the request is too long.")

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self.waiting.start(self.transport)

        def on_headers_complete(self) -> None:
            super().on_headers_complete()
            self.waiting.stop()
            self.head = 0

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if not self.pipeline:
                self.waiting.start(self.transport)  # for the head of the next one, if there is to be one

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self.waiting.stop()

    return Patient
