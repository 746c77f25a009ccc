"""The walk's endpoints say what `cutaway.inspect` says."""

from __future__ import annotations

from cutaway.inspect.arithmetic import explain
from cutaway.inspect.runs import run
from cutaway.inspect.walk import PICTURES, walk

TEXT = "A robot must obey the orders"


def test_every_step_is_the_walks(client, trace, tiny_lm):
    made, seen = trace(TEXT), run(tiny_lm, TEXT)
    for step in PICTURES:
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
