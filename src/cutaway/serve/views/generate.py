"""Generate: a text written token by token, what the cache saves, how each token is chosen, and the tree of a search."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from cutaway.serve.explorer import Explorer

Tokens = Annotated[int, Query(ge=1, le=100)]
Temperature = Annotated[float, Query(gt=0, le=100)]
TopK = Annotated[int, Query(ge=0)]
TopP = Annotated[float, Query(gt=0, le=1)]
Seed = Annotated[int, Query(ge=0, lt=1 << 32)]


def router(explorer: Explorer) -> APIRouter:
    api = APIRouter()

    @api.get("/traces/{key}/cache")
    async def steps(
        key: str,
        request: Request,
        max_tokens: Tokens = 20,
        temperature: Temperature = 1.0,
        top_k: TopK = 40,
        top_p: TopP = 1.0,
        seed: Seed = 1,
    ) -> dict[str, Any]:
        from cutaway.inspect.cache import cache

        def work() -> dict[str, Any]:
            run = explorer.run(key)
            how = {"temperature": temperature, "top_k": top_k or None, "top_p": top_p, "seed": seed}
            return cache(run.lm, list(run.ids), max_tokens, **how).to_dict()

        return await explorer.worker.run(request, work)

    @api.get("/traces/{key}/choices")
    async def drawn(
        key: str,
        request: Request,
        max_tokens: Tokens = 20,
        temperature: Temperature = 1.0,
        top_k: TopK = 40,
        top_p: TopP = 1.0,
        seed: Seed = 1,
        k: Annotated[int, Query(ge=1, le=40)] = 10,
    ) -> dict[str, Any]:
        from cutaway.inspect.choices import choices

        def work() -> dict[str, Any]:
            run = explorer.run(key)
            how = {"temperature": temperature, "top_k": top_k or None, "top_p": top_p, "seed": seed}
            return choices(run.lm, list(run.ids), max_tokens, k, **how).to_dict()

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
