"""Changes do what they say, only what they say, and what they changed is told."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.inspect.change import AblateHead, AblateNeuron, Patch, Steer, Toward, changed, from_dict
from cutaway.inspect.generation import generation
from cutaway.inspect.run import run, written
from cutaway.language_model import LanguageModel
from cutaway.model import GPT


def copied(model: GPT) -> GPT:
    """The same weights; not what tests of the server have hung on the shared model."""
    other = GPT(model.config).eval()
    other.load_state_dict(model.state_dict())
    return other


def without_head(lm: LanguageModel, layer: int, head: int) -> LanguageModel:
    """The model with the head's columns of the projection at zero: recomputed, not traced."""
    model = copied(lm.model)
    width = lm.config.head_width
    with torch.no_grad():
        model.blocks[layer].attention.projection.weight[:, head * width : (head + 1) * width] = 0
    return LanguageModel(model, lm.tokenizer)


@pytest.mark.parametrize(("layer", "head"), [(0, 0), (1, 3), (2, 1)])
def test_an_ablated_head_gives_zero_and_equals_a_model_without_it(tiny_lm, seen, layer, head):
    after = run(tiny_lm, seen.ids, changes=[AblateHead(layer, head)])
    assert after[f"blocks.{layer}.attention.heads"][head].abs().max() == 0
    assert after[f"blocks.{layer}.attention.heads"][head - 1].abs().max() > 0
    torch.testing.assert_close(
        after["logits"], without_head(tiny_lm, layer, head).logits(seen.ids), rtol=1e-4, atol=1e-4
    )


def test_an_ablated_neuron_gives_zero_and_equals_a_model_without_it(tiny_lm, seen):
    after = run(tiny_lm, seen.ids, changes=[AblateNeuron(1, 17)])
    model = copied(tiny_lm.model)
    with torch.no_grad():
        model.blocks[1].mlp.projection.weight[:, 17] = 0
    assert after["blocks.1.mlp.activation"][:, 17].abs().max() == 0
    wanted = LanguageModel(model, tiny_lm.tokenizer).logits(seen.ids)
    torch.testing.assert_close(after["logits"], wanted, rtol=1e-4, atol=1e-4)


def test_several_changes_of_one_value_are_all_made(tiny_lm, seen):
    after = run(tiny_lm, seen.ids, changes=[AblateHead(1, 0), AblateHead(1, 2)])
    heads = after["blocks.1.attention.heads"].abs().amax(dim=(1, 2))
    assert (heads == 0).tolist() == [True, False, True, False]


def test_at_one_token_the_others_stay(tiny_lm, seen):
    after = run(tiny_lm, seen.ids, changes=[AblateHead(1, 0, position=4)])
    heads, before = after["blocks.1.attention.heads"], seen["blocks.1.attention.heads"]
    assert heads[0, 4].abs().max() == 0
    assert torch.equal(heads[0, :4], before[0, :4]) and torch.equal(heads[0, 5:], before[0, 5:])
    assert torch.equal(after["logits"][:4], seen["logits"][:4])


def test_steering_adds_the_difference_of_two_texts(tiny_lm, seen):
    steer = Steer(1, "a fox", "a hill", strength=2.5, position=-1)
    after = run(tiny_lm, seen.ids, changes=[steer])
    name = "blocks.1.residual"
    vector = 2.5 * (tiny_lm.trace("a fox")[name][-1] - tiny_lm.trace("a hill")[name][-1])
    torch.testing.assert_close(after[name][-1] - seen[name][-1], vector, rtol=1e-4, atol=1e-4)
    assert torch.equal(after[name][:-1], seen[name][:-1])


def test_patching_with_the_same_text_changes_nothing(tiny_lm, seen):
    for name in ("blocks.1.residual", "blocks.0.attention.weights", "blocks.2.mlp.activation", "final_norm", "logits"):
        after = run(tiny_lm, seen.ids, changes=[Patch(name, seen.text)])
        assert torch.equal(after["logits"], seen["logits"]), name
    found = changed(seen, run(tiny_lm, seen.ids, changes=[Patch("blocks.1.residual", seen.text, position=3)]))
    assert found.kl.max() == 0 and found.stream.max() == 0 and not found.top_changed


def test_patching_the_last_stream_at_the_last_token_gives_the_other_texts_prediction(tiny_lm, seen):
    after = run(tiny_lm, seen.ids, changes=[Patch("blocks.2.residual", "a hill", position=-1, source=-1)])
    torch.testing.assert_close(after["logits"][-1], tiny_lm.logits("a hill")[-1], rtol=1e-4, atol=1e-4)
    head = run(tiny_lm, seen.ids, changes=[Patch("blocks.1.attention.heads", "a hill", position=2, source=1, head=3)])
    wanted = tiny_lm.trace("a hill")["blocks.1.attention.heads"]
    assert torch.equal(head["blocks.1.attention.heads"][3, 2], wanted[3, 1])
    assert torch.equal(head["blocks.1.attention.heads"][:3], seen["blocks.1.attention.heads"][:3])


def test_what_changed_is_told_for_every_token_and_in_detail_for_one(tiny_lm, seen):
    after = run(tiny_lm, seen.ids, changes=[AblateHead(1, 0, position=4)])
    found = changed(seen, after, position=6, k=5)
    was, now = seen["logits"].double().log_softmax(-1), after["logits"].double().log_softmax(-1)
    np.testing.assert_allclose(found.kl, (was.exp() * (was - now)).sum(-1).numpy(), rtol=1e-3, atol=1e-6)
    assert found.kl[:4].max() == 0 and found.kl[4:].max() > 0
    assert found.stream[0].max() == 0 and found.stream[1, 4] > 0 and found.stream[1, 5] == 0
    assert [one.token.id for one in found.before] == seen["logits"][6].topk(5).indices.tolist()
    assert [one.token.id for one in found.after] == after["logits"][6].topk(5).indices.tolist()
    assert [one.rank for one in found.after] == [1, 2, 3, 4, 5]
    moves = (now[6].exp() - was[6].exp()).abs()
    assert found.moved[0].token.id == int(moves.argmax())
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["changes"] == [{"kind": "ablate_head", "layer": 1, "head": 0, "position": 4}]
    assert told["before"][0]["probability"] == pytest.approx(float(was[6].exp().max()), rel=1e-4)


@pytest.mark.parametrize(
    "change",
    [AblateHead(1, 2), AblateNeuron(0, 3, 1), Steer(1, "a", "b", 2.0), Patch("blocks.0.residual", "a", 0, 1, None)],
)
def test_a_change_survives_json(change):
    assert from_dict(json.loads(json.dumps(change.to_dict()))) == change


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "ablate_head"),
        ({"kind": "explode"}, "steer"),
        ({"kind": "steer", "layer": 1}, "toward"),
        ({"kind": "ablate_head", "layer": 1, "haed": 2}, "Did you mean 'head'"),
        ({"kind": "ablate_head", "layer": "1", "head": 2}, "layer of a change cannot be '1'"),
        ({"kind": "ablate_head", "layer": True, "head": 2}, "cannot be True"),
        ({"kind": "steer", "layer": 1, "toward": ["a"]}, "toward of a change"),
    ],
)
def test_a_change_that_is_none_is_refused(given, said):
    with pytest.raises(CutawayError, match=said):
        from_dict(given)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (AblateHead(3, 0), "no layer 3"),
        (AblateHead(0, 4), "no head 4"),
        (AblateHead(0, 0, 77), "no token 77"),
        (AblateNeuron(0, 192), "no neuron 192"),
        (Steer(9, "a"), "no layer 9"),
        (Steer(0, ""), "no text"),
        (Patch("blocks.0.residue", "a"), "Did you mean 'blocks.0.residual'"),
        (Patch("blocks.0.residual", "a"), "name a position"),
        (Patch("blocks.0.residual", "a", position=0, source=5), "no token 5"),
        (Patch("blocks.0.attention.weights", "a", position=0), "of one length"),
        (Patch("blocks.0.residual", "a", position=0, head=1), "leave the head out"),
    ],
)
def test_a_change_that_cannot_be_made_is_refused(tiny_lm, change, said):
    with pytest.raises(CutawayError, match=said):
        run(tiny_lm, "Once upon a time", changes=[change])


def test_runs_over_different_texts_are_not_compared(tiny_lm, seen):
    with pytest.raises(CutawayError, match="same text"):
        changed(seen, run(tiny_lm, "Once"))


def test_a_generation_with_a_change_writes_what_the_changed_model_writes(tiny_lm):
    found = generation(tiny_lm, "Once upon", 8, keep="logits", changes=[AblateHead(1, 3), AblateHead(0, 0)], top_k=1)
    lesser = without_head(without_head(tiny_lm, 1, 3), 0, 0)
    assert found.result.ids == lesser.generate("Once upon", 8, top_k=1).ids
    assert found.result.ids != tiny_lm.generate("Once upon", 8, top_k=1).ids
    assert list(written(tiny_lm, "Once upon", 8, [AblateHead(1, 3), AblateHead(0, 0)]).ids)[-8:] == found.result.ids


@pytest.mark.parametrize("position", [0, 1])
def test_a_change_at_one_token_is_made_at_that_token_of_a_generation_only(tiny_lm, position):
    change = AblateHead(1, 0, position)
    found = generation(tiny_lm, "Once upon", 4, keep="blocks.1.attention.heads", changes=[change], top_k=1)
    heads = found.whole("blocks.1.attention.heads")
    assert heads[0, position].abs().max() == 0 and heads[0].abs().amax(-1).count_nonzero() == heads.shape[1] - 1


def test_toward_pushes_the_stream_along_the_tokens_row_of_the_output_matrix(tiny_lm, seen):
    token = tiny_lm.tokenizer.decode([65])
    assert tiny_lm.ids(token) == [65]
    after = run(tiny_lm, seen.ids, changes=[Toward(1, token, strength=0.5, position=2)])
    moved = after["blocks.1.residual"] - seen["blocks.1.residual"]
    row = tiny_lm.model.token_embedding.weight[65].detach()
    wanted = 0.5 * seen["blocks.1.residual"][2].norm() * row / row.norm()
    torch.testing.assert_close(moved[2], wanted, rtol=1e-4, atol=1e-5)
    assert moved[:2].abs().max() == 0 and moved[3:].abs().max() == 0
    with pytest.raises(CutawayError, match="belongs to one"):
        run(tiny_lm, seen.ids, changes=[Toward(1, token * 3 + " and more")])
