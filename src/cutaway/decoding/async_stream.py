"""A stream for `async for`: the model writes in a thread of its own, and the event loop goes on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from cutaway.decoding.generate import StreamedToken, TextStream
from cutaway.decoding.sequence import Result

Piece = TypeVar("Piece", str, StreamedToken)


class AsyncTextStream:
    """What `TextStream` is, for `async for`. When the task is cancelled, or the loop left, nothing more is written."""

    def __init__(self, stream: TextStream):
        self.stream = stream

    def __aiter__(self) -> AsyncIterator[str]:
        return self._each(iter(self.stream))

    def tokens(self) -> AsyncIterator[StreamedToken]:
        """Token by token, each with its log-probability."""
        return self._each(self.stream.tokens())

    async def _each(self, pieces: Iterator[Piece]) -> AsyncIterator[Piece]:
        thread, loop = (
            ThreadPoolExecutor(max_workers=1, thread_name_prefix="cutaway-stream"),
            asyncio.get_running_loop(),
        )
        try:
            while (piece := await loop.run_in_executor(thread, next, pieces, None)) is not None:
                yield piece
        finally:  # whoever cancelled finds the model free: what was being written has been, and no more is
            await loop.run_in_executor(thread, self.stream.close)
            thread.shutdown(wait=False)

    @property
    def result(self) -> Result:
        """What has been written; before the end its reason is 'interrupted'."""
        return self.stream.result
