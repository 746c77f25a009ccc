"""Explanations: views of a text, computed in a thread of their own, beside the completions and never in their way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from cutaway.errors import nearest
from cutaway.inspect.view import REQUIRED, View
from cutaway.language_model import LanguageModel
from cutaway.serve.openai.errors import ApiError
from cutaway.serve.openai.tensors import TensorFilter, collect, matching, told
from cutaway.serve.views.declared import as_served, limits, served

if TYPE_CHECKING:
    from cutaway.inspect.change import Change
    from cutaway.inspect.runs import Run

T = TypeVar("T")
TENSORS = "tensors"
"""Not a view: the intermediates themselves, by their names."""
Wanted = str | dict[str, Any]
"""A view by its name, or with its parameters: `{"view": "attention", "layer": 3, "head": 1}`."""


class Explainer:
    """One thread for all explanations; so many may wait."""

    def __init__(self, most: int):
        self.most, self.pending = most, 0
        self.pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cutaway-explainer")

    async def run(self, work: Callable[[], T]) -> T:
        """Do the work when its turn comes; if nobody waits by then, not at all."""
        if self.pending >= self.most:
            said = "Too many explanations are waiting. Try again later."
            raise ApiError(429, said, code="queue_full", retry_after=self.pending / 8)
        self.pending += 1
        try:
            return await asyncio.wrap_future(self.pool.submit(work))
        finally:
            self.pending -= 1

    def close(self) -> None:
        self.pool.shutdown(wait=True, cancel_futures=True)


def explained_views() -> dict[str, View]:
    """The views that a text can be explained by."""
    return {view.name: view for view in served() if view.of in ("run", "text")}


def find_view(name: str) -> View:
    known = explained_views()
    if name not in known:
        raise ApiError(404, f"There is no explanation {name!r:.100}.{nearest(name, known)}", "explain", "no_view")
    return known[name]


def parameters_of(view: View, **base: Any) -> type[BaseModel]:
    """What can be asked of a view, as FastAPI reads it; `base` is asked of all of them."""
    fields: dict[str, Any] = {}
    for one in view.parameters.values():
        if one.only == "verb":
            continue
        default = one.served_default
        if default is REQUIRED and one.name == "target":  # which token caused it: the next one
            default = None
        kind = as_served(one.type) if one.name != "target" else int | None
        fields[one.name] = (kind, Field(... if default is REQUIRED else default, **limits(one)))
    strict = ConfigDict(extra="forbid", protected_namespaces=())
    name = f"Explain{view.name.capitalize()}"
    made: type[BaseModel] = create_model(name, __config__=strict, **{**base, **fields})
    return made


def read_wanted(wanted: Wanted) -> tuple[str, dict[str, Any]]:
    """One entry of `explain`: the name of its view, and the parameters that were given."""
    given = {"view": wanted} if isinstance(wanted, str) else dict(wanted)
    name = given.pop("view", None)
    if not isinstance(name, str):
        raise ApiError(400, 'An explanation is the name of a view, or {"view": name, ...}.', "explain")
    kind = TensorFilter if name == TENSORS else parameters_of(find_view(name))
    try:
        checked = kind(**given)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ApiError(400, f"The view {name}: {where}: {first['msg']}.", "explain") from None
    return name, {key: value for key, value in checked.model_dump().items() if key in given}


def check_explain(wanted: Sequence[Wanted], lm: LanguageModel) -> None:
    """Refuse what cannot be explained before anything is written."""
    names = []
    for one in wanted:
        name, given = read_wanted(one)
        if name in names:
            raise ApiError(400, f"The view {name} is asked for twice: one answer has it once.", "explain")
        names.append(name)
        if name == TENSORS:
            matching(lm, TensorFilter(**given))
            continue
        view = find_view(name)
        if view.of != "run":
            raise ApiError(400, f"The view {view.name} is of a whole text, not of a token: ask it alone.", "explain")
        view.check(lm)


class Following:
    """One text that is explained as it is written, token by token; what was read for one token is not read again."""

    def __init__(
        self,
        explainer: Explainer,
        lm: LanguageModel,
        prompt: list[int],
        changes: Sequence[Change],
        wanted: Sequence[Wanted],
    ):
        self.explainer, self.lm, self.changes = explainer, lm, list(changes)
        self.ids, self.prompt = list(prompt) or [lm.config.end], max(1, len(prompt))
        self.wanted = wanted
        self.last: Run | None = None

    async def explain(self, token: int) -> dict[str, Any]:
        """What is asked of this token: the views at the place that it was chosen from."""
        self.ids.append(token)
        ids = list(self.ids)
        return await self.explainer.run(lambda: self.views(ids))

    def views(self, ids: list[int]) -> dict[str, Any]:
        from cutaway.inspect.runs import carry

        run = self.last = carry(self.lm, ids, self.prompt, self.changes, self.prompt, self.last)
        found = {}
        for one in self.wanted:
            name, given = read_wanted(one)
            if name == TENSORS:
                asked = TensorFilter(**{"positions": [len(ids) - 2], **given})
                names = matching(self.lm, asked)
                found[name] = told(collect(run, names, asked), names)
                continue
            view = find_view(name)
            usual = {"position": len(ids) - 2, "target": len(ids) - 1}
            here = {name: value for name, value in usual.items() if name in view.parameters}
            found[view.name] = view.compute(run, {**served_defaults(view), **here, **given}).to_dict()
        return found


def served_defaults(view: View) -> dict[str, Any]:
    return {
        one.name: one.served_default
        for one in view.parameters.values()
        if one.only != "verb" and one.served_default is not REQUIRED
    }


def compute(lm: LanguageModel, ids: list[int], changes: Sequence[Change], view: View, given: Mapping[str, Any]) -> Any:
    """What a view says of a text."""
    from cutaway.inspect.runs import check, run, unread

    check(lm, ids)
    view.check(lm)
    asked = dict(given)
    if view.of == "text":
        return view.compute(unread(lm, ids), asked)
    if "target" in view.parameters and asked.get("target") is None:
        asked["target"] = len(ids)
    return view.compute(run(lm, ids, changes=list(changes)), asked)
