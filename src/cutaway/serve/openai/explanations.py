"""`/v1/explanations`: every view of a text over HTTP, and any intermediate, filtered by layer, head, position.

GET  /v1/explanations             the views, with their parameters
POST /v1/explanations/VIEW        {input, ...}: what the view says of the text, as JSON or safetensors
POST /v1/explanations/tensors     {input, names, layers, heads, positions}: intermediates by name
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, FastAPI, Request
from pydantic import Field
from starlette.responses import Response

from cutaway.inspect.view import View
from cutaway.language_model import LanguageModel
from cutaway.serve.explorer import read_changes
from cutaway.serve.openai.completions import read_prompts
from cutaway.serve.openai.events import unless_gone
from cutaway.serve.openai.explain import Explainer, compute, explained_views, find_view, parameters_of
from cutaway.serve.openai.requests import Ids, ModelName, Text
from cutaway.serve.openai.tensors import MOST_JSON, MOST_TENSORS, TensorFilter, collect, limit, matching, told
from cutaway.serve.part import Part
from cutaway.serve.pool import ModelPool
from cutaway.serve.views.declared import keyword

SAFETENSORS = "application/vnd.safetensors"
Changes = Annotated[list[dict[str, Any]], Field(max_length=64)]
BASE: dict[str, Any] = {
    "model": (ModelName, None),
    "input": (Text | Ids, Field(description="The text to explain, or its token ids.")),
    "changes": (Changes, Field(default_factory=list, description="What is changed inside the model while it reads.")),
    "format": (Literal["json", "safetensors"], "json"),
}


class TensorsBody(TensorFilter):
    """Intermediates of a text by name."""

    model: ModelName = None
    input: Text | Ids
    changes: Changes = Field(default_factory=list)
    format: Literal["json", "safetensors"] = "json"


class Explanations(Part):
    """What no other server gives: the inside of the model, for a text."""

    def __init__(self, pool: ModelPool, explainer: Explainer):
        self.pool, self.explainer = pool, explainer

    def mount(self, app: FastAPI) -> None:
        api = APIRouter(prefix="/v1/explanations", tags=["explanations"])

        @api.get("")
        async def explanations() -> dict[str, Any]:
            """What can be asked: each view, what it shows, and its parameters as a JSON schema."""
            data = [
                {
                    "object": "explanation", "id": view.name, "title": view.title,
                    "about": view.about.partition("\n")[0],
                    "streamed": view.of == "run", "parameters": parameters_of(view).model_json_schema()["properties"],
                }
                for view in explained_views().values()
            ]  # fmt: skip
            return {"object": "list", "data": data}

        @api.post("/tensors", response_model=None)
        async def tensors(body: TensorsBody, request: Request) -> Response:
            """Intermediates of the model for a text: keys, queries, weights, hidden states, logits."""
            work = partial(intermediates, body=body)
            return await self.answer(request, body, work)

        for view in explained_views().values():
            api.add_api_route(
                f"/{view.name}", self.answering(view), methods=["POST"], name=f"explain_{view.name}",
                summary=view.title, description=view.about.partition("\n")[0], response_model=None,
            )  # fmt: skip

        @api.post("/{name}", include_in_schema=False)
        async def unknown(name: str) -> None:
            find_view(name)

        app.include_router(api)

    def answering(self, view: View) -> Callable[..., Any]:
        kind = parameters_of(view, **BASE)

        async def endpoint(*, body: Any, request: Request) -> Response:
            given = {name: value for name, value in body.model_dump().items() if name in view.parameters}
            changes = [] if "changes" in view.parameters else read_changes(body.changes)

            def work(lm: LanguageModel, ids: list[int]) -> Response:
                found = compute(lm, ids, changes, view, given)
                return as_tensors(found) if body.format == "safetensors" else as_json(found.to_dict())

            return await self.answer(request, body, work)

        endpoint.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [keyword("body", kind), keyword("request", Request)]
        )
        return endpoint

    async def answer(
        self, request: Request, body: Any, work: Callable[[LanguageModel, list[int]], Response]
    ) -> Response:
        async with self.pool.use(body.model) as model:
            [ids] = await read_prompts(model.lm, body.input or " ")
            return await unless_gone(request, self.explainer.run(lambda: work(model.lm, ids)))


def as_json(found: Mapping[str, Any]) -> Response:
    return Response(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"), media_type="application/json")


def as_tensors(found: Any) -> Response:
    """A view's arrays as tensors by name, and what are no numbers as JSON in the metadata under `rest`."""
    arrays: dict[str, Any] = {}

    def take(value: Any, name: str) -> Any:
        if isinstance(value, np.ndarray):
            arrays[name] = np.ascontiguousarray(value)
            return {"tensor": name}
        if is_dataclass(value) and hasattr(value, "hidden"):
            own = {one.name: getattr(value, one.name) for one in fields(value) if one.name not in value.hidden}
            return {key: take(item, f"{name}.{key}" if name else key) for key, item in own.items()}
        if isinstance(value, list | tuple):
            return [take(item, f"{name}.{at}") for at, item in enumerate(value)]
        if isinstance(value, bytes):
            return value.hex(" ")
        return value.to_dict() if hasattr(value, "to_dict") else value

    rest = take(found, "")
    return packed(arrays, {"rest": json.dumps(rest, default=str)})


def packed(arrays: Mapping[str, Any], metadata: dict[str, str]) -> Response:
    from safetensors.numpy import save

    limit(sum(one.size for one in arrays.values()), MOST_TENSORS, "safetensors")
    return Response(save(dict(arrays), metadata), media_type=SAFETENSORS)


def intermediates(lm: LanguageModel, ids: list[int], body: TensorsBody) -> Response:
    """The values of these names, each cut down to what was asked for."""
    from cutaway.inspect.runs import check, run

    check(lm, ids)
    names = matching(lm, body)
    most, form = (MOST_TENSORS, "safetensors") if body.format == "safetensors" else (MOST_JSON, "JSON")
    arrays = collect(run(lm, ids, changes=read_changes(body.changes)), names, body, most, form)
    if body.format == "safetensors":
        return packed(arrays, {"axes": json.dumps({name: list(names[name]) for name in arrays})})
    return as_json({"object": "tensors", "tokens": ids, "tensors": told(arrays, names)})
