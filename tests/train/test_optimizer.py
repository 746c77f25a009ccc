"""AdamW, its schedules, and clipping."""

import math

import pytest
import torch

from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.train.optimizer import clip, learning_rate, make_optimizer
from cutaway.train.recipe import Train


def rates(**how):
    recipe = Train(steps=100, learning_rate=1.0, **how)
    return [learning_rate(step, recipe) for step in range(1, 101)]


def test_the_warm_up_is_a_straight_line_to_the_highest_rate():
    assert rates(warm_up=10)[:11] == pytest.approx([0.1 * n for n in range(1, 11)] + [rates(warm_up=10)[10]])
    assert rates(warm_up=0.1)[:10] == rates(warm_up=10)[:10]  # a share of the steps
    assert max(rates(warm_up=10)) == rates(warm_up=10)[9] == 1.0


def test_cosine_falls_to_the_final_share_at_the_last_step():
    found = rates(warm_up=10, final=0.1)
    assert found[-1] == pytest.approx(0.1)
    assert found[54] == pytest.approx(0.1 + 0.9 * 0.5)  # halfway between the warm-up and the end
    assert found[9:] == sorted(found[9:], reverse=True)


def test_linear_constant_and_wsd():
    assert rates(schedule="linear", warm_up=0, final=0.0)[49] == pytest.approx(0.5)
    assert set(rates(schedule="constant", warm_up=5)[4:]) == {1.0}
    found = rates(schedule="wsd", warm_up=10, decay=0.2, final=0.0)
    assert set(found[9:80]) == {1.0}
    assert found[89] == pytest.approx(0.5) and found[99] == 0


@pytest.mark.parametrize("schedule", ["cosine", "linear", "constant", "wsd"])
@pytest.mark.parametrize(("warm_up", "decay"), [(0, 0), (100, 100), (1e9, 1e9), (0.99, 0.99)])
def test_no_schedule_leaves_its_bounds_however_it_is_set(schedule, warm_up, decay):
    assert all(0 <= rate <= 1 for rate in rates(schedule=schedule, warm_up=warm_up, decay=decay))


def test_only_matrices_are_pulled_towards_zero_and_only_what_learns_is_changed():
    model = GPT(Config(vocabulary=16, context=8, width=8, layers=1, heads=2))
    model.position_embedding.requires_grad_(False)
    before = {name: value.detach().clone() + 1 for name, value in model.named_parameters()}
    model.load_state_dict(before)
    optimizer = make_optimizer(model, Train(learning_rate=0.1, weight_decay=0.5))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for name, parameter in model.named_parameters():
        learns = parameter.requires_grad and parameter.ndim == 2
        assert torch.allclose(parameter, before[name] * (1 - 0.1 * 0.5 * learns)), name


def test_clipping_shortens_a_long_gradient_and_leaves_a_short_one():
    given = [
        torch.nn.Parameter(torch.zeros(3)),
        torch.nn.Parameter(torch.zeros(2, 2)),
        torch.nn.Parameter(torch.zeros(1)),
    ]
    for limit, after in ((1.0, 1.0), (10.0, 5.0), (0.0, 5.0)):
        given[0].grad, given[1].grad = torch.tensor([3.0, 0, 0]), torch.tensor([[0, 4.0], [0, 0]])
        assert clip(given, limit) == pytest.approx(5.0)
        assert math.hypot(given[0].grad.norm(), given[1].grad.norm()) == pytest.approx(after)
    given[0].grad[1] = math.inf
    assert clip(given, 1.0) == math.inf
