"""One file a page: what it asks the server for, as functions of `cutaway.inspect` on a run."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import APIRouter

from cutaway.serve.explorer import Explorer
from cutaway.serve.views import (
    attention,
    causes,
    change,
    facts,
    generate,
    lens,
    neurons,
    predict,
    tasks,
    values,
    walk,
    weights,
)  # fmt: skip

PAGES = (values, predict, attention, lens, causes, neurons, generate, walk, change, weights, tasks, facts)


def routers(explorer: Explorer) -> Iterator[APIRouter]:
    """The routes of every page; each file has `router(explorer)`."""
    for page in PAGES:
        yield page.router(explorer)
