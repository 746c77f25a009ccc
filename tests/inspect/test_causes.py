"""Causes with a sign, of one token rather than another, of a span: each method beside a literal computation."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.inspect.path import attribution
from cutaway.inspect.runs import run
from cutaway.inspect.saliency import METHODS, saliency

AT = 6


def numbers(lm, embeddings, seen, position):
    """The logits after a position, of a text given as embeddings."""
    return lm.trace(seen.ids, "logits", replace={"token_embedding": embeddings})["logits"][position - 1]


def test_occlusion_is_what_the_logit_loses_without_a_token(tiny_lm, seen):
    found = saliency(seen, [AT, len(seen)], "occlusion")
    embeddings = seen["token_embedding"]
    for row, target in enumerate(found.targets):
        whole = numbers(tiny_lm, embeddings, seen, target.position)[target.token.id]
        for token in (0, 3, AT - 1, AT, len(seen) - 1):
            without = embeddings.clone()
            without[token] = 0
            lost = whole - numbers(tiny_lm, without, seen, target.position)[target.token.id]
            expected = float(lost) if token < target.position else 0.0
            assert found.signed[row, token] == pytest.approx(expected, abs=1e-4)
        bare = numbers(tiny_lm, torch.zeros_like(embeddings), seen, target.position)[target.token.id]
        assert found.gap[row] == pytest.approx(float(found.total[row]) - float(whole - bare), abs=1e-3)
        assert found.number[row] == pytest.approx(float(whole), abs=1e-4)


def test_occlusion_equals_captum(tiny_lm, seen):
    captum = pytest.importorskip("captum.attr", reason="captum is not installed")
    target = saliency(seen, [AT], "occlusion", against=9).targets[0]

    def forward(embeddings):
        logits = numbers(tiny_lm, embeddings[0], seen, AT)
        return (logits[target.token.id] - logits[9])[None]

    mask = torch.arange(len(seen))[None, :, None]
    theirs = captum.FeatureAblation(forward).attribute(seen["token_embedding"][None], feature_mask=mask)[0, :, 0]
    ours = saliency(seen, [AT], "occlusion", against=9).signed[0]
    np.testing.assert_allclose(ours, theirs.numpy(), atol=1e-4)


def test_rollout_is_attention_multiplied_through_the_layers(tiny_lm, seen):
    reached = np.eye(len(seen))
    for layer in range(3):
        mixed = (tiny_lm.trace(seen.ids)[f"blocks.{layer}.attention.weights"].mean(0).numpy() + np.eye(len(seen))) / 2
        reached = mixed @ reached
    found = saliency(seen, [AT, 9], "rollout")
    np.testing.assert_allclose(found.share, reached[[AT - 1, 8]], atol=1e-5)
    np.testing.assert_allclose(found.total, 1, atol=1e-5)
    assert found.gap is None and (found.signed >= 0).all()


def test_values_are_the_heads_of_the_direct_attribution_token_by_token(seen):
    found = saliency(seen, [AT, len(seen)], "values", against=9)
    for row, target in enumerate(found.targets):
        heads = attribution(seen, target.position - 1, target.token.id, 9).heads
        assert found.total[row] == pytest.approx(float(heads.sum()), abs=1e-4)
        assert abs(found.gap[row]) < 1e-4
        scope, wo = "blocks.1.attention", seen.block(1).attention.projection.weight
        one = seen[f"{scope}.weights"][2, target.position - 1, 3] * seen[f"{scope}.values"][2, 3]
        assert one.shape == (wo.shape[0] // 4,)  # one of the terms that are added up, per layer and head
    assert (found.signed[0, AT:] == 0).all()


@pytest.mark.parametrize("method", [one for one in METHODS if one != "rollout"])
def test_why_this_rather_than_that_is_the_difference_of_both(seen, method):
    """Every one of these is linear in the logits, so that a contrast is the one less the other."""
    ids = [int(seen.ids[AT]), 9]
    ways = [saliency(run(seen.lm, [*seen.ids[:AT], one]), [AT], method).signed[0, :AT] for one in ids]
    found = saliency(seen, [AT], method, against=9)
    np.testing.assert_allclose(found.signed[0, :AT], ways[0] - ways[1], atol=2e-3)
    assert found.targets[0].against.id == 9
    lead = seen.logits([AT - 1])[0]
    assert found.number[0] == pytest.approx(float(lead[ids[0]] - lead[9]), abs=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_a_span_is_the_sum_of_its_tokens(seen, method):
    each, whole = saliency(seen, [4, 5, 6], method), saliency(seen, [4, 5, 6], method, span=True)
    assert whole.span and whole.signed.shape == (1, len(seen)) and len(whole.targets) == 3
    np.testing.assert_allclose(whole.signed[0], each.signed.sum(0), atol=1e-4)
    assert whole.total[0] == pytest.approx(float(each.total.sum()), abs=1e-3)
    assert whole.number[0] == pytest.approx(float(each.number.sum()), abs=1e-3)
    assert whole.share.sum() == pytest.approx(1, abs=1e-5)


def test_integrated_gradients_add_up_to_a_lead_as_well(seen):
    found = saliency(seen, [AT], "integrated", steps=64, against=9)
    bare = numbers(seen.lm, torch.zeros_like(seen["token_embedding"]), seen, AT)
    change = float(found.number[0]) - float(bare[seen.ids[AT]] - bare[9])
    assert found.total[0] == pytest.approx(change, abs=0.02 * max(1, abs(change)))
    assert found.gap[0] == pytest.approx(float(found.total[0]) - change, abs=1e-3)


def test_a_contrast_that_says_nothing_is_refused(seen):
    with pytest.raises(CutawayError, match="itself: there is no difference"):
        saliency(seen, [AT], against=int(seen.ids[AT]))
    with pytest.raises(CutawayError, match="knows of no target"):
        saliency(seen, [AT], "rollout", against=9)
    with pytest.raises(CutawayError, match="no token 999"):
        saliency(seen, [AT], against=999)
    with pytest.raises(CutawayError, match="No token to explain"):
        saliency(seen, [])
