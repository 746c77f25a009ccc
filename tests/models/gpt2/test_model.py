"""One forward pass, however it is run: watched or not, at once or in pieces, alone or in a padded batch."""

import math

import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.parts.cache import Cache
from cutaway.parts.trace import Trace


def some_ids(rows: int, length: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, 320, (rows, length), generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def test_explicit_attention_equals_fused_attention(tiny):
    ids = some_ids(2, 20)
    assert torch.allclose(tiny(ids), tiny(ids, trace=Trace()), atol=1e-5)


@pytest.mark.parametrize("block", [7, 256])
def test_learning_in_bfloat16_by_blocks_of_queries_is_near_the_fused_step(tiny, block, monkeypatch):
    """What is attended to and what is learned, in a text of several blocks; float32 keeps its fused step to the bit."""
    monkeypatch.setattr("cutaway.models.gpt2.model.BLOCK", block)
    attention, x = tiny.blocks[0].attention, torch.randn(2, 20, tiny.config.width, generator=torch.manual_seed(3))

    def learned(precision: torch.dtype) -> list[torch.Tensor]:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == torch.bfloat16):
            whole = attention(x, None, None)
        return [whole.float(), *torch.autograd.grad(whole.float().square().sum(), list(attention.parameters()))]

    calls = []
    by_blocks = attention.attend_by_blocks
    monkeypatch.setattr(attention, "attend_by_blocks", lambda *given: calls.append(given) or by_blocks(*given))
    wanted = learned(torch.float32)
    assert not calls
    found = learned(torch.bfloat16)
    assert len(calls) == 1
    for one, other in zip(found, wanted, strict=True):
        assert float((one - other).detach().norm()) < 0.02 * float(other.detach().norm()) + 1e-4


@torch.no_grad()
@pytest.mark.parametrize("cuts", [[1] * 20, [7, 1, 12], [19, 1], [1, 19]])
@pytest.mark.parametrize("watched", [False, True])
def test_reading_in_pieces_with_a_cache_equals_reading_at_once(tiny, cuts, watched):
    ids, cache, at, pieces = some_ids(2, 20), Cache(tiny.config, batch=2), 0, []
    for cut in cuts:
        pieces.append(tiny(ids[:, at : at + cut], cache, Trace() if watched else None))
        at += cut
    assert torch.allclose(torch.cat(pieces, 1), tiny(ids), atol=1e-5)
    assert cache.length == 20


@torch.no_grad()
@pytest.mark.parametrize("watched", [False, True])
def test_a_left_padded_row_equals_the_row_alone(tiny, watched):
    ids, padding = some_ids(3, 20), torch.tensor([0, 7, 19])
    batch = tiny(ids, padding=padding, trace=Trace() if watched else None)
    assert batch.isfinite().all()
    for row, skip in enumerate(padding.tolist()):
        assert torch.allclose(batch[row, skip:], tiny(ids[row : row + 1, skip:])[0], atol=1e-5)


@torch.no_grad()
def test_padding_is_never_looked_at(tiny):
    ids, padding = some_ids(2, 12), torch.tensor([0, 5])
    other = ids.clone()
    other[1, :5] = 7
    trace = Trace("blocks.*.attention.weights")
    assert torch.equal(tiny(ids, padding=padding)[1, 5:], tiny(other, padding=padding)[1, 5:])
    tiny(ids, padding=padding, trace=trace)
    assert trace["blocks.2.attention.weights"][1, :, 5:, :5].abs().max() == 0


@torch.no_grad()
def test_the_future_is_never_looked_at(tiny):
    ids = some_ids(1, 20)
    other = ids.clone()
    other[0, 12:] = 3
    assert torch.allclose(tiny(ids)[0, :12], tiny(other)[0, :12], atol=1e-6)
    assert not torch.allclose(tiny(ids)[0, 12:], tiny(other)[0, 12:], atol=1e-2)


def test_activation_is_the_tanh_form_of_gelu():
    x = torch.linspace(-4, 4, 101)
    model = GPT(Config(vocabulary=8, context=4, width=4, layers=1, heads=1))
    by_hand = 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    assert torch.allclose(model.blocks[0].mlp.activation(x), by_hand, atol=1e-6)
    assert (by_hand - torch.nn.functional.gelu(x)).abs().max() > 1e-4  # the erf form would be seen


def test_output_is_tied_to_the_token_embedding(tiny):
    assert tiny.output is None
    ids = some_ids(1, 5)
    model = GPT(tiny.config)
    model.load_state_dict(tiny.state_dict())
    model.eval()
    hidden = model.read(ids)
    assert torch.equal(model.score(hidden), hidden @ model.token_embedding.weight.T)
    model.score(hidden.detach()).sum().backward()
    assert model.token_embedding.weight.grad is not None


def test_initial_weights_are_gpt2s_and_the_projections_are_scaled_by_depth():
    torch.manual_seed(0)
    model = GPT(Config(vocabulary=2_000, context=64, width=128, layers=8, heads=4))
    for name, parameter in model.named_parameters():
        if "norm" in name:
            assert torch.equal(parameter, torch.ones_like(parameter) * name.endswith("weight"))
        elif name.endswith("bias"):
            assert parameter.abs().max() == 0
        else:
            expected = 0.02 / math.sqrt(16) if name.endswith("projection.weight") else 0.02
            assert parameter.std().item() == pytest.approx(expected, rel=0.05), name


def test_scale_by_layer_divides_the_scores_of_block_i_by_i_plus_one(tiny):
    other = GPT(tiny.config.but(scale_by_layer=True)).eval()
    other.load_state_dict(tiny.state_dict())
    ids, plain, scaled = some_ids(1, 6), Trace(), Trace()
    with torch.no_grad():
        tiny(ids, trace=plain)
        other(ids, trace=scaled)
    assert torch.allclose(plain["blocks.0.attention.scores"], scaled["blocks.0.attention.scores"])
    queries, keys = scaled["blocks.2.attention.queries"], scaled["blocks.2.attention.keys"]
    by_hand = queries @ keys.transpose(-1, -2) / math.sqrt(12) / 3
    assert torch.allclose(scaled["blocks.2.attention.scores"], by_hand, atol=1e-6)


def test_more_tokens_than_positions_is_an_error_that_says_so(tiny):
    with pytest.raises(CutawayError, match="49 tokens do not fit: this model has 48 positions"):
        tiny(some_ids(1, 49))
    cache = Cache(tiny.config)
    tiny(some_ids(1, 48), cache)
    with pytest.raises(CutawayError, match="48 positions"):
        tiny(some_ids(1, 1), cache)


def test_dropout_acts_in_training_and_never_otherwise(tiny):
    torch.manual_seed(0)
    model = GPT(tiny.config.but(dropout=0.5))
    model.load_state_dict(tiny.state_dict())
    ids = some_ids(1, 8)
    assert not torch.equal(model(ids), model(ids))
    assert torch.allclose(model.eval()(ids), tiny(ids), atol=1e-6)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"width": 100, "heads": 3}, "cannot be divided between 3 heads"),
        ({"layers": 0}, "layers must be a whole number"),
        ({"heads": 2.5}, "heads must be a whole number"),
        ({"activation": "gleu"}, "Unknown activation"),
        ({"dropout": 1.0}, "Dropout"),
        ({"end_token": 60_000}, "not in a vocabulary"),
    ],
)
def test_an_impossible_shape_is_refused_with_the_reason(given, said):
    with pytest.raises(CutawayError, match=said):
        Config(**given)


def test_but_changes_a_shape_and_names_the_nearest_field():
    assert Config().but(width=64, heads=4).mlp_width == 256
    assert Config().but(vocabulary=100).end == 99
    with pytest.raises(CutawayError, match="Did you mean 'layers'"):
        Config().but(layer=3)
