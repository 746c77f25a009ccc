"""Two sides over HTTP: what `cutaway.inspect.beside` finds, of two texts and of two models."""

from __future__ import annotations

import pytest

from cutaway.inspect.beside import KINDS, beside
from cutaway.inspect.runs import run

LEFT, RIGHT = "A robot must obey", "A little robot must not obey"


@pytest.mark.parametrize("of", KINDS)
def test_every_comparison_is_the_inspected_one(client, tiny_lm, of):
    sides = {"left": {"model": "tiny", "text": LEFT}, "right": {"model": "tiny", "text": RIGHT}}
    answer = client.post("/api/beside", json={**sides, "of": of, "layer": 1, "head": 1, "position": 1})
    assert answer.status_code == 200, answer.text
    assert answer.json() == beside(run(tiny_lm, LEFT), run(tiny_lm, RIGHT), of, 1, None, 1, 1).to_dict()


def test_what_cannot_be_compared_is_said(client):
    sides = {"left": {"model": "tiny", "text": LEFT}, "right": {"model": "gone", "text": LEFT}}
    assert client.post("/api/beside", json=sides).json()["error"]["code"] == "asleep"
    sides["right"]["model"] = "tiny"
    assert client.post("/api/beside", json={**sides, "of": "taste"}).status_code == 422
    assert client.post("/api/beside", json={**sides, "position": 99}).status_code == 422
