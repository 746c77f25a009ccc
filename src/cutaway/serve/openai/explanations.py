"""`/v1/explanations`: every view of a text over HTTP, and any intermediate, filtered by layer, head, position.

GET  /v1/explanations             the views, with their parameters
POST /v1/explanations/VIEW        {input, ...}: what the view says of the text, as JSON or safetensors
POST /v1/explanations/tensors     {input, names, layers, heads, positions}: intermediates by name
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, FastAPI, Request
from pydantic import Field
from starlette.responses import Response

from cutaway.inspect.numbers import rounded
from cutaway.inspect.view import View
from cutaway.language_model import LanguageModel
from cutaway.serve.explorer import read_changes
from cutaway.serve.openai.completions import read_prompts
from cutaway.serve.openai.errors import ApiError
from cutaway.serve.openai.events import unless_gone
from cutaway.serve.openai.explain import Explainer, compute, explained_views, parameters_of
from cutaway.serve.openai.requests import Body, Ids, ModelName, Text
from cutaway.serve.part import Part
from cutaway.serve.pool import ModelPool
from cutaway.serve.views.declared import keyword

MOST_JSON = 1 << 20
MOST_TENSORS = 1 << 25
"""So many numbers an answer may have: as JSON (about 10 MB), and as safetensors (128 MB)."""
SAFETENSORS = "application/vnd.safetensors"
Changes = Annotated[list[dict[str, Any]], Field(max_length=64)]
Number = Annotated[int, Field(ge=-1_000_000, le=1_000_000)]
Some = Annotated[list[Number], Field(min_length=1, max_length=4_096)] | None
BASE: dict[str, Any] = {
    "model": (ModelName, None),
    "input": (Text | Ids, Field(description="The text to explain, or its token ids.")),
    "changes": (Changes, Field(default_factory=list, description="What is changed inside the model while it reads.")),
    "format": (Literal["json", "safetensors"], "json"),
}


class TensorsBody(Body):
    """Intermediates by name; `blocks.*.attention.weights` names those of all layers."""

    model: ModelName = None
    input: Text | Ids
    names: list[Annotated[str, Field(max_length=200)]] = Field(min_length=1, max_length=64)
    layers: Some = Field(None, description="Only of these layers, from 0; -1 is the last.")
    heads: Some = Field(None, description="Only of these heads.")
    positions: Some = Field(None, description="Only at these tokens; -1 is the last.")
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


def limit(numbers: int, most: int, form: str) -> None:
    if numbers > most:
        hint = 'Ask for "safetensors", or for' if form == "JSON" else "Ask for"
        raise ApiError(
            413, f"{numbers:,} numbers are too many for {form}: at most {most:,}. {hint} fewer of them."
        )  # fmt: skip


def intermediates(lm: LanguageModel, ids: list[int], body: TensorsBody) -> Response:
    """The values of these names, each cut down to what was asked for."""
    from fnmatch import fnmatchcase

    from cutaway.inspect.runs import check, run
    from cutaway.models.architecture import places
    from cutaway.parts.trace import check_name, within

    check(lm, ids)
    known = places(lm.config)
    layers = getattr(lm.config, "layers", 1)
    only = None if body.layers is None else {within("layer", one, layers) for one in body.layers}
    names = []
    for pattern in body.names:
        found = [name for name in known if fnmatchcase(name, pattern)]
        if not found:
            check_name(pattern, known)
        names += [name for name in found if only is None or known[name].block is None or known[name].block in only]
    carried = run(lm, ids, changes=read_changes(body.changes))
    arrays: dict[str, Any] = {}
    most = MOST_JSON if body.format == "json" else MOST_TENSORS
    total = 0
    for name in dict.fromkeys(names):
        value = cut(carried[name].float().numpy(), known[name].axes, body.heads, body.positions)
        total += value.size
        limit(total, most, "JSON" if body.format == "json" else "safetensors")
        arrays[name] = np.ascontiguousarray(value)
    if body.format == "safetensors":
        return packed(arrays, {"axes": json.dumps({name: list(known[name].axes) for name in arrays})})
    told = {name: {"axes": list(known[name].axes), "values": rounded(value)} for name, value in arrays.items()}
    return as_json({"object": "tensors", "tokens": ids, "tensors": told})


def cut(value: Any, axes: Sequence[str], heads: Sequence[int] | None, positions: Sequence[int] | None) -> Any:
    """Only these heads and these tokens; the keys of attention are all there."""
    from cutaway.parts.trace import within

    for axis, name in enumerate(axes):
        wanted = heads if name == "head" else positions if name in ("token", "query", "position") else None
        if wanted is not None:
            what = "head" if name == "head" else "token"
            value = value.take([within(what, one, value.shape[axis]) for one in wanted], axis=axis)
    return value
