"""What answers look like: the results of views as JSON schemas, for the OpenAPI document and the browser's types."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, Union, cast, get_args, get_origin

import numpy as np
from fastapi import FastAPI
from pydantic import TypeAdapter
from typing_extensions import TypedDict  # pydantic asks for this one before Python 3.12

from cutaway.inspect.numbers import Axes, ViewResult, told_types

REF = "#/components/schemas/{model}"


@cache
def as_model(kind: Any) -> Any:
    """A result as a type that pydantic can describe: a TypedDict with the names of its JSON."""
    fields = {
        name: NotRequired[as_type(without_none(hint))] if name in kind.optional else as_type(hint)
        for name, hint in told_types(kind).items()
    }
    make: Any = TypedDict
    found = make(kind.__name__, fields)
    found.__doc__ = (kind.__doc__ or "").partition("\n")[0]
    return found


def as_type(hint: Any) -> Any:
    """The type that a value of this type has in JSON."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        axes = next((one for one in parts[1:] if isinstance(one, Axes)), None)
        return as_type(parts[0]) if axes is None else as_lists(parts[0], axes)
    if origin in (Union, types.UnionType):
        return Union[tuple(as_type(one) for one in parts)]  # noqa: UP007
    if origin is tuple and parts[-1] is not ...:
        return tuple[tuple(as_type(one) for one in parts)]  # type: ignore[misc]
    if origin in (list, tuple):
        return list[as_type(parts[0])]  # type: ignore[misc]
    if origin is dict:
        return dict[str, as_type(parts[1])]  # type: ignore[misc]
    if isinstance(hint, type) and issubclass(hint, ViewResult):
        return as_model(cast(Any, hint))
    known = hint in (int, float, str, bool, type(None)) or origin is Literal
    return hint if known else dict[str, Any]


def as_lists(array: Any, axes: Axes) -> Any:
    number: Any = int if np.int64 in get_args(get_args(array)[1]) else float
    found = number | None if axes.holes else number
    for _ in range(axes.count):
        found = list[found]  # type: ignore[valid-type]
    return found


def without_none(hint: Any) -> Any:
    parts = [one for one in get_args(hint) if one is not type(None)]
    return Union[tuple(parts)] if type(None) in get_args(hint) else hint  # noqa: UP007


def describe(app: FastAPI, results: Mapping[tuple[str, str], Callable[[], Any]]) -> None:
    """Have the app's OpenAPI document say what these answers are, by path and method.

    The results are looked up when the document is asked for: they need torch, and the first page must not wait for it.
    """
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = plain()
            inputs: Any = [(at, "serialization", TypeAdapter(as_type(result()))) for at, result in results.items()]
            schemas, shared = TypeAdapter.json_schemas(inputs, ref_template=REF)
            document["components"]["schemas"] |= shared.get("$defs", {})
            for (at, _), schema in schemas.items():
                path, method = at
                answer = document["paths"][path][method]["responses"]["200"]
                answer["content"] = {"application/json": {"schema": schema}}
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
