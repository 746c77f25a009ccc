"""The models of the API by name: loaded when first asked for, the one used longest ago put to sleep for another."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cutaway.checkpoint.locate import SHIPPED
from cutaway.errors import CutawayError, nearest
from cutaway.models.architecture import count_parameters
from cutaway.serve.openai.errors import ApiError
from cutaway.serve.settings import ServeSettings
from cutaway.serve.writer import Writer

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel

BITS = {"float32": 32, "bfloat16": 16, "int8": 9, "int4": 5}
"""About so many bits a weight takes, its share of the scales included."""


@dataclass(frozen=True)
class Offer:
    """A model that this server has: its name in the API, and where it is."""

    name: str
    source: str
    created: int
    owner: str = "cutaway"


class Awake:
    """A model in memory, and the threads that write with it."""

    def __init__(self, offer: Offer, lm: LanguageModel, size: int, settings: ServeSettings):
        self.offer, self.lm, self.size, self.settings = offer, lm, size, settings
        self.users, self.used = 0, time.monotonic()
        self.writer = Writer(lm.runtime, settings, offer.name)
        self._changed: Writer | None = None

    @property
    def changed(self) -> Writer:
        """Writes texts under changes, which torch does, in a thread of its own."""
        if self._changed is None:
            self._changed = Writer(None, self.settings, f"{self.offer.name}-changed")
        return self._changed

    def close(self) -> None:
        for writer in (self.writer, self._changed):
            if writer is not None:
                writer.close()


class ModelPool:
    """All models that may be asked, few of them in memory at once. Lives in the server's event loop."""

    def __init__(self, settings: ServeSettings):
        self.settings = settings
        self.offers: dict[str, Offer] = {}
        self.awake: dict[str, Awake] = {}
        self.lock = asyncio.Lock()
        self.forgotten: list[Callable[[str], None]] = []
        """Told the name of each model that is put to sleep."""
        for source in settings.models:
            self.offer(source_name(source), source)

    def offer(self, name: str, source: str, owner: str = "cutaway", created: int | None = None) -> Offer:
        """From now on there is this model, too; its files are read when it is first asked for."""
        if name in self.offers and self.offers[name].source != source:
            raise CutawayError(f"There are two models called {name}: {self.offers[name].source} and {source}.")
        self.offers[name] = Offer(name, source, int(time.time()) if created is None else created, owner)
        return self.offers[name]

    async def withdraw(self, name: str) -> None:
        """There is no such model any more."""
        async with self.lock:
            self.offers.pop(name, None)
            self.sleep(name)

    def find(self, name: str | None) -> Offer:
        """The model of this name; without one the first. No name of a request is ever taken for a path."""
        if not name:
            return next(iter(self.offers.values()))
        if name not in self.offers:
            raise ApiError(
                404, f"There is no model {name!r:.200} here.{nearest(name, self.offers)}", "model", "model_not_found"
            )
        return self.offers[name]

    @asynccontextmanager
    async def use(self, name: str | None) -> AsyncIterator[Awake]:
        """The model, loaded if need be; it stays in memory while it is used."""
        offer = self.find(name)
        async with self.lock:
            model = self.awake.get(offer.name) or await self.wake(offer)
            model.users += 1
        try:
            yield model
        finally:
            model.users -= 1
            model.used = time.monotonic()

    async def wake(self, offer: Offer) -> Awake:
        """Load a model, after putting others to sleep where memory asks for it. Not from outside: see `use`."""
        size = await asyncio.to_thread(self.size_of, offer)
        while self.awake and sum(one.size for one in self.awake.values()) + size > self.settings.memory:
            idle = [(one.used, name) for name, one in self.awake.items() if not one.users]
            if not idle:
                raise ApiError(
                    503,
                    f"There is no memory for {offer.name} while the other models are being used. Try again later.",
                    code="model_asleep",
                    retry_after=5,
                )
            self.sleep(min(idle)[1])
        self.awake[offer.name] = made = await asyncio.to_thread(self.load, offer, size)
        return made

    def load(self, offer: Offer, size: int) -> Awake:
        from cutaway.loading import load

        return Awake(offer, load(offer.source, weights=self.settings.weights), size, self.settings)

    def size_of(self, offer: Offer) -> int:
        """About how many bytes its weights take in memory."""
        from cutaway.checkpoint.locate import locate
        from cutaway.checkpoint.opened import open_checkpoint

        opened = open_checkpoint(locate(offer.source), offer.name)
        bits = BITS.get(opened.weights or self.settings.weights or "float32", 32)
        return count_parameters(opened.config) * bits // 8

    def sleep(self, name: str) -> None:
        """Take a model out of memory."""
        if (model := self.awake.pop(name, None)) is not None:
            model.close()
            for tell in self.forgotten:
                tell(name)

    def close(self) -> None:
        for name in list(self.awake):
            self.sleep(name)


def source_name(source: str) -> str:
    """What a model is called in the API: a folder or file by its own name, without the way to it."""
    path = Path(source)
    if source in SHIPPED or not path.exists():
        return source
    return path.stem if path.is_file() else path.resolve().name
