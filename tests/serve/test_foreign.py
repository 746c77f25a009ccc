"""A model of another kind, registered from outside: its steps, values and arithmetic come from its own map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

from cutaway.inspect.arithmetic import explain
from cutaway.inspect.runs import run
from cutaway.inspect.values import values
from cutaway.inspect.walk import walk
from cutaway.language_model import LanguageModel
from cutaway.models.architecture import Place, register

TEXT = "A robot must obey"


@pytest.fixture
def ask(explorer, client, encoder_lm):
    """A function: a view of the text -> what the server says."""
    explorer.models.add(encoder_lm)
    made = client.post("/api/traces", json={"model": "encoder", "text": TEXT}).json()

    def ask(view: str, **query: object):
        answer = client.get(f"/api/traces/{made['id']}/{view}", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return ask


def test_its_steps_are_its_places(client, ask):
    told = client.get("/api/models/map", params={"name": "encoder"}).json()
    names = ["token", "token_embedding", "scores", "weights", "mixed", "hidden", "logits", "choice"]
    assert [step["name"] for step in told["steps"]] == names
    assert told["layers"] == 0 and not any(step["block"] for step in told["steps"])
    assert {"predict", "values", "parameters"} <= set(told["views"])  # and none that reads what it has not
    assert not {"attention", "lens", "saliency", "neurons", "writing", "change"} & set(told["views"])
    assert "encoder" in [one["name"] for one in client.get("/api/models").json()]


def test_every_step_has_a_picture_and_every_number_of_it_is_explained(client, ask, encoder_lm):
    seen = run(encoder_lm, TEXT)
    told = client.get("/api/models/map", params={"name": "encoder"}).json()
    axes = {one["name"]: one["axes"] for one in told["places"]}
    for step in told["steps"]:
        view = ask(f"walk/{step['name']}", position=1)
        assert view == walk(seen, step["name"], position=1).to_dict()
        for part in view["parts"]:
            for i, row in enumerate(part["rows"] if part["axis"] == "position" else ()):
                keyed, head = axes[part["name"]][-1] == "key", {"head": 0} if axes[part["name"]][0] == "head" else {}
                place = {"position": 1, "column": row} if keyed else {"position": row, "column": 0}
                cell = ask("explain", name=part["name"], **place, **head)
                assert cell["value"] == pytest.approx(part["values"][i][0], rel=1e-5)
                assert cell["total"] == pytest.approx(cell["value"], rel=1e-4, abs=1e-6)


def test_without_a_mask_a_token_attends_to_those_after_it(ask):
    mixed = next(part for part in ask("walk/mixed", position=0)["parts"] if part["role"] == "values")
    assert len(mixed["rows"]) > 1
    assert ask("explain", name="mixed", position=0, column=0)["count"] == len(mixed["rows"])


def test_its_values_are_the_traces(ask, encoder_lm):
    seen = run(encoder_lm, TEXT)
    for name in ("hidden", "weights", "logits"):
        assert ask("values", name=name) == values(seen, name).to_dict()
    assert explain(seen, "hidden", 0, 0).value == pytest.approx(ask("values", name="hidden")["values"][0][0], rel=1e-5)


@dataclass(frozen=True)
class Bare:
    """A shape without layers, heads or a context."""

    kind: ClassVar[str] = "bare"
    vocabulary: int
    end: int = 0


class Average(torch.nn.Module):
    def __init__(self, shape: Bare):
        super().__init__()
        self.config, self.words = shape, torch.nn.Embedding(shape.vocabulary, 4)

    def forward(self, ids, trace):
        words = trace("words", self.words(ids))
        return trace("mean", words.mean(1, keepdim=True).expand_as(words))


class Averages:
    kind, Shape, title, native, prefix, copies = "bare", Bare, "average", False, "", {}

    def tensors(self, shape):
        return ()

    def places(self, shape):
        yield Place("words", ("token", "column"), "look up", ("ids",), "words")
        yield Place("mean", ("token", "column"), "average", ("words",))


def test_an_operation_that_nobody_knows_is_shown_as_what_goes_in_and_what_comes_out(explorer, client, encoder_lm):
    register(Averages())  # type: ignore[arg-type]  # for this test: `encoder_lm` puts the list of models back
    model = Average(Bare(len(encoder_lm.tokenizer)))
    explorer.models.add(LanguageModel(model, encoder_lm.tokenizer, "bare"))  # type: ignore[arg-type]
    made = client.post("/api/traces", json={"model": "bare", "text": TEXT}).json()
    told = client.get("/api/models/map", params={"name": "bare"}).json()
    assert [step["name"] for step in told["steps"]] == ["token", "words", "mean"]
    view = client.get(f"/api/traces/{made['id']}/walk/mean").json()
    assert [part["role"] for part in view["parts"]] == ["in", "out"]
    asked = {"name": "mean", "position": 0, "column": 1}
    cell = client.get(f"/api/traces/{made['id']}/explain", params=asked).json()
    assert cell["kind"] == "given" and cell["value"] == cell["total"] == view["parts"][1]["values"][0][1]
