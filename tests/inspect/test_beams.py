"""The tree of a beam search holds its results, and every candidate it looked at."""

from __future__ import annotations

import json
import math

import pytest

from cutaway.errors import CutawayError
from cutaway.inspect.beams import tree


def ids_of(found, node) -> list[int]:
    ids: list[int] = []
    while node.parent is not None:
        ids.insert(0, node.token.id)
        node = found.nodes[node.parent]
    return ids


@pytest.mark.parametrize("beams", [1, 2, 4])
@pytest.mark.parametrize("settings", [{}, {"length_penalty": 0.0}, {"logit_bias": {319: 4.0}}, {"stop": ("e",)}])
def test_the_tree_holds_what_the_search_finds(tiny_lm, beams, settings):
    found = tree(tiny_lm, "Once upon", beams, 6, **settings)
    results = tiny_lm.generate("Once upon", 6, beams=beams, best=beams, **settings)
    assert list(found.results) == results
    places = {node.result: node for node in found.nodes if node.result is not None}
    assert sorted(places) == list(range(len(results)))
    for place, result in enumerate(results):
        node = places[place]
        ids = ids_of(found, node)
        assert (ids[:-1] if node.reason == "end" else ids) == result.ids
        assert node.score == pytest.approx(result.score) and node.kept and node.reason == result.reason


def test_every_step_looks_at_twice_as_many_as_it_keeps(tiny_lm):
    found = tree(tiny_lm, "Once upon", 3, 4, logit_bias={319: -math.inf})
    for depth in range(1, 5):
        nodes = [node for node in found.nodes if node.depth == depth]
        assert len(nodes) == 6 and sum(node.kept for node in nodes) == 3
        totals = [node.total for node in nodes]
        assert totals == sorted(totals, reverse=True)
    for node in found.nodes[1:]:
        parent = found.nodes[node.parent]
        assert parent.kept and not parent.reason and parent.depth == node.depth - 1
        assert node.total == pytest.approx(parent.total + node.logprob, abs=1e-4)


def test_its_json_is_json(tiny_lm):
    found = tree(tiny_lm, "Once", 2, 3)
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["nodes"][0]["token"] is None and told["nodes"][0]["parent"] is None
    for place, result in enumerate(told["results"]):
        assert told["nodes"][result["node"]]["result"] == place
    assert [token["id"] for token in told["prompt"]] == tiny_lm.ids("Once")


def test_no_room_for_a_token_is_a_tree_of_its_root(tiny_lm):
    assert len(tree(tiny_lm, "Once", 2, 0).nodes) == 1


@pytest.mark.parametrize(("prompt", "beams", "said"), [("", 2, "no text"), ("a", 0, "1 or more"), ("x " * 60, 2, "48")])
def test_bad_input_is_refused(tiny_lm, prompt, beams, said):
    with pytest.raises(CutawayError, match=said):
        tree(tiny_lm, prompt, beams)
