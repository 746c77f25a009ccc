"""The promise of the house: on the same weights, transformers' GPT-2 and ours give the same numbers."""

import pytest
import torch

from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import SIZES, Config


def cheap_weights(model: GPT) -> GPT:
    """Random weights for very large models, quickly: a million random numbers, repeated to fill each shape."""
    bag = torch.randn(1_000_003, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        for place, (name, parameter) in enumerate(model.named_parameters()):
            flat = parameter.view(-1)
            start = 7919 * place % 500_000
            for first in range(0, flat.numel(), 500_000):
                flat[first : first + 500_000] = bag[start : start + min(500_000, flat.numel() - first)]
            parameter.mul_(0.02).add_(1.0 if "norm" in name and name.endswith("weight") else 0.0)
    return model.eval()


def same_logits_and_gradients(config: Config, twin) -> None:
    with torch.device("meta"):
        ours = GPT(config)
    ours = cheap_weights(ours.to_empty(device="cpu"))
    theirs = twin(ours)
    ids = torch.randint(0, config.vocabulary, (1, 7), generator=torch.Generator().manual_seed(2))

    mine = ours(ids)
    reference = theirs(ids).logits
    assert mine.std() > 0.05  # a comparison of zeros would say nothing
    assert (mine - reference).abs().max() < 1e-4

    target = torch.roll(ids, -1)
    torch.nn.functional.cross_entropy(mine[0], target[0]).backward()
    differences = {}

    def compare(name, parameter):
        """Called as soon as a gradient of theirs is ready; both are then let go, so that XL fits in 16 GB."""

        def ready(there):
            gradient = (
                there.grad.T
                if there.shape != parameter.shape or (".c_" in theirs.name_there(name) and there.ndim == 2)
                else there.grad
            )
            assert parameter.grad.abs().max() > 0, name
            differences[name] = (parameter.grad - gradient).abs().max().item()
            parameter.grad = there.grad = None

        return ready

    parameters = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        there = parameters[theirs.name_there(name)]
        there.register_post_accumulate_grad_hook(compare(name, parameter))
    torch.nn.functional.cross_entropy(reference[0], target[0]).backward()
    assert differences.keys() == dict(ours.named_parameters()).keys()
    assert max(differences.values()) < 1e-4, max(differences, key=differences.get)


@pytest.mark.parametrize("size", ["gpt2", "gpt2-medium", "gpt2-large"])
def test_logits_and_gradients_equal_transformers_on_the_published_shapes(size, twin):
    same_logits_and_gradients(SIZES[size], twin)


@pytest.mark.slow
def test_logits_and_gradients_equal_transformers_on_xl(twin):
    same_logits_and_gradients(SIZES["gpt2-xl"], twin)


@pytest.mark.parametrize(
    "config",
    [
        Config(vocabulary=97, context=33, width=40, layers=1, heads=1),
        Config(vocabulary=500, context=64, width=60, layers=5, heads=10, mlp_width=77),
        Config(vocabulary=300, context=16, width=32, layers=2, heads=4, norm_epsilon=1e-3),
    ],
)
def test_logits_and_gradients_equal_transformers_on_odd_shapes(config, twin):
    same_logits_and_gradients(config, twin)


def test_a_full_context_of_gpt2_small_equals_transformers(twin):
    with torch.device("meta"):
        ours = GPT(SIZES["gpt2"])
    ours = cheap_weights(ours.to_empty(device="cpu"))
    ids = torch.randint(0, 50_257, (1, 1_024), generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        mine = ours.read(ids)
        theirs = twin(ours).transformer(ids).last_hidden_state
    assert (mine - theirs).abs().max() < 1e-4
