"""Every view that is declared (`cutaway.inspect.view`), as an address: `GET /api/traces/ID/NAME?...`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, get_args, get_origin

from fastapi import APIRouter, Query, Request
from pydantic import Field, create_model

from cutaway.inspect.view import REQUIRED, Parameter, View, Word, views
from cutaway.serve.explorer import Explorer

Answer = dict[str, Any]


def served() -> list[View]:
    return [view for view in views(installed=True).values() if "served" in view.surfaces]


def address(view: View) -> tuple[str, str]:
    """Its path, and the method it is asked with."""
    run = "trace" if "key" in view.parameters else "key"
    return f"/traces/{{{run}}}/{view.name}", "post" if view.post else "get"


def results() -> dict[tuple[str, str], Callable[[], Any]]:
    """What each address answers, for the OpenAPI document."""
    found = {address(view): partial(getattr, view, "Result") for view in served()}
    return {(f"/api{path}", method): result for (path, method), result in found.items()}


def router(explorer: Explorer) -> APIRouter:
    api = APIRouter()
    for view in served():
        path, method = address(view)
        told: dict[str, Any] = {"name": view.name, "summary": view.title, "description": view.about.partition("\n")[0]}
        api.add_api_route(path, answering(view, explorer), methods=[method.upper()], **told)
    return api


def answering(view: View, explorer: Explorer) -> Callable[..., Any]:
    """The endpoint of a view, with its parameters as FastAPI reads them."""
    key = address(view)[0].split("/")[2].strip("{}")
    own = [one for one in view.parameters.values() if one.only != "verb"]

    async def endpoint(request: Request, **given: Any) -> Answer:
        run = given.pop(key)
        wanted = given["body"].model_dump() if view.post else given
        return await explorer.worker.run(request, lambda: explorer.view(view, run, wanted))

    parameters = [keyword("request", Request), keyword(key, str)]
    if view.post:
        parameters.append(keyword("body", body(view.name, own)))
    else:
        parameters += [
            keyword(one.name, Annotated[as_served(one.type), Query(**limits(one))], one.served_default) for one in own
        ]
    endpoint.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return endpoint


def body(name: str, own: list[Parameter]) -> Any:
    """The parameters as the body of a question."""
    fields: dict[str, Any] = {}
    for one in own:
        default = ... if one.served_default is REQUIRED else one.served_default
        fields[one.name] = (as_served(one.type), Field(default, **limits(one)))
    return create_model(f"{name.capitalize()}Body", **fields)


def keyword(name: str, hint: Any, default: Any = REQUIRED) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=hint, default=default)


def as_served(kind: Any) -> Any:
    """A parameter's type; a token is named by its id, or else by its text."""
    parts = get_args(kind)
    if get_origin(kind) is list:
        return list[as_served(parts[0])]  # type: ignore[misc]
    if set(get_args(Word)) <= set(parts):
        return Annotated[kind, Field(union_mode="left_to_right")]
    return as_served(parts[0]) | None if type(None) in parts else kind


def limits(one: Parameter) -> dict[str, Any]:
    """What a server takes: numbers within bounds, texts and lists up to a length."""
    number = {int, float} & {one.type, *get_args(one.type)} and get_origin(one.type) is not list
    bounds = {"ge": one.low, "le": one.high} if number else {"max_length": one.high}
    return {"description": one.help, **{name: value for name, value in bounds.items() if value is not None}}
