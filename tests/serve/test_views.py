"""A view is declared once: its address, its place in the OpenAPI document and the browser's types say the same."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from cutaway.inspect.view import views
from cutaway.serve.schema import as_model

ROOT = Path(__file__).parents[2]
TEXT = "Once upon a time there was a little fox"
ASKED = {
    "looking": "position=3&key=1", "saliency": "target=3", "neuron": "layer=1&neuron=2", "groups": "count=2",
    "roles": "tokens=4&texts=2",
    "factors": "count=2", "values": "name=blocks.1.residual&position=2", "parameters": "name=token_embedding.weight",
}  # fmt: skip
SERVED = [view for view in views().values() if "served" in view.surfaces]


@pytest.mark.parametrize("view", SERVED, ids=lambda view: view.name)
def test_what_a_view_answers_is_what_its_schema_says(client, trace, view):
    if view.name in ("groups", "factors"):
        pytest.importorskip("sklearn")
    at = f"/api/traces/{trace(TEXT)['id']}/{view.name}"
    changes = {"changes": [{"kind": "ablate_head", "layer": 0, "head": 1}]}
    answer = client.post(at, json=changes) if view.post else client.get(f"{at}?{ASKED.get(view.name, '')}")
    assert answer.status_code == 200, answer.text
    told, kind = answer.json(), as_model(view.Result)
    TypeAdapter(kind).validate_python(told)
    assert told.keys() <= kind.__annotations__.keys() and kind.__required_keys__ <= told.keys()


def test_the_document_names_every_parameter_with_its_bounds_and_every_answer(client):
    document = client.get("/openapi.json").json()
    for view in SERVED:
        path = next(path for path in document["paths"] if path.endswith(f"}}/{view.name}"))
        [told] = document["paths"][path].values()
        name = told["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        assert name == view.result_name and told["summary"] == view.title
        if not view.post:
            found = {one["name"]: one for one in told["parameters"] if one["in"] == "query"}
            wanted = {one.name: one for one in view.parameters.values() if one.only != "verb"}
            assert found.keys() == wanted.keys()
            assert all(found[name]["description"] == one.help for name, one in wanted.items())
    [k] = [one for one in document["paths"]["/api/traces/{key}/lens"]["get"]["parameters"] if one["name"] == "k"]
    assert (k["schema"]["minimum"], k["schema"]["maximum"], k["schema"]["default"]) == (1, 20, 5)


def test_the_browsers_types_are_those_of_the_declarations():
    script = runpy.run_path(str(ROOT / "web/scripts/view_types.py"))
    assert script["OUT"].read_text("utf8") == script["written"](), "a view has changed: make types"


def test_a_token_is_named_by_its_id_or_by_its_text(client, trace, tiny_lm):
    at = f"/api/traces/{trace(TEXT)['id']}/lens"
    [fox] = tiny_lm.ids(" a")
    by_id, by_text = client.get(at, params={"watch": fox}), client.get(at, params={"watch": " a"})
    assert by_id.status_code == 200 and by_id.json()["watch"] == by_text.json()["watch"] != []


def test_pointing_at_one_cell_of_a_head_needs_one_answer(client, trace):
    at = f"/api/traces/{trace(TEXT)['id']}"
    parts = {"layer": 1, "head": 2, "position": 2, "attended": 5, "parts": "queries,keys,scores,weights"}
    cell = client.get(f"{at}/attention", params=parts).json()
    for part, position in (("queries", 2), ("keys", 5)):  # a token may be pointed at that the mask hides
        name = {"name": f"blocks.1.attention.{part}", "head": 2, "position": position}
        assert cell[part] == [client.get(f"{at}/values", params=name).json()["values"]]
    assert len(cell["scores"][0]) == len(cell["weights"][0]) == 3
