"""Generate's endpoints are the Python functions, and refuse what is out of bounds."""

from __future__ import annotations

import pytest

from cutaway.inspect.beams import tree
from cutaway.inspect.cache import cache
from cutaway.inspect.choices import choices

TEXT = "Once upon a time there was"
HOW = {"temperature": 1.2, "top_k": 20, "top_p": 0.9, "seed": 7}


def test_the_cache_and_the_choices_are_of_one_text_written_once(client, trace, tiny_lm):
    key, passes = trace(TEXT)["id"], []
    hook = tiny_lm.model.blocks[0].register_forward_pre_hook(lambda *_: passes.append(1))
    try:
        found = client.get(f"/api/traces/{key}/writing", params={**HOW, "max_tokens": 6}).json()
    finally:
        hook.remove()
    steps, drawn = found["cache"], found["choices"]
    assert len(passes) == len(steps["steps"]) - 1  # the prompt was read when the text was
    assert steps == cache(tiny_lm, TEXT, 6, **HOW).to_dict()
    wanted = choices(tiny_lm, TEXT, 6, **HOW).to_dict()
    assert {**drawn, "steps": []} == {**wanted, "steps": []}
    for one, other in zip(drawn["steps"], wanted["steps"], strict=True):
        assert one["chosen"] == other["chosen"] and one["die"] == other["die"]
        chances = [[row["chance"] for row in step["candidates"]] for step in (one, other)]
        assert chances[0] == pytest.approx(chances[1], rel=1e-4)
    written = [step["token"]["id"] for step in steps["steps"] if step["token"]]
    assert [step["chosen"] for step in drawn["steps"]][: len(written)] == written


def test_a_top_k_of_nothing_is_the_whole_vocabulary(client, trace):
    drawn = client.get(f"/api/traces/{trace(TEXT)['id']}/writing", params={"top_k": 0, "max_tokens": 1}).json()
    assert drawn["choices"]["steps"][0]["possible"] == 320


def test_a_temperature_of_0_takes_the_likeliest_without_a_die(client, trace, tiny_lm):
    key = trace(TEXT)["id"]
    drawn = client.get(f"/api/traces/{key}/writing", params={"temperature": 0, "max_tokens": 4}).json()["choices"]
    assert [step["chosen"] for step in drawn["steps"]] == tiny_lm.generate(TEXT, max_tokens=4, temperature=0).ids
    for step in drawn["steps"]:
        first, *others = step["candidates"]
        assert step["die"] is None and (step["possible"], first["chance"], first["warm"], first["cut"]) == (1, 1, 1, "")
        assert {(one["chance"], one["cut"]) for one in others} == {(0, "top_k")}
    answer = client.get(f"/api/traces/{key}/predict", params={"temperature": 0, "dice": 0.7}).json()
    assert answer["possible"] == 1 and answer["drawn"]["id"] == drawn["steps"][0]["chosen"]


def test_the_tree_is_the_search(client, trace, tiny_lm):
    asked = {"beams": 3, "max_tokens": 5, "length_penalty": 0.5}
    answer = client.get(f"/api/traces/{trace(TEXT)['id']}/beams", params=asked).json()
    assert answer == tree(tiny_lm, TEXT, 3, 5, length_penalty=0.5).to_dict()


@pytest.mark.parametrize(
    ("view", "wrong"),
    [
        ("writing", {"max_tokens": 0}), ("writing", {"max_tokens": 101}), ("writing", {"temperature": -1}),
        ("writing", {"seed": -1}), ("writing", {"top_p": 2}), ("beams", {"beams": 9}), ("beams", {"max_tokens": 41}),
    ],
)  # fmt: skip
def test_what_is_out_of_bounds_is_refused(client, trace, view, wrong):
    answer = client.get(f"/api/traces/{trace('Once')['id']}/{view}", params=wrong)
    assert answer.status_code == 422 and next(iter(wrong)) in answer.json()["error"]["what"]


def test_a_full_context_writes_nothing(client, trace, tiny_lm):
    ids = (tiny_lm.ids("the little fox ") * 48)[: tiny_lm.config.context]
    key = trace("", more=ids)["id"]
    found = client.get(f"/api/traces/{key}/writing").json()
    assert found["cache"]["steps"] == found["choices"]["steps"] == []
    assert client.get(f"/api/traces/{key}/beams").status_code == 200
