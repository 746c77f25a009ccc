"""The lens: its last row is the output, its ranks are counted, its watched tokens are followed."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.inspect.change import AblateHead
from cutaway.inspect.lens import lens
from cutaway.inspect.run import run


def test_the_last_row_is_the_output(tiny_lm, seen):
    found = lens(seen, k=320)
    chances = seen["logits"].float().softmax(-1)
    order = found.top[-1]
    np.testing.assert_allclose(
        found.top_probability[-1], np.take_along_axis(chances.numpy(), order, 1), rtol=1e-5, atol=1e-9
    )
    ours = np.take_along_axis(tiny_lm.logits(seen.text).softmax(-1).numpy(), order, 1)
    np.testing.assert_allclose(found.top_probability[-1], ours, rtol=1e-3, atol=1e-7)
    np.testing.assert_allclose(found.top_probability.sum(-1), 1, rtol=1e-5)


def test_every_layer_goes_through_the_final_norm(tiny_lm, seen):
    found = lens(seen, k=3)
    model = tiny_lm.model
    for layer, name in enumerate(["residual.0", "blocks.0.residual", "blocks.1.residual"]):
        with torch.no_grad():
            logits = model.score(model.final_norm(seen[name]))
        assert found.top[layer].tolist() == logits.topk(3).indices.tolist()
        for position, token in enumerate(found.chosen):
            above = int((logits[position] > logits[position, token.id]).sum())
            assert found.rank[layer, position] == above + 1
            assert found.probability[layer, position] == pytest.approx(
                float(logits[position].softmax(-1)[token.id]), rel=1e-4
            )


def test_the_chosen_token_is_the_one_that_comes_and_at_the_end_the_likeliest(seen):
    found = lens(seen)
    assert [token.id for token in found.chosen[:-1]] == list(seen.ids[1:])
    assert found.rank[-1, -1] == 1
    assert {token.id for token in lens(seen, chosen=7).chosen} == {7}


def test_watched_tokens_are_followed_beside_it(seen):
    found = lens(seen, positions=[2, -1], watch=[5, 9, seen.ids[3]])
    assert found.positions == (2, len(seen) - 1)
    assert [one.token.id for one in found.watch] == [5, 9, seen.ids[3]]
    assert found.watch[2].rank[:, 0].tolist() == found.rank[:, 0].tolist()
    alone = lens(seen, positions=[2], chosen=5)
    np.testing.assert_array_equal(alone.rank[:, 0], found.watch[0].rank[:, 0])
    np.testing.assert_allclose(alone.probability[:, 0], found.watch[0].probability[:, 0], rtol=1e-4)


def test_some_positions_give_what_all_give(seen):
    whole, some = lens(seen), lens(seen, positions=[1, 4, 3])
    np.testing.assert_array_equal(some.rank, whole.rank[:, [1, 4, 3]])
    np.testing.assert_allclose(some.top_probability, whole.top_probability[:, [1, 4, 3]], rtol=1e-4)


def test_a_changed_run_has_its_own_lens(tiny_lm, seen):
    after = run(tiny_lm, seen.ids, changes=[AblateHead(1, 0)])
    before, now = lens(seen, chosen=7), lens(after, chosen=7)
    np.testing.assert_array_equal(before.probability[:2], now.probability[:2])
    assert not np.allclose(before.probability[2:], now.probability[2:])


def test_the_json_names_every_token_it_shows(seen):
    told = json.loads(json.dumps(lens(seen, k=2, watch=[3]).to_dict(), allow_nan=False))
    shown = {str(one) for layer in told["top"] for position in layer for one, _ in position}
    assert shown == set(told["words"])
    assert len(told["layers"]) == len(told["rank"]) == 4 and len(told["watch"][0]["rank"][0]) == len(seen)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"k": 0}, "1 or more"),
        ({"k": 1.5}, "whole number"),
        ({"watch": [1.5]}, "by its text or its id"),
        ({"watch": [999]}, "no token 999"),
        ({"positions": [50]}, "no token 50"),
    ],
)
def test_what_is_not_there_is_refused(seen, how, said):
    with pytest.raises(CutawayError, match=said):
        lens(seen, **how)


def test_tokens_are_named_by_their_text_or_their_id(tiny_lm, seen):
    [upon, a] = tiny_lm.ids("upon a")
    by_id, by_text = lens(seen, watch=[upon, a], chosen=a), lens(seen, watch=["upon", " a"], chosen=" a")
    assert by_id.to_dict() == by_text.to_dict()
    assert lens(seen, watch=["id:7"]).watch[0].token.id == 7
    for one in ("upon", upon):  # a single one needs no list
        assert [followed.token.id for followed in lens(seen, watch=one).watch] == [upon]
    refused = {"wondrous": "is not one token", "": "is not one token", 320: "no token 320", "id:999": "no token 999"}
    for wrong, said in refused.items():
        with pytest.raises(CutawayError, match=said):
            lens(seen, watch=[wrong])
