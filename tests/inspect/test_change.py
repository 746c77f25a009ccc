"""Changes do what they say, only what they say, and what they changed is told."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.inspect.change import AblateHead, AblateNeuron, Change, Patch, Steer, Toward, changed, from_dict
from cutaway.inspect.generation import generation
from cutaway.inspect.runs import run, written
from cutaway.language_model import LanguageModel
from cutaway.models.gpt2.model import GPT
from cutaway.parts.trace import where


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
        (Patch("blocks.*.residual", "a", position=0), "names several"),
        (Patch("blocks.0.residual", "Once upon a time", source=2), "needs a position"),
        (Patch("blocks.0.residual", "a", position=-9), "no token -9"),
        (AblateHead(-4, 0), "no layer -4: there are 3, numbered from 0 to 2"),
        (AblateHead(0, -5), "no head -5"),
        (AblateHead(0, 0, -99), "no token -99"),
        (AblateNeuron(0, -193), "no neuron -193"),
        (AblateHead(1.0, 0), "A layer is named by a whole number"),
        (Toward(-4, " a"), "no layer -4"),
        (Steer(-4, "a"), "no layer -4"),
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
    with pytest.raises(CutawayError, match="is not one token"):
        run(tiny_lm, seen.ids, changes=[Toward(1, token * 3 + " and more")])


@pytest.mark.parametrize(
    ("negative", "positive"),
    [
        (AblateHead(-1, 1), AblateHead(2, 1)),
        (AblateHead(1, -1, -2), AblateHead(1, 3, 32)),
        (AblateNeuron(-1, -1), AblateNeuron(2, 191)),
        (AblateNeuron(-3, 7, -1), AblateNeuron(0, 7, 33)),
        (Toward(-2, "b", 2.0), Toward(1, "b", 2.0)),
        (Steer(-2, "a fox", position=-1), Steer(1, "a fox", position=33)),
        (Patch("blocks.1.residual", "a hill", -1, -1), Patch("blocks.1.residual", "a hill", 33, 3)),
        (Patch("blocks.1.residual", "a hill", -1), Patch("blocks.1.residual", "a hill", 33, 3)),
        (
            Patch("blocks.1.attention.heads", "a hill", 3, -2, -1),
            Patch("blocks.1.attention.heads", "a hill", 3, 2, 3),
        ),
    ],
)
def test_negative_numbers_count_from_the_end(tiny_lm, seen, negative, positive):
    assert len(seen) == 34 and len(tiny_lm.ids("a hill")) == 4
    after = run(tiny_lm, seen.ids, changes=[negative])
    assert torch.equal(after["logits"], run(tiny_lm, seen.ids, changes=[positive])["logits"])
    assert not torch.equal(after["logits"], seen["logits"])
    assert after.changes == (negative,)


@dataclass(frozen=True)
class Scaled(Change):
    """What a layer's attention adds, made larger or smaller."""

    kind: ClassVar[str] = "scaled"
    layer: int
    factor: float
    position: int | None = None

    def intermediate(self):
        return f"blocks.{self.layer}.attention.output"

    def step(self, lm, position, tokens):
        def scale(value):
            scaled = value.clone()
            scaled[where(position=position).of(value)] *= self.factor
            return scaled

        return scale


def test_a_change_of_ones_own_is_made_at_every_token_or_at_one(tiny_lm, seen):
    name = "blocks.2.attention.output"
    after = run(tiny_lm, seen.ids, changes=[Scaled(-1, 0.5)])
    torch.testing.assert_close(after[name], seen[name] / 2)
    one = run(tiny_lm, seen.ids, changes=[Scaled(-1, 0.5, position=-2)])
    torch.testing.assert_close(one[name][-2], seen[name][-2] / 2)
    assert torch.equal(one[name][:-2], seen[name][:-2]) and torch.equal(one[name][-1], seen[name][-1])


def test_a_change_of_what_does_not_exist_is_refused(tiny_lm, seen):
    class Lost(Scaled):
        def intermediate(self):
            return f"blocks.{self.layer}.attention.result"

    with pytest.raises(CutawayError, match=r"Nothing in this model is called 'blocks\.1\.attention\.result'"):
        run(tiny_lm, seen.ids, changes=[Lost(1, 0.0)])


@pytest.mark.parametrize(
    "change",
    [
        AblateHead(1, 0, position=-1),
        AblateHead(1, 0),
        AblateNeuron(-1, 5, position=-1),
        Steer(1, "a fox", strength=3.0, position=-1),
        Toward(1, "b", strength=3.0, position=0),
        Patch("blocks.1.residual", "the little"),
        Patch("blocks.1.attention.weights", "the little"),
        Patch("blocks.0.attention.heads", "the little", head=-1),
        Patch("blocks.1.residual", "a hill", position=-1, source=2),
    ],
    ids=lambda change: f"{change.kind} {change.at()}",
)
def test_what_is_written_under_a_change_is_what_is_measured(tiny_lm, change):
    prompt = "Once upon"
    assert len(tiny_lm.ids(prompt)) == len(tiny_lm.ids("the little"))
    steps = generation(tiny_lm, prompt, 6, changes=[change], top_k=1)
    whole = written(tiny_lm, prompt, 6, changes=[change])
    assert list(whole.ids[whole.prompt :]) == steps.result.ids
    for name in ("blocks.2.residual", "blocks.1.attention.heads"):
        torch.testing.assert_close(whole[name][..., :-1, :], steps.whole(name), rtol=1e-4, atol=1e-5)
    logits = steps.whole("logits")[-len(steps.result.ids) :]
    torch.testing.assert_close(whole["logits"][whole.prompt - 1 : -1], logits, rtol=1e-4, atol=1e-4)


def test_a_sweep_of_patches_reads_its_source_once(tiny_lm, seen, monkeypatch):
    other = seen.text.replace("fox", "hog")
    assert len(tiny_lm.ids(other)) == len(seen)
    read, texts = GPT.read, list[tuple[int, ...]]()
    monkeypatch.setattr(GPT, "read", lambda self, ids, *more, **named: texts.append(tuple(ids[0].tolist())) or read(
        self, ids, *more, **named
    ))  # fmt: skip
    for layer in range(3):
        for position in range(len(seen)):
            run(tiny_lm, seen.ids, changes=[Patch(f"blocks.{layer}.residual", other, position)])
    assert texts.count(tuple(tiny_lm.ids(other))) == 1 and len(texts) == 3 * len(seen) + 1


def test_a_source_is_read_again_when_the_weights_are_others(tiny_lm, seen):
    lm = LanguageModel(copied(tiny_lm.model), tiny_lm.tokenizer)
    patch = Patch("blocks.2.residual", "a hill", position=-1)
    before = run(lm, seen.ids, changes=[patch])["logits"][-1]
    with torch.no_grad():
        lm.model.blocks[0].mlp.projection.weight.mul_(0.5)
    after = run(lm, seen.ids, changes=[patch])["logits"][-1]
    assert not torch.allclose(before, after)
    torch.testing.assert_close(after, lm.logits("a hill")[-1], rtol=1e-4, atol=1e-4)
