"""Causes: the share of each token in one that came after."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request

from cutaway.serve.explorer import Explorer

if TYPE_CHECKING:
    from cutaway.inspect.runs import Run


class Method(StrEnum):
    gradient = "gradient"
    integrated = "integrated"


def router(explorer: Explorer) -> APIRouter:
    api = APIRouter()

    @api.get("/traces/{key}/saliency")
    async def view(
        key: str,
        target: int,
        request: Request,
        method: Method = Method.gradient,
        steps: Annotated[int, Query(ge=1, le=64)] = 16,
    ) -> dict[str, Any]:
        from cutaway.inspect.saliency import saliency

        def work() -> dict[str, Any]:
            run = explorer.run(key)
            explorer.worker.expect(1 if method is Method.gradient else passes(run, steps), run.lm.model)
            return saliency(run, [target], method.value, steps).to_dict()

        return await explorer.worker.run(request, work)

    return api


def passes(run: Run, steps: int) -> int:
    """How often integrated gradients go through the model: several steps side by side, and once for the two ends."""
    from cutaway.inspect.saliency import AT_ONCE

    return -(-steps // max(1, AT_ONCE // len(run))) + 1
