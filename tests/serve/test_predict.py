"""The branches of Predict: each token's own probability after those before it."""

from __future__ import annotations

import pytest

from cutaway.inspect.attention import attention, looking
from cutaway.inspect.runs import run

TEXT = "Once upon a time"


@pytest.mark.parametrize("text", [TEXT, ""])
def test_each_token_of_a_branch_has_the_probability_it_had_there(client, tiny_lm, text):
    paths = [[5], [7, 9, 11], [7, 8]]
    found = client.post("/api/branches", json={"model": "tiny", "text": text, "paths": paths}).json()
    for path, chances in zip(paths, found, strict=True):
        for i, (one, chance) in enumerate(zip(path, chances, strict=True)):
            logits = tiny_lm.logits([*tiny_lm.ids(text), *path[:i]] or [tiny_lm.config.end])[-1]
            assert chance == pytest.approx(float(logits.softmax(-1)[one]), rel=1e-4)


@pytest.mark.parametrize("paths", [[[]], [[999]], [[1]] * 33])
def test_branches_that_cannot_be_are_refused(client, paths):
    assert client.post("/api/branches", json={"model": "tiny", "text": TEXT, "paths": paths}).status_code == 422


def test_the_head_that_looks_most_from_one_token_to_another(client, trace, tiny_lm):
    seen = run(tiny_lm, TEXT)
    found = client.get(f"/api/traces/{trace(TEXT)['id']}/looking", params={"position": 6, "key": 2}).json()
    most = looking(seen, 6, 2)
    layer, head, weight = most.layer, most.head, most.weight
    assert (found["layer"], found["head"]) == (layer, head) and found["weight"] == pytest.approx(weight, rel=1e-5)
    every = [attention(seen, one, other).weights[6, 2] for one in range(3) for other in range(4)]
    assert weight == pytest.approx(max(every)) == pytest.approx(every[4 * layer + head])
