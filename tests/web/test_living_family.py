"""The living view of the family's models of one text: a BERT looks both ways, an ELMo reads from both ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
import torch

from cutaway.inspect.runs import run
from cutaway.language_model import LanguageModel
from cutaway.models.architecture import places
from cutaway.models.elmo.model import Elmo
from cutaway.models.elmo.shape import Shape
from cutaway.text.spelled_words import SpelledWords

TEXT = "the little fox must obey"
SAID = "document.querySelector('canvas.living').describe()"


@pytest.fixture(scope="module")
def elmo_lm() -> LanguageModel:
    torch.manual_seed(2)
    words = SpelledWords.learn([TEXT, "the fox sat on the mat ."], 200)
    shape = Shape(words=len(words), width=16, cell_width=24, filters=((1, 8), (3, 8)))
    return LanguageModel(Elmo(shape).eval(), words, "elmo")  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def family(server, bert_lm, elmo_lm) -> Iterator[Any]:
    served = server(bert_lm, elmo_lm)
    yield served
    served.stop()


@pytest.mark.parametrize("name", ["bert", "elmo"])
def test_every_length_weight_and_chance_is_pythons(show, settle, family, bert_lm, elmo_lm, name):
    lm = {"bert": bert_lm, "elmo": elmo_lm}[name]
    seen = run(lm, TEXT)
    page = show(f"#/walk?model={name}&text={quote(TEXT)}&position=2", at=family)
    page.wait_for_function(f"{SAID}.river.length > 0")
    settle(page)
    said = page.evaluate(SAID)
    assert [one["id"] for one in said["columns"]] == [one.id for one in seen.tokens]
    for one in said["river"]:
        whole = seen[one["name"]].float()
        vector = whole[:, one["position"]].flatten() if whole.ndim == 3 else whole[one["position"]]
        assert one["length"] == pytest.approx(float(vector.norm()), rel=1e-4), one
    names = {one["name"] for one in said["river"]}
    assert names >= (
        {"blocks.1.residual.middle", "blocks.1.mlp.sum"}
        if name == "bert"
        else {"characters", "blocks.0.residual", "mixed"}
    )
    assert names <= set(places(lm.config))
    for arc in said["arcs"]:
        weight = float(seen[arc["name"]].mean(0)[arc["to"], arc["from"]])
        assert arc["weight"] == pytest.approx(weight, rel=1e-3)
    assert any(arc["from"] > arc["to"] for arc in said["arcs"]) == (name == "bert")  # it looks ahead, too
    if name == "bert":
        best = seen.logits([2])[0].softmax(-1).topk(5)
        assert [one["id"] for one in said["choice"]][:5] == best.indices.tolist()
        assert [one["share"] for one in said["choice"]][:5] == pytest.approx(best.values.tolist(), rel=1e-3)
    assert page.locator("main [role=alert]").count() == 0


def test_both_are_told_to_their_end(show, settle, family):
    for name in ("bert", "elmo"):
        page = show(f"#/walk?model={name}&text={quote(TEXT)}", at=family)
        bar = page.get_by_role("slider", name="The forward pass")
        last = int(bar.get_attribute("max"))
        for stop in (1, last // 2, last):
            bar.fill(str(stop))
            page.wait_for_function(f"{SAID}.stop.n === {stop}")
        settle(page)
        assert page.locator("main [role=alert]").count() == 0
