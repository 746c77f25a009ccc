"""Schemathesis asks whatever the OpenAPI document allows, and what it does not: no answer is a 5xx."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

pytest.importorskip("schemathesis", reason="schemathesis is not installed (make setup)")

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed
from hypothesis import settings as how
from schemathesis.python import asgi
from starlette.requests import Request

from cutaway.serve.server import ANY, create_server

FEW = 1
MANY = int(os.environ.get("CUTAWAY_CASES", "10000"))
FIRST = int(os.environ.get("CUTAWAY_SEED", "0"))
"""Where the seeds begin: a long run can be done in parts, each with seeds of its own."""


@pytest.fixture(autouse=True)
def one_look(monkeypatch) -> None:
    """The page of learning listens as long as it is open; who asks here has gone when the first line has come."""
    gone = Request.is_disconnected

    async def is_disconnected(self: Request) -> bool:
        return self.url.path == "/api/learning" or await gone(self)

    monkeypatch.setattr(Request, "is_disconnected", is_disconnected)


def ask(settings, cases_each: int, number: int = 0) -> int:
    """Ask every operation so many times, others for each number; how many questions that were."""
    app = create_server(replace(settings, seconds=3600.0), hosts=ANY)
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    asked = 0
    with asgi.get_client(app) as session:
        for result in schema.get_all_operations():
            operation = result.ok()

            @seed(number)
            @given(case=operation.as_strategy())
            @how(
                max_examples=cases_each, deadline=None, database=None,
                phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck),
            )  # fmt: skip
            def once(case):
                nonlocal asked
                asked += 1
                answer = case.call(session=session, timeout=3600)
                assert answer.status_code < 500, (case.as_curl_command(), answer.text)

            once()
    return asked


def test_a_few_questions_of_every_kind_get_no_5xx(settings):
    assert ask(settings, FEW) > 0


@pytest.mark.slow
def test_ten_thousand_questions_get_no_5xx(settings):
    asked, number = 0, FIRST
    each = min(10, max(1, MANY // 100))  # of every operation, of which there are some hundred
    while asked < MANY:
        asked, number = asked + ask(settings, each, number), number + 1
        print(f"\n{asked:,} questions, seeds {FIRST} to {number - 1}", flush=True)
