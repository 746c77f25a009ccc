"""A view is declared once: its address, its place in the OpenAPI document and the browser's types say the same."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, ClassVar

import pytest
import torch
from fastapi.testclient import TestClient
from pydantic import TypeAdapter

import cutaway
from cutaway import inspect, plugins
from cutaway.inspect.numbers import ViewResult
from cutaway.inspect.view import _KNOWN, find, param, register, view, views
from cutaway.models import architecture
from cutaway.models.architecture import Place, TensorSpec
from cutaway.parts.trace import UNWATCHED
from cutaway.serve.app import create_app
from cutaway.serve.schema import as_model
from tests.inspect.test_pairs import make as make_pair

ROOT = Path(__file__).parents[2]
TEXT = "Once upon a time there was a little fox"
ASKED = {
    "looking": "position=3&key=1", "saliency": "target=3", "neuron": "layer=1&neuron=2", "groups": "count=2",
    "roles": "tokens=4&texts=2", "sweep": "how=zero&what=head", "contexts": "layer=1&unit=2",
    "senses": "other=Once+upon+a+time&word=upon",
    **dict.fromkeys(("edges", "paths"), "corrupted=Once upon the time there was a little fox&token=7"),
    "factors": "count=2", "learned": "reference=Le renard",
    "values": "name=blocks.1.residual&position=2", "parameters": "name=token_embedding.weight",
}  # fmt: skip
POSTED = {"gaps": {"hide": [2]}, "sentences": {"texts": ["Twice upon a time"]}}
"""What is asked of an encoder."""
SERVED = [view for view in views().values() if "served" in view.surfaces]


@pytest.mark.parametrize("view", SERVED, ids=lambda view: view.name)
def test_what_a_view_answers_is_what_its_schema_says(client, explorer, trace, view, bert_lm):
    if view.name in ("groups", "factors"):
        pytest.importorskip("sklearn")
    model = "tiny"
    if view.of == "pair":
        model = "attention" if view.name == "unrolled" else "pre"
        explorer.models.add(make_pair(model))
    elif view.name in POSTED:
        model = "bert"
        explorer.models.add(bert_lm)
    at = f"/api/traces/{trace(TEXT, model=model)['id']}/{view.name}"
    changes = {"changes": [{"kind": "ablate_head", "layer": 0, "head": 1}]}
    answer = (
        client.post(at, json=POSTED.get(view.name, changes))
        if view.post
        else client.get(f"{at}?{ASKED.get(view.name, '')}")
    )
    assert answer.status_code == 200, answer.text
    told, kind = answer.json(), as_model(view.Result)
    TypeAdapter(kind).validate_python(told)
    assert told.keys() <= kind.__annotations__.keys() and kind.__required_keys__ <= told.keys()


def test_the_document_names_every_parameter_with_its_bounds_and_every_answer(client):
    document = client.get("/openapi.json").json()
    for each in SERVED:
        path = next(path for path in document["paths"] if path.endswith(f"}}/{each.name}"))
        [told] = document["paths"][path].values()
        name = told["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        assert name == each.result_name and told["summary"] == each.title
        if not each.post:
            found = {one["name"]: one for one in told["parameters"] if one["in"] == "query"}
            wanted = {one.name: one for one in each.parameters.values() if one.only != "verb"}
            assert found.keys() == wanted.keys()
            assert all(found[name]["description"] == one.help for name, one in wanted.items())
    [k] = [one for one in document["paths"]["/api/traces/{key}/lens"]["get"]["parameters"] if one["name"] == "k"]
    assert (k["schema"]["minimum"], k["schema"]["maximum"], k["schema"]["default"]) == (1, 20, 5)


def test_the_browsers_types_are_those_of_the_declarations():
    ran = subprocess.run([sys.executable, ROOT / "web/scripts/view_types.py", "--check"], stderr=subprocess.PIPE)
    assert ran.returncode == 0, ran.stderr.decode()
    names = re.findall(r"^export interface (.*) \{$", (ROOT / "web/src/lib/views.ts").read_text(), re.M)
    assert names and all(name.isidentifier() for name in names)


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


@dataclass(frozen=True)
class Width(ViewResult):
    """How wide the vectors are."""

    width: int


def width(run, name: Annotated[str, param("Of which intermediate.", "--name")] = "logits") -> Width:
    """How wide an intermediate is."""
    return Width(run[name].shape[-1])


class Means(torch.nn.Module):
    """A model of another kind: no blocks, no heads."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.token_embedding = torch.nn.Embedding(config.vocabulary, 4)

    def forward(self, ids, trace=None):
        watch = UNWATCHED if trace is None else trace
        return watch("mean", self.token_embedding(ids).mean(1, keepdim=True).expand(-1, ids.shape[1], -1))


@dataclass(frozen=True)
class Shape:
    kind: ClassVar[str] = "means"
    vocabulary: int
    end: int = 0


@pytest.fixture
def means(monkeypatch, tiny_lm):
    """A model without attention, and the kind it is of, for one test."""
    place, tensor = Place("mean", ("token", "column"), "mix", ("ids",)), "token_embedding.weight"
    kind = SimpleNamespace(
        kind="means", Shape=Shape, title="means", native=False, places=lambda shape: [place],
        tensors=lambda shape: [TensorSpec(tensor, tensor, (shape.vocabulary, 4), "rows", "embedding")],
    )  # fmt: skip
    monkeypatch.setitem(architecture._KNOWN, "means", kind)
    return cutaway.LanguageModel(Means(Shape(len(tiny_lm.tokenizer))), tiny_lm.tokenizer, "means")


def test_a_view_from_outside_fits_a_model_from_outside_and_the_others_are_refused(means, explorer, monkeypatch):
    monkeypatch.setitem(_KNOWN, "width", view("How wide", reads=("mean",))(width))
    explorer.models.add(means)
    client = TestClient(create_app(explorer), base_url="http://127.0.0.1:8000")
    assert "means" in [one["name"] for one in client.get("/api/models").json()]
    own, tiny = (
        f"/api/traces/{client.post('/api/traces', json={'model': model, 'text': TEXT}).json()['id']}"
        for model in ("means", "tiny")
    )
    assert client.get(f"{own}/width", params={"name": "mean"}).json() == {"width": 4}
    refused = [(tiny, "width", "mean"), (own, "attention", "attention.weights"), (own, "lens", "residual")]
    refused += [(own, "attention/weights?layer=0&head=0", "attention.weights"), (own, "predict", "logits")]
    for at, name, missing in refused:
        answer = client.get(f"{at}/{name}")
        error = answer.json()["error"]
        assert answer.status_code == 422 and error["code"] == "no_view", answer.text
        assert missing in error["what"] and "another model" in error["remedy"]


class Recurrent(torch.nn.Module):
    """A stack with a residual stream, a final norm, `read` and `score`; but no attention, and no `output_matrix`."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.token_embedding = torch.nn.Embedding(config.vocabulary, 4)
        self.blocks = torch.nn.ModuleList([torch.nn.GRU(4, 4, batch_first=True)])
        self.final_norm, self.score = torch.nn.LayerNorm(4), torch.nn.Linear(4, config.vocabulary)

    def read(self, ids, trace=None):
        watch = UNWATCHED if trace is None else trace
        x = watch("token_embedding", self.token_embedding(ids))
        x = watch("blocks.0.residual", x + self.blocks[0](x)[0])
        return watch("final_norm", self.final_norm(x))

    def forward(self, ids, trace=None):
        return (UNWATCHED if trace is None else trace)("logits", self.score(self.read(ids, trace)))


@dataclass(frozen=True)
class RecurrentShape(Shape):
    kind: ClassVar[str] = "recurrent"
    layers: int = 1


@pytest.fixture
def recurrent(monkeypatch, tiny_lm):
    names = ["token_embedding", "blocks.0.residual", "final_norm", "logits"]
    made = [Place(name, ("token", "column"), "mix", ("ids",)) for name in names]
    kind = SimpleNamespace(kind="recurrent", title="recurrent", native=False, places=lambda shape: made)
    monkeypatch.setitem(architecture._KNOWN, "recurrent", kind)
    return cutaway.LanguageModel(Recurrent(RecurrentShape(len(tiny_lm.tokenizer))), tiny_lm.tokenizer, "recurrent")


def test_every_view_that_is_said_to_fit_answers_and_the_others_say_what_is_missing(recurrent, explorer):
    explorer.models.add(recurrent)
    client = TestClient(create_app(explorer), base_url="http://127.0.0.1:8000", raise_server_exceptions=False)
    fitting = client.get("/api/models/map", params={"name": "recurrent"}).json()["views"]
    assert "change" in fitting and not {"lens", "saliency", "attention", "neurons", "beams"} & set(fitting)
    at = f"/api/traces/{client.post('/api/traces', json={'model': 'recurrent', 'text': TEXT}).json()['id']}"
    asked = {**ASKED, "values": "name=blocks.0.residual"}
    steer = {"changes": [{"kind": "steer", "layer": 0, "toward": " fox"}]}
    for one in SERVED:
        if one.of == "weights":
            continue
        url = f"{at}/{one.name}"
        answer = client.post(url, json=steer) if one.post else client.get(f"{url}?{asked.get(one.name, '')}")
        if one.name in fitting:
            assert answer.status_code == 200, (one.name, answer.text)
        else:
            code = "no_pair" if one.of == "pair" else "no_view"
            assert answer.json()["error"]["code"] == code, (one.name, answer.text)


def test_what_a_view_calls_of_the_model_must_be_there(recurrent):
    lens = find("lens")
    assert not replace(lens, reads=("final_norm",), needs=("score.weight", "output_matrix")).fits(recurrent)
    assert replace(lens, reads=("final_norm",), needs=("score.weight", "config.layers")).fits(recurrent)


def test_a_sweep_and_changes_of_what_a_model_has_not_are_refused(recurrent):
    with pytest.raises(cutaway.CutawayError, match=r"view sweep does not fit recurrent: it reads residual\.0 and"):
        recurrent.sweep(" a fox", " a time", metric=lambda logits: logits[0, 0])
    for change, missing in (
        (inspect.AblateHead(0, 0), r"attention\.heads"), (inspect.AblateNeuron(0, 0), r"mlp\.activation"),
        (inspect.Toward(0, " a"), "output matrix"),
    ):  # fmt: skip
        with pytest.raises(cutaway.CutawayError, match=missing) as refused:
            inspect.run(recurrent, TEXT, changes=[change])
        assert "Did you mean" not in str(refused.value)


def own(name, function=width):
    """A view of another function, in the name of this one."""
    made = view("How wide", reads=("logits",))(function)
    return replace(made, name=name)


def test_a_name_that_is_taken_is_refused_and_a_cell_run_again_replaces_its_own(monkeypatch):
    monkeypatch.setattr("cutaway.inspect.view._KNOWN", dict(views()))
    for name in ("lens", "sweep"):
        with pytest.raises(cutaway.CutawayError, match=f"There is a view '{name}' already"):
            register(own(name))
    register(own("width"))
    again = own("width")
    register(again)
    assert views()["width"] is again and list(views())[-1] == "width"


def test_a_view_that_is_not_whole_is_refused_where_it_is_written():
    def bare(run, layer: int = 0) -> Width: ...
    def silent(run): ...
    def plain(run) -> dict: ...

    for function, more, said in (
        (bare, {}, "says nothing of its parameter 'layer'"), (silent, {}, "does not say what it gives"),
        (plain, {}, "gives a dict"), (width, {"reads": "logits"}, "reads is a tuple of names"),
        (width, {"read": ("logits",)}, "Did you mean 'reads'"),
    ):  # fmt: skip
        with pytest.raises(cutaway.CutawayError, match=said):
            view("x", **more)(function)
    with pytest.raises(cutaway.CutawayError, match="is no view"):
        register(width)  # type: ignore[arg-type]


def test_a_view_can_be_called_like_the_function_it_was(tiny_lm):
    run = inspect.run(tiny_lm, TEXT)
    assert view("How wide")(width)(run, name="blocks.0.residual") == Width(tiny_lm.config.width)


def test_views_of_installed_packages_are_found_and_a_broken_package_is_left_out(monkeypatch, explorer):
    monkeypatch.setattr("cutaway.inspect.view._KNOWN", dict(views()))

    def announced(name):
        return SimpleNamespace(value=name, load=lambda: register(own(name)))

    found = [announced("lens"), announced("width")]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: found)
    plugins.load_plugins.cache_clear()
    assert find("lens").title != "How wide" and "width" not in views()  # a known name asks no package
    with pytest.warns(UserWarning, match="lens could not be loaded"):
        assert find("width").title == "How wide"
    assert "/api/traces/{key}/width" in create_app(explorer).openapi()["paths"]
    plugins.load_plugins.cache_clear()


def test_a_run_of_two_texts_answers_the_views_of_two_and_no_others(client, explorer, trace):
    lm = make_pair("pre")
    explorer.models.add(lm)
    found = trace("The fox runs.", model="pre", more=lm.tokenizer.encode("Le"))
    assert [one["id"] for one in found["tokens"]] == lm.pair("The fox runs.", "Le")
    assert found["id"] != trace("The fox runs.", model="pre")["id"]
    fitting = client.get("/api/models/map", params={"name": "pre"}).json()["views"]
    assert {"translation", "attentions", "stacks", "learned", "sinusoids"} <= set(fitting)
    assert not {"predict", "values", "lens", "unrolled"} & set(fitting)
    at = f"/api/traces/{found['id']}"
    for address in ("lens", "predict", "table?name=logits", "walk/token", "explain?name=logits&position=0&column=0"):
        answer = client.get(f"{at}/{address}")
        assert answer.status_code == 422 and answer.json()["error"]["code"] == "no_single", (address, answer.text)
    steered = {"model": "pre", "text": "The fox", "changes": [{"kind": "ablate_head", "layer": 0, "head": 1}]}
    assert "nothing can be changed" in client.post("/api/traces", json=steered).json()["error"]["what"]
    empty = client.post("/api/traces", json={"model": "pre", "text": ""})
    assert empty.status_code == 422 and "source is empty" in empty.json()["error"]["what"]
