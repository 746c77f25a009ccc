"""Constrained answers: whatever a model of random weights writes, it parses."""

from __future__ import annotations

import json
import re

import pytest

pytest.importorskip("llguidance", reason="the extra `constrain` is not installed")
jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 8},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "kind": {"enum": ["fox", "robot"]},
        "tags": {"type": "array", "items": {"type": "boolean"}, "maxItems": 3},
    },
    "required": ["name", "age", "kind", "tags"],
    "additionalProperties": False,
}
FORM = {"type": "json_schema", "json_schema": {"name": "animal", "schema": SCHEMA}}


def check(server, count: int, **settings) -> None:
    """So many answers, all valid."""
    for first in range(0, count, 50):
        asked = {"n": min(50, count - first), "seed": first, "max_tokens": 200, "response_format": FORM, **settings}
        answer = server.complete("The fox", **asked)
        for choice in answer["choices"]:
            assert choice["finish_reason"] == "stop"
            jsonschema.validate(json.loads(choice["text"]), SCHEMA)


def test_every_answer_under_a_schema_is_valid(server):
    check(server, 30, temperature=2)


@pytest.mark.slow
def test_a_thousand_answers_under_a_schema_are_valid(server):
    for temperature in (0.5, 1.0, 1.5, 2.0):
        check(server, 250, temperature=temperature)


def test_every_answer_matches_the_regular_expression(server):
    pattern = r"[A-Z][a-z]{2,6}, (19|20)[0-9]{2}"
    texts = server.texts("The fox", n=20, max_tokens=40, response_format={"type": "regex", "pattern": pattern})
    assert len(texts) == 20 and all(re.fullmatch(pattern, text) for text in texts)


def test_a_form_that_cannot_be_followed_is_refused(server):
    for form in (
        {"type": "regex", "pattern": "("},
        {"type": "regex"},
        {"type": "json_schema"},
        {"type": "json_schema", "json_schema": {"schema": {"type": "nonsense"}}},
    ):
        answer = server.post("/v1/completions", prompt="x", response_format=form)
        assert answer.status_code == 400 and answer.json()["error"]["param"] == "response_format", answer.text
