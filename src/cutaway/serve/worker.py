"""One thread in which all models run, and the way out of work nobody waits for any more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from starlette.requests import Request

    from cutaway.model import GPT, Block

T = TypeVar("T")
LOOK = 0.05
"""Seconds between two looks whether whoever asked is still there."""


class Outdated(Exception):
    """Nobody waits for this answer any more: a newer question took its place, or the page was closed."""


class Worker:
    """Runs one piece of work at a time. When the one who asked goes away, it stops inside the next block."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cutaway-model")
        self.gone: threading.Event | None = None

    async def run(self, request: Request, work: Callable[[], T]) -> T:
        """Do the work for this request, or raise Outdated as soon as its page has gone on."""
        gone = threading.Event()
        future = asyncio.wrap_future(self.pool.submit(self._do, work, gone))
        try:
            while not (await asyncio.wait({future}, timeout=LOOK))[0]:
                if await request.is_disconnected():
                    raise Outdated
            return future.result()
        finally:
            gone.set()

    def _do(self, work: Callable[[], T], gone: threading.Event) -> T:
        self.gone = gone
        try:
            self.check()
            return work()
        finally:
            self.gone = None

    def check(self, *_: Any) -> None:
        """Stop here, if nobody waits."""
        if self.gone is not None and self.gone.is_set():
            raise Outdated

    def watch(self, model: GPT) -> None:
        """Have this model ask, twice in each of its blocks, whether anybody still waits."""
        for block in cast("Iterable[Block]", model.blocks):
            block.attention.register_forward_pre_hook(self.check)
            block.mlp.register_forward_pre_hook(self.check)

    def close(self) -> None:
        if self.gone is not None:
            self.gone.set()
        self.pool.shutdown(wait=False, cancel_futures=True)
