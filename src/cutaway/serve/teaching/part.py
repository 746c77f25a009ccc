"""Teaching as a part of the server: its routes, the thread that works on the jobs, and the models that come of them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI
from fastapi import Path as InPath

from cutaway.serve.explorer import Explorer
from cutaway.serve.openai.errors import ApiError
from cutaway.serve.part import Part
from cutaway.serve.pool import ModelPool
from cutaway.serve.store.database import Database
from cutaway.serve.store.storage import Storage
from cutaway.serve.teaching.jobs import Files, Jobs
from cutaway.serve.teaching.routes import file_routes, job_routes, page_routes
from cutaway.serve.teaching.runner import Runner


class Teaching(Part):
    def __init__(
        self, database: Database, storage: Storage, folder: Path, pool: ModelPool, explorer: Explorer, largest: int
    ):
        self.jobs, self.files, self.storage = Jobs(database), Files(database), storage
        self.pool, self.explorer, self.largest = pool, explorer, largest
        self.runner = Runner(database, storage, folder / "jobs", lambda name: pool.find(name).source, self.offer)
        self.own: set[str] = set()
        self.loop: asyncio.AbstractEventLoop | None = None

    def mount(self, app: FastAPI) -> None:
        app.include_router(file_routes(self.files, self.jobs, self.storage, self.largest))
        app.include_router(job_routes(self.jobs, self.files, self.pool.find, self.runner.wake, self.offer))
        app.include_router(page_routes(self.jobs, self.runner.wake))
        api = APIRouter(prefix="/v1", tags=["models"])

        @api.delete("/models/{name}")
        async def remove(name: Annotated[str, InPath(max_length=255)]) -> dict[str, Any]:
            """Remove a model that was made here."""
            self.pool.find(name)
            place = await asyncio.to_thread(self.jobs.forget_model, name)
            if place is None:
                raise ApiError(403, f"The model {name} was not made here, and stays.", "model")
            await self.pool.withdraw(name)
            self.own.discard(name)
            await asyncio.to_thread(self.storage.remove, place)
            return {"id": name, "object": "model", "deleted": True}

        app.include_router(api)

    async def begin(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._set_offers(await asyncio.to_thread(self._made))
        self.runner.start()

    async def end(self) -> None:
        await asyncio.to_thread(self.runner.stop)

    def offer(self) -> None:
        """Have the server offer every model that jobs have made, here or on another machine, and no other one."""
        made = self._made()
        if self.loop is not None and not self.loop.is_closed() and {name for name, _, _ in made} != self.own:
            self.loop.call_soon_threadsafe(self._set_offers, made)

    def _made(self) -> list[tuple[str, str, int]]:
        made = []
        for name, place, created in self.jobs.models():
            with suppress(FileNotFoundError):  # removed, perhaps on another machine, since we asked whether it is there
                if name in self.own or self.storage.exists(place):
                    made.append((name, str(self.storage.fetch(place)), created))
        return made

    def _set_offers(self, made: list[tuple[str, str, int]]) -> None:
        names = {name for name, _, _ in made}
        for name in self.own - names:
            self.pool.offers.pop(name, None)
            self.pool.sleep(name)
        for name, source, created in made:
            if name not in self.own:
                self.pool.offer(name, source, "fine-tuned", created)
                self.explorer.models.folders.append(source)
        self.own = names
