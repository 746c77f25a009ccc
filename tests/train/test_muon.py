"""Muon: directions of equal length for the blocks' matrices, AdamW for the rest."""

import pytest
import torch

from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.train.muon import Muon, orthogonal
from cutaway.train.optimizer import make_optimizer
from cutaway.train.recipe import Train


@pytest.mark.parametrize("shape", [(8, 24), (24, 8), (16, 16)])
def test_all_directions_get_about_the_same_length_and_none_is_turned(shape):
    torch.manual_seed(0)
    gradient = torch.randn(shape) * 1e-3
    u, _, v = torch.linalg.svd(gradient, full_matrices=False)
    found = u.T @ orthogonal(gradient) @ v.T  # the same directions: a diagonal
    lengths = found.diagonal()
    assert torch.allclose(found, lengths.diag(), atol=1e-4)
    assert lengths.min() > 0.6 and lengths.max() < 1.3
    assert torch.allclose(orthogonal(gradient.T), orthogonal(gradient).T, atol=1e-4)


def model() -> GPT:
    torch.manual_seed(0)
    return GPT(Config(vocabulary=16, context=8, width=8, layers=1, heads=2))


def test_embeddings_biases_and_norms_are_stepped_as_by_adamw_and_matrices_are_not():
    ours, theirs = model(), model()
    for kind, learner in (("muon", ours), ("adamw", theirs)):
        optimizer = make_optimizer(learner, Train(learning_rate=0.01, optimizer=kind))
        for _ in range(3):
            optimizer.zero_grad()
            learner(torch.tensor([[1, 2, 3, 4]])).logsumexp(-1).sum().backward()
            for parameter in learner.parameters():
                parameter.grad = torch.ones_like(parameter)  # the same whatever has been learned before
            optimizer.step()
    others = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        as_matrix = "blocks" in name and parameter.ndim == 2
        assert torch.equal(parameter, others[name]) != as_matrix, name


def test_a_step_is_as_large_as_the_learning_rate_says_and_weights_decay():
    one = torch.nn.Parameter(torch.full((4, 16), 2.0))
    optimizer = Muon([{"params": [one], "weight_decay": 0.5, "whole": True}], lr=0.1)
    one.grad = torch.zeros_like(one)
    optimizer.step()
    assert torch.allclose(one, torch.full((4, 16), 2.0 * (1 - 0.1 * 0.5)))
    torch.manual_seed(0)
    before = one.detach().clone()
    one.grad = torch.randn(4, 16)
    optimizer.step()
    moved = (one - before * 0.95).square().mean().sqrt()
    assert 0.5 * 0.1 * 0.2 < moved < 1.5 * 0.1 * 0.2
