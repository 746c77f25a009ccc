"""The contest over HTTP: who takes part comes from the machine, and every answer is what Python says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import cutaway
from cutaway.checkpoint.locate import DATA, SHIPPED
from cutaway.inspect import contest
from cutaway.serve.app import create_app
from cutaway.serve.explorer import Explorer
from cutaway.tasks import Translation, load_task
from cutaway.tasks.answer import translate
from tests.inspect.test_pairs import make

TEXT = "The black cat is under the table."
THERE = [name for name in SHIPPED if (DATA / name / "config.json").is_file()]
INCLUDED = [name for name in THERE if isinstance(load_task(DATA / name), Translation)]


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    """A folder of each of two kinds that somebody trained, with random weights."""
    parent = tmp_path_factory.mktemp("translators")
    for name in ("plain", "pre"):
        lm = make(name)
        Translation(limit=40).save(lm.model, lm.tokenizer, parent / name)
    return {name: parent / name for name in ("plain", "pre")}


@pytest.fixture
def asking(folders) -> Any:
    explorer = Explorer([str(one) for one in folders.values()])
    yield TestClient(create_app(explorer), base_url="http://127.0.0.1:8000", raise_server_exceptions=False)
    explorer.close()


def ask(client: TestClient, model: str, text: str = TEXT, beams: int = 4) -> Any:
    return client.post("/api/contest/entries", json={"model": model, "text": text, "beams": beams})


def test_every_model_here_that_translates_takes_part_the_oldest_kind_first(asking, folders):
    found = asking.get("/api/contest").json()["models"]
    assert {one["name"] for one in found} == {*INCLUDED, *map(str, folders.values())}
    kinds = [one["kind"] for one in found]
    assert kinds == sorted(kinds, key=["plain", "attention", "transformer", "gpt2", "other"].index)
    for one in found:
        assert one["weights"] == sum(value.numel() for value in cutaway.load(one["name"]).model.parameters())


def test_each_translation_is_that_of_translate_and_is_asked_once(asking, folders):
    for name in [*INCLUDED, *map(str, folders.values())]:
        found = ask(asking, name).json()
        lm, task = cutaway.load(name), load_task(DATA / name if name in INCLUDED else name)
        wanted = next(translate(lm, task, [TEXT]))
        assert found["text"] == wanted.text and found["ended"] == wanted.whole
        assert found["seconds"] > 0
        assert ask(asking, name).json() == found  # also the time: it was measured when it was written
    first = str(folders["plain"])
    assert ask(asking, first, beams=1).json()["text"] == next(
        translate(cutaway.load(first), load_task(first), [TEXT], beams=1)
    ).text  # fmt: skip


def test_what_cannot_be_asked_is_said(asking, folders):
    assert ask(asking, "builtin").json()["error"]["code"] == "no_task"
    assert ask(asking, "/no/such/folder").json()["error"]["code"] == "no_task"
    assert ask(asking, str(folders["pre"]), " ").json()["error"]["code"] == "no_text"
    refused = ask(asking, str(folders["pre"]), "fox " * 60)
    assert refused.status_code == 422 and "too long" in refused.json()["error"]["what"]
    assert ask(asking, str(folders["pre"]), beams=9).status_code == 422


def test_a_damaged_folder_is_listed_and_says_what_is_wrong_with_it(folders, tmp_path):
    damaged = tmp_path / "damaged"
    shutil.copytree(folders["plain"], damaged)
    (damaged / "model.safetensors").write_bytes(b"nothing")
    explorer = Explorer([str(damaged), str(tmp_path / "gone")])
    client = TestClient(create_app(explorer), base_url="http://127.0.0.1:8000", raise_server_exceptions=False)
    names = [one["name"] for one in client.get("/api/contest").json()["models"]]
    assert str(damaged) in names and str(tmp_path / "gone") not in names
    said = ask(client, str(damaged))
    assert said.status_code == 422 and "safetensors" in said.json()["error"]["what"]
    explorer.close()


def test_results_are_told_where_they_ship(asking, tmp_path, monkeypatch):
    monkeypatch.setattr(contest, "RESULTS", tmp_path / "results.json")
    assert asking.get("/api/contest").json()["results"] is None
    (tmp_path / "results.json").write_text(json.dumps({"rows": []}))
    assert asking.get("/api/contest").json()["results"] == {"rows": []}


def test_the_answer_is_described(asking):
    document = asking.get("/openapi.json").json()
    told = document["paths"]["/api/contest/entries"]["post"]["responses"]["200"]
    assert told["content"]["application/json"]["schema"]["$ref"].endswith("/Entry")
