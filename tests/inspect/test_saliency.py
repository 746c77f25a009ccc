"""Saliency: shares of one, nothing from the future, and the numbers captum gives."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.inspect.change import AblateHead, Toward
from cutaway.inspect.runs import run, written
from cutaway.inspect.saliency import saliency


@pytest.mark.parametrize("method", ["gradient", "integrated"])
def test_shares_sum_to_one_and_none_comes_from_the_target_on(seen, method):
    found = saliency(seen, targets=[1, 5, len(seen)], method=method, steps=4)
    np.testing.assert_allclose(found.share.sum(axis=1), 1, rtol=1e-5)
    assert (found.share >= 0).all()
    for row, target in zip(found.share, found.targets, strict=True):
        assert np.abs(row[target.position :]).max(initial=0) == 0
        assert (row[: target.position] > 0).all()
    assert found.share[0, 0] == 1


def test_the_gradient_is_the_logits_own(tiny_lm, seen):
    """Moving along the gradient moves the logit by its length: a difference quotient knows nothing of autograd."""
    from cutaway.inspect.saliency import gradient_x_input, logit_of

    found = saliency(seen, targets=[6])
    parts = gradient_x_input(seen, found.targets)[0].double()
    embeddings = seen["token_embedding"].clone()
    logit = logit_of(seen, found.targets[0])
    step = 1e-2
    with torch.no_grad():
        for token in (0, 3, 5):
            more, less = embeddings.clone(), embeddings.clone()
            more[token] *= 1 + step
            less[token] *= 1 - step
            quotient = float(logit(more[None]) - logit(less[None])) / (2 * step)
            assert float(parts[token].sum()) == pytest.approx(quotient, rel=0.02, abs=2e-3)


def test_both_methods_equal_captum(tiny_lm, seen):
    captum = pytest.importorskip("captum.attr", reason="captum is not installed")
    model, ids = tiny_lm.model, torch.tensor([seen.ids])
    embeddings = model.token_embedding(ids).detach().requires_grad_()

    def forward(inputs, target, position):
        residual = inputs + model.position_embedding.weight[: ids.shape[1]]
        for block in model.blocks:
            residual = block(residual)
        return model.score(model.final_norm(residual))[:, position, target]

    for target in saliency(seen, targets=[4, 11, len(seen)]).targets:
        extra = (target.token.id, target.position - 1)
        theirs = captum.InputXGradient(forward).attribute(embeddings, additional_forward_args=extra)
        ours = saliency(seen, [target.position])
        norms = theirs[0].norm(dim=-1).detach()
        np.testing.assert_allclose(ours.share[0], (norms / norms.sum()).numpy(), rtol=1e-3, atol=1e-6)
        np.testing.assert_allclose(ours.norm[0], float(norms.sum()), rtol=1e-3)
        np.testing.assert_allclose(ours.signed[0], theirs[0].sum(-1).detach().numpy(), rtol=1e-3, atol=1e-4)

        theirs, delta = captum.IntegratedGradients(forward).attribute(
            embeddings, additional_forward_args=extra, n_steps=16, return_convergence_delta=True
        )
        ours = saliency(seen, [target.position], method="integrated", steps=16)
        norms = theirs[0].norm(dim=-1).detach()
        np.testing.assert_allclose(ours.share[0], (norms / norms.sum()).numpy(), rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(ours.norm[0], float(norms.sum()), rtol=1e-3)
        np.testing.assert_allclose(ours.signed[0], theirs[0].sum(-1).detach().numpy(), rtol=1e-3, atol=1e-3)
        assert float(ours.gap[0]) == pytest.approx(float(delta), abs=1e-3)


def test_causes_have_a_sign_and_the_strongest_may_be_against(tiny_lm, seen):
    """What lowers the logit when its embedding grows is against: by a difference quotient, which knows no autograd."""
    from cutaway.inspect.saliency import logit_of

    found = saliency(seen, targets=range(1, len(seen) + 1))
    strongest = found.share.argmax(axis=1)
    signs = found.signed[np.arange(len(strongest)), strongest]
    assert (signs < 0).any() and (signs > 0).any()
    embeddings, step = seen["token_embedding"], 1e-2
    for row in (int(signs.argmin()), int(signs.argmax())):
        logit, at = logit_of(seen, found.targets[row]), strongest[row]
        more, less = embeddings.clone(), embeddings.clone()
        more[at] *= 1 + step
        less[at] *= 1 - step
        with torch.no_grad():
            assert np.sign(float(logit(more[None]) - logit(less[None]))) == np.sign(signs[row])
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    np.testing.assert_allclose(told["signed"], found.signed, rtol=1e-4, atol=1e-5)


def test_a_negative_target_counts_from_the_last_token(seen):
    assert [one.position for one in saliency(seen, [-1, -2]).targets] == [len(seen) - 1, len(seen) - 2]


def test_more_points_bring_the_integral_to_the_logits_change(seen):
    few, many = (saliency(seen, [9], "integrated", steps).gap for steps in (2, 64))
    assert abs(float(many[0])) < 1e-2 and abs(float(many[0])) < abs(float(few[0]))


def test_the_targets_are_the_continuation_or_the_next_token(tiny_lm, seen):
    assert [target.position for target in saliency(seen).targets] == [len(seen)]
    assert saliency(seen).targets[0].token.id == tiny_lm.predict(seen.text, 1)[0].id
    given = run(tiny_lm, "Once upon a", " time there")
    found = saliency(given)
    assert [target.token.id for target in found.targets] == tiny_lm.ids(" time there")
    wrote = written(tiny_lm, "Once upon", 4)
    assert [target.token.id for target in saliency(wrote).targets] == list(wrote.ids[wrote.prompt :])
    for target in found.targets:
        chance = float(tiny_lm.logits(given.ids)[target.position - 1].softmax(-1)[target.token.id])
        assert target.probability == pytest.approx(chance, rel=1e-3)


def test_a_changed_run_has_its_own_causes(tiny_lm, seen):
    after = run(tiny_lm, seen.ids, changes=[AblateHead(0, 0), AblateHead(1, 1)])
    assert not np.allclose(saliency(seen, [5]).share, saliency(after, [5]).share)
    saliency(after, [5], "integrated", 3)


def test_it_leaves_the_weights_without_gradients_and_works_inside_inference_mode(tiny_lm, seen):
    with torch.inference_mode():
        inside = saliency(run(tiny_lm, seen.ids), [3])
    np.testing.assert_allclose(inside.share, saliency(seen, [3]).share, rtol=1e-4)
    assert all(parameter.grad is None for parameter in tiny_lm.model.parameters())


def test_the_json_is_json(seen):
    told = json.loads(json.dumps(saliency(seen, [2, 3]).to_dict(), allow_nan=False))
    assert told["gap"] is None and len(told["share"]) == 2 and told["targets"][0]["position"] == 2


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"targets": [0]}, "nothing before it"), ({"targets": [99]}, "token 99"),
        ({"targets": [-99]}, "token -"), ({"method": "magic"}, "gradient"),
        ({"steps": 0}, "1 or more"),
    ],
)  # fmt: skip
def test_what_cannot_be_explained_is_refused(seen, how, said):
    with pytest.raises(CutawayError, match=said):
        saliency(seen, **how)


@pytest.mark.parametrize("kept", ["all", "the stream"])
def test_block_by_block_gives_the_gradients_of_the_whole_graph(tiny_lm, monkeypatch, kept):
    """A change that changes nothing takes the way through one whole graph; also for a token inside the text."""
    if kept == "the stream":
        monkeypatch.setattr("cutaway.inspect.runs.KEEP_WHOLE", 0)
    text = "Once upon a time there was a fox"
    plain, whole = run(tiny_lm, text), run(tiny_lm, text, changes=[Toward(0, "id:5", strength=0.0)])
    for targets in ([1], [3], [len(plain)], [len(plain), 2, 5, 2]):
        ours, theirs = saliency(plain, targets), saliency(whole, targets)
        assert np.allclose(ours.share, theirs.share, atol=1e-6)
        assert np.allclose(ours.signed, theirs.signed, atol=1e-5)


def test_it_is_one_way_back_and_no_second_forward_pass(tiny_lm):
    """The products that the chain rule has no use for are not made; of the last block, only the target's row is."""
    seen, rows = run(tiny_lm, "Once upon a time there was a fox"), dict[str, int]()
    hooks = [
        module.register_forward_pre_hook(lambda _, given, name=name: rows.update({name: len(given[0])}))
        for name, module in tiny_lm.model.named_modules()
        if isinstance(module, torch.nn.Linear)
    ]
    try:
        saliency(seen, [5])
    finally:
        for hook in hooks:
            hook.remove()
    last = tiny_lm.config.layers - 1
    assert rows == {f"blocks.{layer}.mlp.widen": 1 if layer == last else 5 for layer in range(last + 1)}
