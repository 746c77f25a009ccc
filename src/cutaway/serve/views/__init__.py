"""What the pages ask for: every declared view of a run, and what is no view of one."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import APIRouter

from cutaway.serve.explorer import Explorer
from cutaway.serve.learning import routes as learning
from cutaway.serve.views import (
    beside,
    both_ways,
    branches,
    contest,
    declared,
    facts,
    gallery,
    machine,
    piano,
    tables,
    tasks,
    walk,
    weights,
)  # fmt: skip

PAGES = (
    declared, tables, branches, walk, machine, gallery, weights, tasks, contest, facts, learning, piano, beside,
    both_ways,
)  # fmt: skip


def routers(explorer: Explorer) -> Iterator[APIRouter]:
    """All routes; each file has `router(explorer)`."""
    for page in PAGES:
        yield page.router(explorer)
