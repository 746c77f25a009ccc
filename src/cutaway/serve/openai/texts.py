"""`POST /v1/embeddings`, `/tokenize`, `/detokenize`: texts as vectors and as tokens."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import numpy as np
from fastapi import APIRouter, FastAPI, Request

from cutaway.models.architecture import context_of
from cutaway.serve.openai.choice import token_text
from cutaway.serve.openai.completions import read_prompts
from cutaway.serve.openai.errors import ApiError
from cutaway.serve.openai.events import unless_gone
from cutaway.serve.openai.explain import Explainer
from cutaway.serve.openai.requests import DetokenizeBody, EmbeddingBody, TokenizeBody
from cutaway.serve.part import Part
from cutaway.serve.pool import ModelPool


class Texts(Part):
    """What a model makes of a text besides another text."""

    def __init__(self, pool: ModelPool, explainer: Explainer):
        self.pool, self.explainer = pool, explainer

    def mount(self, app: FastAPI) -> None:
        api = APIRouter(tags=["texts"])

        @api.post("/v1/embeddings")
        async def embeddings(body: EmbeddingBody, request: Request) -> dict[str, Any]:
            """One vector a text: the mean over its tokens of what leaves the final norm; its length is not made 1."""
            async with self.pool.use(body.model) as model:
                lm, width = model.lm, getattr(model.lm.config, "width", None)
                if body.dimensions not in (None, width):
                    raise ApiError(400, f"The vectors of this model have {width} numbers, no others.", "dimensions")
                texts = await read_prompts(lm, body.input)
                for ids in texts:
                    if len(ids) > (most := context_of(lm.config)):
                        said = f"A text is {len(ids):,} tokens long and this model's context is {most:,}. Shorten it."
                        raise ApiError(400, said, "input", "context_length_exceeded")
                vectors = await unless_gone(request, self.explainer.run(lambda: lm.embed(texts).cpu().numpy()))
                tokens = sum(map(len, texts))
                return {
                    "object": "list",
                    "model": model.offer.name,
                    "data": [
                        {"object": "embedding", "index": index, "embedding": shown(vector, body.encoding_format)}
                        for index, vector in enumerate(vectors)
                    ],
                    "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
                }

        @api.post("/tokenize")
        async def tokenize(body: TokenizeBody) -> dict[str, Any]:
            """How a text is cut into tokens."""
            async with self.pool.use(body.model) as model:
                ids = await asyncio.to_thread(model.lm.ids, body.prompt)
                pieces = [token_text(model.lm.tokenizer, one) for one in ids]
                return {
                    "tokens": ids, "pieces": pieces, "count": len(ids), "max_model_len": context_of(model.lm.config)
                }  # fmt: skip

        @api.post("/detokenize")
        async def detokenize(body: DetokenizeBody) -> dict[str, Any]:
            """The text of some tokens."""
            async with self.pool.use(body.model) as model:
                return {"prompt": model.lm.shown(model.lm.ids(body.tokens))}

        app.include_router(api)


def shown(vector: Any, form: str) -> list[float] | str:
    """Numbers, or their bytes: float32, little-endian, in base64."""
    if form == "float":
        found: list[float] = vector.astype(float).tolist()
        return found
    return base64.b64encode(np.ascontiguousarray(vector, dtype="<f4").tobytes()).decode()
