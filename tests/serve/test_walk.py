"""The walk's endpoints say what `cutaway.inspect` says."""

from __future__ import annotations

from cutaway.inspect.arithmetic import explain
from cutaway.inspect.runs import run
from cutaway.inspect.walk import walk
from cutaway.models.steps import model_map

TEXT = "A robot must obey the orders"


def test_every_step_is_the_walks(client, trace, tiny_lm):
    made, seen = trace(TEXT), run(tiny_lm, TEXT)
    for step in [one.name for one in model_map(tiny_lm.config).steps]:
        asked = {"layer": 1, "head": 1, "position": 3, "limit": 4}
        answer = client.get(f"/api/traces/{made['id']}/walk/{step}", params=asked)
        assert answer.status_code == 200, answer.text
        assert answer.json() == walk(seen, step, 1, 1, 3, 4).to_dict()


def test_a_cell_is_explained_as_in_python(client, trace, tiny_lm):
    made, seen = trace(TEXT), run(tiny_lm, TEXT)
    for name, head in (("blocks.1.attention.scores", 1), ("blocks.0.mlp.hidden", None), ("probabilities", None)):
        asked = {"name": name, "position": 4, "column": 2, "terms": 3} | ({} if head is None else {"head": head})
        answer = client.get(f"/api/traces/{made['id']}/explain", params=asked)
        assert answer.json() == explain(seen, name, 4, 2, head, 3).to_dict()


def test_mistakes_are_refused_with_words(client, trace):
    made = trace(TEXT)
    answer = client.get(f"/api/traces/{made['id']}/walk/nowhere")
    assert answer.status_code == 422 and "no step" in answer.json()["error"]["what"]
    asked = {"name": "residual.0", "position": 0, "column": 100_000}
    answer = client.get(f"/api/traces/{made['id']}/explain", params=asked)
    assert answer.status_code == 422 and "column" in answer.json()["error"]["what"]
    assert client.get(f"/api/traces/{made['id']}/walk/mix", params={"limit": 0}).status_code == 422


def test_the_map_is_the_models(client, tiny_lm):
    told, known = client.get("/api/models/map", params={"name": "tiny"}).json(), model_map(tiny_lm.config)
    assert [step["name"] for step in told["steps"]] == [step.name for step in known.steps]
    assert {one["name"]: tuple(one["axes"]) for one in told["places"]} == {one.name: one.axes for one in known.places}
    assert client.get("/api/models/map", params={"name": "asleep"}).status_code == 409


def test_a_table_is_one_heads_numbers(client, trace, tiny_lm):
    made, seen = trace(TEXT), run(tiny_lm, TEXT)
    asked = {"name": "blocks.1.attention.weights", "head": 2}
    answer = client.get(f"/api/traces/{made['id']}/table", params=asked)
    assert answer.headers["X-Shape"] == f"{len(seen)},{len(seen)}"
    assert answer.content == seen["blocks.1.attention.weights"][2].numpy().astype("<f4").tobytes()
