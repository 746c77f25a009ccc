"""The engine in the page of a static site (web/src/engine) beside the server: the same questions, the same answers."""

from __future__ import annotations

import json
import random
import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")

TOLERANCE = 1e-4
"""How far a number on the page may be from Python's, as a share of its size, or of 1 where it is smaller."""
TEXT = "Once upon a time there was a little robot. It must obey the orders given it"
OTHER = TEXT.replace("little", "other")
"""As many tokens in the small model's vocabulary."""
ASK = """
async ([base, bytes, asked]) => {
  const questions = JSON.parse(asked);  // Playwright carries no half characters
  if (!window.engine) {
    window.engine = new Worker(base + 'assets/engine-worker.js', { type: 'module' });
    window.waiting = new Map();
    window.engine.onmessage = ({ data }) => window.waiting.get(data.id)(data);
    window.engine.postMessage({ start: base + 'site/', bytes });
  }
  const told = [];
  for (const question of questions) {
    const id = window.waiting.size + 1;
    const found = await new Promise((done) => {
      window.waiting.set(id, done);
      window.engine.postMessage({ id, question });
    });
    told.push('json' in found ? { json: found.json } : 'failure' in found ? { failure: found.failure.code }
      : { numbers: Array.from(new Float32Array(found.numbers)), shape: found.shape });
  }
  return told;
}
"""


@pytest.fixture(scope="module")
def odd_lm(tiny_lm) -> Any:
    """A small model that differs from GPT-2 wherever a config may: no tied matrix, another GELU, another scale."""
    import torch

    from cutaway.language_model import LanguageModel
    from cutaway.models.gpt2.model import GPT
    from cutaway.models.gpt2.shape import Config

    torch.manual_seed(5)
    shape = Config(
        vocabulary=330, context=400, width=32, layers=3, heads=4, mlp_width=80, activation="gelu", tied=False,
        scale_by_layer=True, end_token=tiny_lm.config.end,
    )  # fmt: skip
    model = GPT(shape)
    with torch.no_grad():
        for name, one in model.named_parameters():
            one.mul_(
                12 if "queries_keys_values.weight" in name else 4 if name.endswith("weight") and one.ndim > 1 else 1
            )
            one.copy_(one.half().float())  # as a page is sent them
    return LanguageModel(model, tiny_lm.tokenizer, "odd")


class Both:
    """The engine in a page and the server, asked the same."""

    def __init__(self, page: Any, base: str, folder: Path, lm: Any):
        from fastapi.testclient import TestClient

        from cutaway.serve.app import create_app
        from cutaway.serve.explorer import Explorer

        self.page, self.base, self.lm = page, base, lm
        self.bytes = json.loads((folder / "site" / "model.json").read_text())["bytes"]
        self.explorer = Explorer()
        self.explorer.models.add(lm)
        self.client = TestClient(create_app(self.explorer), base_url="http://127.0.0.1:8000")
        page.goto(base + "cutaway-site.json")

    def mine(self, *questions: dict[str, Any]) -> list[dict[str, Any]]:
        told = self.page.evaluate(ASK, [self.base, self.bytes, json.dumps(questions)])
        return [{"json": json.loads(one["json"])} if "json" in one else one for one in told]

    def theirs(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        answer = self.client.request(method, f"/api/{path}", json=body)
        if "x-shape" in answer.headers:
            numbers = np.frombuffer(answer.content, answer.headers["x-type"]).astype(float).tolist()
            return {"numbers": numbers, "shape": [int(one) for one in answer.headers["x-shape"].split(",")]}
        found = answer.json()
        return {"json": found} if answer.status_code == 200 else {"failure": found["error"]["code"]}

    def agree(self, method: str, path: str, body: Any = None, other: str | None = None) -> None:
        [mine] = self.mine({"method": method, "path": path, "body": body})
        theirs = self.theirs(method, other or path, body)
        assert "failure" not in theirs, (path, theirs)
        same(theirs, mine, path)

    def trace(self, text: str, **more: Any) -> tuple[str, str]:
        """The text carried through by both; the ids of the two runs."""
        body = {"model": self.lm.name, "text": text, **more}
        self.agree("POST", "traces", body)
        [mine] = self.mine({"method": "POST", "path": "traces", "body": body})
        return mine["json"]["id"], self.theirs("POST", "traces", body)["json"]["id"]

    def views(self, runs: tuple[str, str], *asked: tuple[str, dict[str, Any]]) -> None:
        for view, query in asked:
            mine, theirs = (f"traces/{run}/{view}?{urlencode(query, doseq=True)}" for run in runs)
            self.agree("GET", mine, other=theirs)


def same(theirs: Any, mine: Any, where: str) -> None:
    """Numbers within the tolerance, and everything else exactly."""
    if isinstance(theirs, dict):
        assert isinstance(mine, dict) and theirs.keys() == mine.keys(), (where, theirs.keys() ^ mine.keys())
        for name, value in theirs.items():
            if name != "id" or not isinstance(value, str):
                same(value, mine[name], f"{where} {name}")
    elif isinstance(theirs, list):
        assert isinstance(mine, list) and len(theirs) == len(mine), (where, len(theirs), mine)
        for at, (one, other) in enumerate(zip(theirs, mine, strict=True)):
            same(one, other, f"{where} {at}")
    elif isinstance(theirs, float) and mine is not None:
        assert abs(theirs - mine) <= TOLERANCE * max(1, abs(theirs)), (where, theirs, mine)
    else:
        assert theirs == mine, (where, theirs, mine)


@pytest.fixture
def both(browser, files) -> Iterator[Callable[[Any], Both]]:
    """A function: a model -> its site and its server. What only Python answers is recorded for one step of the tour."""
    from cutaway.serve import recording
    from cutaway.serve.site import export_site

    folder, address = files
    made: list[Both] = []
    contexts = []

    def open_both(lm: Any) -> Both:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(recording, "tasks", lambda recorder, built: None)
            patch.setattr(recording, "together", lambda *what: None)
            whole = recording.record
            patch.setattr(
                "cutaway.serve.site.record",
                lambda recorder, built, *rest: whole(recorder, {**built, "tour": built["tour"][:1]}, *rest),
            )
            export_site(lm, folder / "some" / "where" / lm.name)
        context = browser.new_context()
        contexts.append(context)
        found = Both(context.new_page(), f"{address}some/where/{lm.name}/", folder / "some" / "where" / lm.name, lm)
        made.append(found)
        return found

    yield open_both
    for one in made:
        one.explorer.close()
    for context in contexts:
        context.close()


def test_the_engine_in_the_page_answers_as_the_server_does(both, odd_lm):
    """Every address that the engine answers, on a model that differs from GPT-2 wherever it may."""
    here = both(odd_lm)
    runs = here.trace(TEXT)
    tokens = len(odd_lm.ids(TEXT))
    steps = [step["name"] for step in here.theirs("GET", "models/map?name=odd")["json"]["steps"]]
    here.views(
        runs,
        ("predict", {}),
        ("predict", {"position": 3, "temperature": 0.7, "top_k": 12, "top_p": 0.8, "dice": 0.4}),
        ("ahead", {}),
        ("roles", {"tokens": 16, "texts": 4}),
        ("heads", {"picture": 8}),
        ("heads", {"picture": 64, "layer": [2]}),
        ("looking", {"position": 9, "key": 4}),
        ("attention", {"layer": 2, "head": 1, "position": 7, "attended": 3, "parts": "queries,keys,values,output"}),
        ("attention", {"layer": 1, "head": 2, "parts": "scores,masked,weights,merged,projected"}),
        ("attention/scores", {"layer": 1, "head": 2}),
        ("attention/weights", {"layer": 1, "head": 3}),
        ("lens", {"first": 2, "count": 6, "k": 3, "watch": ["id:5", "9"]}),
        ("values", {"name": "blocks.1.mlp.hidden", "position": 4}),
        ("values", {"name": "blocks.1.attention.masked", "head": 2}),
        ("values", {"name": "blocks.1.attention.keys", "position": 2}),
        ("table", {"name": "blocks.2.attention.weights", "head": 1}),
        ("table", {"name": "blocks.2.mlp.output"}),
        ("activations", {"layer": 2}),
        ("machine/folded", {"name": ["residual.0", "blocks.2.attention.heads", "blocks.2.mlp.activation"], "first": 2,
                            "count": 8, "cells": 24}),
        ("machine/looks", {"name": ["blocks.0.attention.weights", "blocks.2.attention.weights"], "k": 5}),
        ("machine/rows", {"name": ["blocks.0.attention.weights"], "first": 2, "count": 8, "position": 6}),
        ("machine/expected", {"first": 1, "count": 64}),
        ("neurons", {"position": 5, "top": 4}),
        ("neurons", {"layer": [1, 2], "top": 3}),
        ("neuron", {"layer": 2, "neuron": 17}),
        ("writing", {"temperature": 1.3, "top_k": 0, "top_p": 0.9, "seed": 4294967295, "max_tokens": 20}),
        ("writing", {"seed": 7, "max_tokens": 30}),
        ("writing", {"top_k": 1, "max_tokens": 8}),
        ("cache", {"max_tokens": 5}),
        ("beams", {"beams": 3, "max_tokens": 8, "length_penalty": 0.6}),
        *(("saliency", {"target": target, "method": method, "steps": 6})
          for method in ("gradient", "integrated", "occlusion", "rollout", "values") for target in (tokens, 5)),
        ("saliency", {"target": tokens, "against": "id:7"}),
        ("sweep", {"what": "head", "how": "zero", "position": tokens - 1}),
        ("sweep", {"what": "residual", "how": "zero", "layer": [1]}),
        *(("sweep", {"what": what, "how": "patch", "corrupted": OTHER, "token": "id:9", "layer": [1]})
          for what in ("residual", "mlp", "attention", "attention pattern")),
        *((f"walk/{step}", {"layer": layer, "head": 1, "position": 6, "limit": 64})
          for step in steps for layer in (0, 2)),
    )  # fmt: skip
    inside = "blocks.2.attention"
    for name, column, head in [
        ("token_embedding", 5, None), ("position_embedding", 5, None), ("residual.0", 5, None),
        (f"{inside}.norm", 7, None), (f"{inside}.norm.standardized", 7, None), (f"{inside}.keys", 7, 3),
        (f"{inside}.scores", 4, 3), (f"{inside}.masked", 4, 3), (f"{inside}.masked", 9, 3), (f"{inside}.weights", 4, 3),
        (f"{inside}.heads", 4, 3), (f"{inside}.merged", 30, None), (f"{inside}.output", 30, None),
        ("blocks.2.mlp.hidden", 70, None), ("blocks.2.mlp.activation", 70, None), ("blocks.2.residual", 10, None),
        ("final_norm", 10, None), ("logits", 33, None), ("probabilities", 33, None),
    ]:  # fmt: skip
        here.views(
            runs, ("explain", {"name": name, "position": 6, "column": column} | ({"head": head} if head else {}))
        )
    for change in (
        {"kind": "ablate_head", "layer": 2, "head": 1},
        {"kind": "ablate_neuron", "layer": 1, "neuron": 50, "position": 3},
        {"kind": "steer", "layer": 1, "toward": "a fox", "away": "a hill", "strength": 2.0},
        {"kind": "toward", "layer": 1, "token": "id:40", "strength": 0.5, "position": -1},
        {"kind": "patch", "name": "blocks.1.residual", "text": OTHER, "position": 25},
        {"kind": "patch", "name": "blocks.1.attention.heads", "text": OTHER, "head": 1},
    ):
        body = {"changes": [change], "position": -1, "k": 6}
        here.agree("POST", f"traces/{runs[0]}/change", body, f"traces/{runs[1]}/change")
    refused = here.mine(
        {"method": "GET", "path": f"traces/{runs[0]}/factors?count=6", "body": None},
        {"method": "GET", "path": "traces/0123/predict", "body": None},
        {"method": "POST", "path": "traces", "body": {"text": "x" * 401}},
    )
    assert [one["failure"] for one in refused] == ["not_in_site", "forgotten", "too_long"]
    for path in (
        "gallery/words?name=odd&layer=1&head=2", "gallery/mixture?name=odd", "gallery/loop?name=odd&seed=3",
        "gallery/batch?name=odd", "weights/neighbours?model=odd&word=robot", "weights/waves?model=odd",
        "weights?model=odd", "weights/sizes", "weights?size=gpt2", "models/map?name=odd",
        "weights/matrix?model=odd&name=blocks.1.mlp.widen.weight&size=16",
        "weights/matrix?model=odd&name=final_norm.bias",
        "weights/pictures?model=odd&size=20&name=blocks.1.mlp.widen.weight&name=token_embedding.weight",
    ):  # fmt: skip
        here.agree("GET", path)
    for text in ("Once upon", ""):
        here.agree("POST", "branches", {"model": "odd", "text": text, "paths": [[5, 6, 7], [9]]})


def test_a_long_text_and_one_that_goes_on_have_the_same_numbers(both, odd_lm):
    """Longer texts are read without their tables, and a text that begins like another takes over what that one has."""
    here = both(odd_lm)
    long = (TEXT + " ") * 8
    assert len(odd_lm.ids(long)) > 256
    asked = [
        ("predict", {"position": 200}),
        ("heads", {"layer": [1], "picture": 16}),
        ("explain", {"name": "blocks.2.attention.heads", "position": 250, "column": 3, "head": 1}),
        ("walk/scores", {"layer": 1, "head": 1, "position": 250}),
    ]
    here.views(here.trace(long), *asked)
    here.views(here.trace(long + " and so on"), *asked)
    words = TEXT.split(" ")
    for count in (len(words) - 2, len(words)):
        text = " ".join(words[:count])
        here.views(
            here.trace(text), ("predict", {}), ("lens", {"k": 2}), ("attention/weights", {"layer": 2, "head": 0})
        )


def test_the_builtin_model_has_the_same_numbers_in_the_page(both, builtin):
    here = both(builtin)
    runs = here.trace(TEXT)
    here.views(
        runs,
        ("predict", {"temperature": 0.8, "top_k": 40}),
        ("table", {"name": "blocks.2.attention.weights", "head": 1}),
        ("lens", {"first": 3, "count": 4}),
        ("writing", {"seed": 3, "max_tokens": 12}),
        ("saliency", {"target": len(builtin.ids(TEXT))}),
        ("values", {"name": "logits", "position": -1}),
    )
    here.agree("POST", "facts", here_fact(builtin.name))
    texts = [
        *odd_texts(400),
        "<|endoftext|>",
        "\ud800 half \udc80\udcff",
        " \u0085\ufeff\u3000 x",
        "I've it's 'LL x''s",
    ]
    questions = [{"method": "POST", "path": "tokens", "body": {"text": text}} for text in texts]
    here.agree("POST", "tokens", {"model": builtin.name, "text": "".join(texts[:200]), "ids": [0, 5]})
    for text, found in zip(texts, here.mine(*questions), strict=True):
        assert [one["id"] for one in found["json"]] == builtin.tokenizer.encode(text), repr(text)


def here_fact(model: str) -> dict[str, Any]:
    """The first step of the tour that has one: it was recorded."""
    from cutaway.serve.app import STATIC

    step = json.loads((STATIC / "moments.json").read_text())["tour"][0]
    return {"model": model, "text": step["place"]["text"], "facts": step["facts"], "own": False}


def odd_texts(count: int, seed: int = 11) -> list[str]:
    """Letters, numbers, signs, spaces and emoji of many kinds, in pieces of a few."""
    dice = random.Random(seed)
    ranges = [(32, 127), (32, 127), (0xA0, 0x250), (0x370, 0x530), (0x590, 0x700), (0x900, 0xE80), (0x2000, 0x2070),
              (0x2150, 0x2190), (0x3000, 0x3100), (0x4E00, 0x4F00), (0xAC00, 0xAD00), (0xFE00, 0xFF60),
              (0x1F300, 0x1F700), (9, 14)]  # fmt: skip
    common = [" the", " a", "ing", "  ", "\n\n", "'s", "'ll", " 1234", "\r\n", "!!!", " ...", "ação", "naïve", "Ω", "½"]

    def piece() -> str:
        if dice.random() < 0.4:
            return dice.choice(common)
        low, high = dice.choice(ranges)
        signs = (chr(dice.randrange(low, high)) for _ in range(dice.randrange(1, 4)))
        return "".join(sign for sign in signs if unicodedata.category(sign) != "Cn")  # not yet in Unicode here

    return ["".join(piece() for _ in range(dice.randrange(1, 14))) for _ in range(count)]


@pytest.mark.slow
def test_every_character_there_is_is_cut_as_python_cuts_it(both, odd_lm):
    """One by one, beside a letter and a number."""
    here = both(odd_lm)
    signs = [chr(one) for one in range(sys.maxunicode + 1) if unicodedata.category(chr(one)) not in ("Cs", "Cn", "Co")]
    for first in range(0, len(signs), 512):
        text = "".join(f"a{sign}b {sign}1{sign}" for sign in signs[first : first + 512])
        [found] = here.mine({"method": "POST", "path": "tokens", "body": {"text": text}})
        assert [one["id"] for one in found["json"]] == odd_lm.tokenizer.encode(text), (first, signs[first])
