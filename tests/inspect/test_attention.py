"""Attention: rows sum to one, nobody sees the future, every step follows from the one before."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

from cutaway.errors import CutawayError
from cutaway.inspect.attention import PARTS, attention, follow_same, heads
from cutaway.inspect.runs import run


@pytest.mark.parametrize("layer", range(3))
@pytest.mark.parametrize("head", range(4))
def test_every_step_of_a_head_follows_from_the_one_before(tiny_lm, seen, layer, head):
    found = attention(seen, layer, head)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1, rtol=1e-5)
    assert np.abs(np.triu(found.weights, 1)).max() == 0
    np.testing.assert_allclose(found.scores, found.queries @ found.keys.T * found.scale, rtol=1e-3, atol=1e-4)
    future = np.triu(np.ones_like(found.scores), 1).astype(bool)
    np.testing.assert_array_equal(found.masked[~future], found.scores[~future])
    np.testing.assert_allclose(found.output, found.weights @ found.values, rtol=1e-3, atol=1e-5)
    np.testing.assert_array_equal(found.merged[:, 12 * head : 12 * head + 12], found.output)
    projection = tiny_lm.model.blocks[layer].attention.projection
    wanted = found.merged @ projection.weight.detach().numpy().T + projection.bias.detach().numpy()
    np.testing.assert_allclose(found.projected, wanted, rtol=1e-3, atol=1e-4)


def test_one_query_is_the_row_of_the_whole(seen):
    whole, row = attention(seen, 1, 2), attention(seen, 1, 2, position=5)
    for part in ("queries", "scores", "masked", "weights", "output", "merged", "projected"):
        wanted = getattr(whole, part)[5:6]
        np.testing.assert_array_equal(getattr(row, part), wanted[:, :6] if wanted.shape[1] == len(seen) else wanted)
    assert len(row.keys) == len(row.values) == 6


def test_the_json_has_null_for_the_future_and_only_the_parts_asked_for(seen):
    told = json.loads(json.dumps(attention(seen, 0, 0).to_dict(), allow_nan=False))
    assert set(told) == {"layer", "head", "position", "scale", *PARTS}
    assert told["masked"][0][1] is None and told["masked"][1][1] is not None
    assert set(attention(seen, 0, 0).to_dict(["weights"])) == {"layer", "head", "position", "scale", "weights"}
    with pytest.raises(CutawayError, match="Did you mean 'weights'"):
        attention(seen, 0, 0).to_dict(["weight"])


def test_the_summaries_are_what_they_say(seen):
    found = heads(seen)
    weights = seen["blocks.2.attention.weights"][3].numpy().astype(float)
    tokens = len(seen)
    bits = [-sum(w * np.log2(w) for w in row if w > 0) for row in weights]
    back = [sum((query - key) * weights[query, key] for key in range(query + 1)) for query in range(tokens)]
    assert found.entropy[2, 3] == pytest.approx(np.mean(bits), rel=1e-4)
    assert found.distance[2, 3] == pytest.approx(np.mean(back), rel=1e-4)
    assert found.previous[2, 3] == pytest.approx(np.mean([weights[i, i - 1] for i in range(1, tokens)]), rel=1e-4)
    assert found.first[2, 3] == pytest.approx(weights[1:, 0].mean(), rel=1e-4)
    assert found.itself[2, 3] == pytest.approx(np.mean([weights[i, i] for i in range(1, tokens)]), rel=1e-4)
    pairs = follow_same(seen.ids)
    assert pairs and found.induction is not None
    assert found.induction_queries == len(pairs) == found.to_dict()["induction_queries"]
    assert found.induction[2, 3] == pytest.approx(np.mean([weights[pair] for pair in pairs]), rel=1e-4)
    only = heads(seen, layers=[-1])
    assert only.layers == (2,)
    np.testing.assert_array_equal(only.entropy[0], found.entropy[2])


def test_induction_looks_at_what_followed_the_same_token_last():
    assert follow_same([5, 6, 7, 5, 6, 5]) == [(3, 1), (4, 2), (5, 4)]
    assert follow_same([5, 5]) == [] and follow_same([1, 2, 3]) == []


def test_without_repeats_there_is_no_induction(tiny_lm):
    found = heads(run(tiny_lm, list(range(40, 46))))
    assert found.induction is None and found.to_dict()["induction"] is None and found.induction_queries == 0
    alone = heads(run(tiny_lm, [40]), picture=8)
    assert alone.entropy.max() == 0 and alone.size == 1


def test_one_token_looks_at_itself_and_at_nothing_else(tiny_lm):
    alone = heads(run(tiny_lm, [40]))
    assert alone.itself == pytest.approx(1)
    assert alone.previous is None and alone.first is None and alone.to_dict()["previous"] is None


@pytest.mark.parametrize("size", [8, 24])
def test_the_pictures_are_small_and_the_strongest_cell_of_a_row_is_the_darkest(seen, size):
    told = heads(seen, picture=size).to_dict()["picture"]
    assert told["size"] == min(size, len(seen))
    for row in told["pixels"]:
        for picture in row:
            cells = base64.b64decode(picture)
            side = told["size"]
            assert len(cells) == side**2
            assert all(max(cells[row : row + side]) == 255 for row in range(0, side**2, side))
    assert heads(seen).to_dict()["picture"] is None
