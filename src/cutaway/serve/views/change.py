"""Change: a text carried through a changed model, and what that changed against the run it was asked of."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from numpy import zeros
from pydantic import BaseModel, Field

from cutaway.serve.explorer import Explorer, Forgotten, read_changes

if TYPE_CHECKING:
    from cutaway.inspect.numbers import Array
    from cutaway.inspect.runs import Run

EFFECTS = 24
"""So many comparisons are remembered: over a long text they take seconds, and choosing a token must not."""


class Changes(BaseModel):
    """What is changed, and the token whose prediction is shown before and after."""

    changes: list[dict[str, Any]] = Field(max_length=64)
    position: int = -1
    k: int = Field(10, ge=1, le=40)


def router(explorer: Explorer) -> APIRouter:
    api = APIRouter()
    effects: OrderedDict[str, tuple[Array, Array]] = OrderedDict()

    def changed_run(key: str, before: Run, changes: list[dict[str, Any]]) -> tuple[str, Run]:
        from cutaway.inspect.runs import run

        name = hashlib.sha256(json.dumps([key, changes], sort_keys=True).encode()).hexdigest()[:16]
        try:
            found = explorer.run(name)
        except Forgotten:
            found = run(before.lm, before.ids, changes=read_changes(changes))
            explorer.remember(name, found)
        return name, found

    @api.post("/traces/{key}/change")
    async def view(key: str, body: Changes, request: Request) -> dict[str, Any]:
        from cutaway.inspect.change import changed, effect

        def work() -> dict[str, Any]:
            before = explorer.run(key)
            if not body.changes:
                still = zeros(len(before), dtype="f4"), zeros((before.lm.config.layers, len(before)), dtype="f4")
                return {"id": key, **changed(before, before, body.position, body.k, still).to_dict()}
            name, after = changed_run(key, before, body.changes)
            if name not in effects:
                effects[name] = effect(before, after)
                while len(effects) > EFFECTS:
                    effects.popitem(last=False)
            return {"id": name, **changed(before, after, body.position, body.k, effects[name]).to_dict()}

        return await explorer.worker.run(request, work)

    return api
