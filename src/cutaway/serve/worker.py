"""One thread in which all models run, and the way out of work nobody waits for any more."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from cutaway.models.architecture import places

if TYPE_CHECKING:
    from starlette.requests import Request
    from torch import nn
    from torch.utils.hooks import RemovableHandle

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
        self.thread = 0
        self.begun, self.done, self.steps = 0.0, 0, 0
        self.hooks: list[RemovableHandle] = []
        self.closed = False

    async def run(self, request: Request, work: Callable[[], T]) -> T:
        """Do the work for this request, or raise Outdated as soon as its page has gone on."""
        gone = threading.Event()
        future = asyncio.wrap_future(self.pool.submit(self._do, work, gone))
        future.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may be left to hear of it
        try:
            while not (await asyncio.wait({future}, timeout=LOOK))[0]:
                if await request.is_disconnected():
                    raise Outdated
            return future.result()
        finally:
            gone.set()

    def _do(self, work: Callable[[], T], gone: threading.Event) -> T:
        self.begun, self.done, self.steps = time.monotonic(), 0, 0
        self.gone, self.thread = gone, threading.get_ident()
        try:
            if gone.is_set():
                raise Outdated
            return work()
        finally:
            self.gone = None
            if self.closed:
                self.unwatch()

    def expect(self, passes: int, model: nn.Module) -> None:
        """Say how many passes through this model the work that is being done takes, for those who watch."""
        self.steps = passes * len(norms(model))

    def progress(self) -> dict[str, Any]:
        """How far the work being done is: the share of its steps (None where nobody knows), and since when."""
        if self.gone is None:
            return {"busy": False, "share": None, "seconds": 0.0}
        share = min(1.0, self.done / self.steps) if self.steps else None
        return {"busy": True, "share": share, "seconds": round(time.monotonic() - self.begun, 2)}

    def check(self, *_: Any) -> None:
        """One step more. Stop here, if nobody waits. Who uses the same model in another thread is not stopped."""
        if threading.get_ident() != self.thread:
            return
        self.done += 1
        if self.gone is not None and self.gone.is_set():
            raise Outdated

    def watch(self, model: nn.Module) -> None:
        """Have this model ask at each norm of its blocks whether anybody still waits."""
        for norm in norms(model):  # they are made whether it goes up or back
            self.hooks.append(norm.register_forward_pre_hook(self.check))

    def close(self) -> None:
        self.closed = True
        if (gone := self.gone) is not None:
            gone.set()  # what is being done stops at its next norm
        else:
            self.unwatch()
        self.pool.shutdown(wait=False, cancel_futures=True)

    def unwatch(self) -> None:
        """Leave the models as they were: they may be used after the server, and copied."""
        for hook in self.hooks:
            hook.remove()


def norms(model: nn.Module) -> list[nn.Module]:
    """The norms inside a model's blocks."""
    made = places(model.config).values()
    return [model.get_submodule(one.module) for one in made if one.operation == "norm" and one.block is not None]
