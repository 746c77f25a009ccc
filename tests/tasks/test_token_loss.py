"""The loss without logits is the loss with them: in value, in every gradient, in every precision."""

import pytest
import torch
import torch.nn.functional as F

from cutaway.tasks import token_loss as loss
from cutaway.tasks.token_loss import next_token_loss


def parts(positions=201, vocabulary=1_001, width=32, dtype=torch.float32, spread=1.0, seed=0):
    dice = torch.Generator().manual_seed(seed)
    hidden = torch.randn(3, positions // 3, width, generator=dice, dtype=dtype) * spread
    matrix = torch.randn(vocabulary, width, generator=dice, dtype=dtype)
    targets = torch.randint(0, vocabulary, (3, positions // 3), generator=dice)
    targets[0, :10] = -100
    targets[2, -1] = -100
    return hidden.requires_grad_(), matrix.requires_grad_(), targets


def plainly(hidden, matrix, targets, scale):
    logits = F.linear(hidden, matrix)
    return F.cross_entropy(logits.flatten(0, 1).float() if logits.dtype == torch.bfloat16 else logits.flatten(0, 1),
                           targets.flatten(), reduction="sum") * scale  # fmt: skip


def both(how, hidden, matrix, targets, scale, factor):
    hidden, matrix = (one.detach().clone().requires_grad_() for one in (hidden, matrix))
    value = how(hidden, matrix, targets, scale)
    (value * factor).backward()
    return value.detach(), hidden.grad, matrix.grad


@pytest.mark.parametrize("piece", [4 * 1_001 * 7, 4 * 1_001 * 64, 1 << 30], ids=["small", "middle", "whole"])
@pytest.mark.parametrize("factor", [1.0, -2.5])
def test_value_and_gradients_equal_plain_cross_entropy(monkeypatch, piece, factor):
    monkeypatch.setattr(loss, "PIECE_BYTES", piece)
    given = parts(dtype=torch.float64)
    for ours, theirs in zip(
        both(next_token_loss, *given, 1 / 7, factor), both(plainly, *given, 1 / 7, factor), strict=True
    ):
        assert torch.allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def test_in_float32_it_is_as_close_as_float32_is():
    given = parts()
    for ours, theirs in zip(both(next_token_loss, *given, 1 / 7, 1.0), both(plainly, *given, 1 / 7, 1.0), strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_under_autocast_it_is_as_close_to_the_truth_as_plain_autocast_is():
    given = parts(spread=0.3)

    def cast(how):
        with torch.autocast("cpu", torch.bfloat16):
            return both(how, *given, 1 / 100, 1.0)

    exact = both(plainly, *given, 1 / 100, 1.0)
    for ours, theirs, truth in zip(cast(next_token_loss), cast(plainly), exact, strict=True):
        assert ours.dtype == torch.float32
        assert (ours - truth).norm() <= 1.3 * (theirs.float() - truth).norm() + 1e-3 * truth.norm()


def test_a_target_that_is_all_but_impossible_still_has_a_finite_loss():
    hidden, matrix, targets = parts(spread=40.0)
    value = next_token_loss(hidden, matrix, targets)
    assert value.isfinite()
    assert torch.allclose(value, plainly(hidden, matrix, targets, 1), rtol=1e-5)
    value.backward()
    assert hidden.grad.isfinite().all()


def test_the_logits_are_never_held_whole(monkeypatch):
    monkeypatch.setattr(loss, "PIECE_BYTES", 4 * 1_001 * 16)
    monkeypatch.setattr(loss, "LEAST_ROWS", 16)
    largest = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, kinds, args=(), kwargs=None):
            nonlocal largest
            out = function(*args, **(kwargs or {}))
            for one in out if isinstance(out, tuple | list) else [out]:
                if isinstance(one, torch.Tensor):
                    largest = max(largest, one.numel())
            return out

    hidden, matrix, targets = parts(positions=999)
    with Watch():
        next_token_loss(hidden, matrix, targets).backward()
    assert largest <= max(matrix.numel(), 16 * 1_024) < 999 * 1_001 / 10


def test_measuring_makes_no_gradient_and_a_frozen_matrix_gets_none():
    hidden, matrix, targets = parts()
    with torch.no_grad():
        value = next_token_loss(hidden, matrix, targets)
    assert not value.requires_grad
    frozen = matrix.detach()
    next_token_loss(hidden, frozen, targets).backward()
    assert hidden.grad is not None and frozen.grad is None


def test_where_nothing_counts_the_loss_and_its_gradients_are_zero():
    hidden, matrix, targets = parts()
    value = next_token_loss(hidden, matrix, torch.full_like(targets, -100))
    value.backward()
    assert value == 0
    assert matrix.grad.abs().max() == 0 and hidden.grad.abs().max() == 0


def test_the_same_numbers_every_time():
    given = parts()
    once, again = (both(next_token_loss, *given, 1.0, 1.0) for _ in range(2))
    assert all(torch.equal(one, other) for one, other in zip(once, again, strict=True))
