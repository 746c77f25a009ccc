"""The training's GELU is the model's GELU, up and back."""

import pytest
import torch
import torch.nn.functional as F

from cutaway.parts import gelu as module
from cutaway.parts.gelu import fast_gelu


@pytest.mark.parametrize("piece", [7, 160_000])
def test_value_and_slope_are_those_of_the_tanh_form(monkeypatch, piece):
    monkeypatch.setattr(module, "IN_CACHE", piece)
    x = torch.cat([torch.linspace(-12, 12, 1_201), torch.tensor([-1e4, 0.0, 1e4])]).reshape(2, 2, -1).requires_grad_()
    weight = torch.randn_like(x)
    y = fast_gelu(x)
    (y * weight).sum().backward()
    exact = x.detach().double().requires_grad_()
    (F.gelu(exact, approximate="tanh") * weight).sum().backward()
    assert torch.allclose(y.double(), F.gelu(exact.detach(), approximate="tanh"), rtol=1e-5, atol=1e-6)
    assert torch.allclose(x.grad.double(), exact.grad, rtol=1e-5, atol=5e-6)


def test_without_a_way_back_and_in_bfloat16_it_is_torchs_own():
    x = torch.randn(5, 3)
    assert torch.equal(fast_gelu(x), F.gelu(x, approximate="tanh"))
    half = x.bfloat16().requires_grad_()
    assert torch.equal(fast_gelu(half), F.gelu(half, approximate="tanh"))


def test_a_layout_of_another_kind_is_taken_as_it_is():
    x = torch.randn(6, 5).T.requires_grad_()
    assert torch.allclose(fast_gelu(x), F.gelu(x, approximate="tanh"), atol=1e-6)
    fast_gelu(x).sum().backward()
