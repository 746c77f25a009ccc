"""A client that opens a connection and sends its head letter by letter holds it for so many seconds, and no longer."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


def patient_protocol(seconds: float) -> type[H11Protocol]:
    """uvicorn's protocol, which by itself waits for the head of a request forever."""

    class Patient(H11Protocol):
        waiting: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.look()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self.look()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self.look()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self.stop_waiting()

        def look(self) -> None:
            """Wait from the first moment that a head is missing until it is there."""
            missing = self.conn.their_state is h11.IDLE and self.conn.our_state is h11.IDLE
            if not missing:
                self.stop_waiting()
            elif self.waiting is None:
                self.waiting = self.loop.call_later(seconds, self.give_up)

        def stop_waiting(self) -> None:
            if self.waiting is not None:
                self.waiting.cancel()
                self.waiting = None

        def give_up(self) -> None:
            self.waiting = None
            if not self.transport.is_closing():
                self.transport.close()

    return Patient
