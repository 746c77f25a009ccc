"""The explorer with a BERT: its map, its walk and its numbers are served; what needs a next token is refused."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from cutaway.models.steps import model_map
from cutaway.serve.app import create_app
from cutaway.serve.explorer import Explorer


@pytest.fixture(scope="module")
def client(bert_lm):
    explorer = Explorer()
    explorer.models.add(bert_lm)
    yield TestClient(create_app(explorer), base_url="http://127.0.0.1:8000")
    explorer.close()


def test_every_step_of_its_walk_is_served_and_what_writes_is_refused(client, bert_lm):
    run = client.post("/api/traces", json={"text": "the [MASK] sat [SEP] a fox", "model": "bert"}).json()
    assert [one["text"] for one in run["tokens"]] == ["[CLS]", "the", "[MASK]", "sat", "[SEP]", "a", "fox", "[SEP]"]
    assert run["text"] == "[CLS] the [MASK] sat [SEP] a fox [SEP]"
    address = f"/api/traces/{run['id']}"
    for step in model_map(bert_lm.config).steps:
        assert (
            client.get(f"{address}/walk/{step.name}", params={"layer": 1, "head": 1, "position": 2}).status_code == 200
        )
    cell = client.get(f"{address}/explain", params={"name": "segment_embedding", "position": 6, "column": 2}).json()
    assert cell["parts"]["row"] == 1
    expected = client.get(f"{address}/machine/expected")
    assert expected.status_code == 200
    for view in ("beams", "ahead", "lens", "cache", "attention"):
        answer = client.get(f"{address}/{view}")
        assert answer.status_code == 422, view
        assert "BERT" in answer.text or "does not fit bert" in answer.text
