"""Generate: a text written token by token, what the cache saves, how each token is chosen, and the tree of a search."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request

from cutaway.serve.explorer import Explorer

Tokens = Annotated[int, Query(ge=1, le=100)]


def drawing(
    temperature: Annotated[float, Query(ge=0, le=100)] = 1.0,
    top_k: Annotated[int, Query(ge=0)] = 40,
    top_p: Annotated[float, Query(gt=0, le=1)] = 1.0,
    seed: Annotated[int, Query(ge=0, lt=1 << 32)] = 1,
) -> dict[str, Any]:
    """How tokens are drawn."""
    return {"temperature": temperature, "top_k": top_k or None, "top_p": top_p, "seed": seed}


How = Annotated[dict[str, Any], Depends(drawing)]


def router(explorer: Explorer) -> APIRouter:
    api = APIRouter()

    @api.get("/traces/{key}/writing")
    async def written(
        key: str,
        request: Request,
        how: How,
        max_tokens: Tokens = 20,
        k: Annotated[int, Query(ge=1, le=40)] = 10,
    ) -> dict[str, Any]:
        """One text, written once: how each token was chosen, and what the cache spared."""
        from cutaway.inspect.choices import choices_and_cache

        def work() -> dict[str, Any]:
            run = explorer.run(key)
            explorer.worker.expect(max_tokens, run.lm.model)
            choices, cache = choices_and_cache(run.lm, list(run.ids), max_tokens, k, run, **how)
            return {"choices": choices.to_dict(), "cache": cache.to_dict()}

        return await explorer.worker.run(request, work)

    @api.get("/traces/{key}/beams")
    async def search(
        key: str,
        request: Request,
        beams: Annotated[int, Query(ge=1, le=8)] = 4,
        max_tokens: Annotated[int, Query(ge=1, le=40)] = 12,
        length_penalty: Annotated[float, Query(ge=-5, le=5)] = 1.0,
    ) -> dict[str, Any]:
        from cutaway.inspect.beams import tree

        def work() -> dict[str, Any]:
            run = explorer.run(key)
            return tree(run.lm, list(run.ids), beams, max_tokens, length_penalty=length_penalty).to_dict()

        return await explorer.worker.run(request, work)

    return api
