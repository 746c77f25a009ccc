"""Relative attention: the skewed product against the literal one; cached, padded, traced, saved; exports refuse it."""

from __future__ import annotations

import json

import pytest
import torch

import cutaway
from cutaway import checkpoint, inspect
from cutaway.checkpoint.gguf import write_gguf
from cutaway.checkpoint.onnx import write_onnx
from cutaway.errors import CutawayError
from cutaway.inspect.arithmetic import explain
from cutaway.inspect.walk import walk
from cutaway.models.architecture import places, tensors
from cutaway.models.gpt2.model import GPT, Attention
from cutaway.models.gpt2.shape import Config
from cutaway.models.steps import model_map
from cutaway.parts.cache import Cache
from cutaway.text.tokenizer import Tokenizer

SHAPE = Config(vocabulary=61, context=24, width=24, layers=2, heads=3, positions="relative")


@pytest.fixture
def model() -> GPT:
    torch.manual_seed(0)
    made = GPT(SHAPE)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return made.eval()


def literal(attention: Attention, x: torch.Tensor) -> torch.Tensor:
    """Attention by the paper's formula, with a vector for every pair of tokens: [query, key, head_width]."""
    queries, keys, values = (attention.split(one)[0] for one in attention.queries_keys_values(x).chunk(3, dim=-1))
    heads, count, width = queries.shape
    learned = attention.distances
    out = torch.zeros(heads, count, width, dtype=torch.float64)
    for head in range(heads):
        pairs = torch.stack(
            [
                torch.stack([learned[head, learned.shape[1] - 1 - max(0, i - j)] for j in range(count)])
                for i in range(count)
            ]
        )
        content = torch.einsum("id,jd->ij", queries[head].double(), keys[head].double())
        relative = torch.einsum("id,ijd->ij", queries[head].double(), pairs.double())
        scores = (content + relative) / width**0.5
        for i in range(count):
            out[head, i] = scores[i, : i + 1].softmax(-1) @ values[head, : i + 1].double()
    return attention.projection(out.float().transpose(0, 1).flatten(-2))[None]


@torch.no_grad()
@pytest.mark.parametrize("count", [1, 2, 7, 24])
def test_the_skewed_product_is_the_literal_one(model, count):
    attention, x = model.blocks[0].attention, torch.randn(1, count, SHAPE.width)
    assert torch.allclose(attention(x, None, None), literal(attention, x), atol=1e-5)


def test_its_gradients_are_those_of_the_literal_one(model):
    attention, x = model.blocks[1].attention, torch.randn(1, 9, SHAPE.width)
    found = torch.autograd.grad(attention(x, None, None).square().sum(), list(attention.parameters()))
    wanted = torch.autograd.grad(literal(attention, x).square().sum(), list(attention.parameters()))
    for one, other in zip(found, wanted, strict=True):
        assert torch.allclose(one, other, atol=1e-4)


def test_some_queries_at_a_time_give_what_all_of_them_give(model, monkeypatch):
    """Whole, after a cache, padded, and what is learned."""
    attention, x = model.blocks[0].attention, torch.randn(2, 13, SHAPE.width)
    ids = torch.randint(0, 61, (2, 13))

    def answers() -> list[torch.Tensor]:
        whole = attention(x, None, None)
        learned = torch.autograd.grad(whole.square().sum(), list(attention.parameters()))
        cache = Cache(SHAPE, batch=2)
        with torch.no_grad():
            after = [model(ids[:, :6], cache=cache), model(ids[:, 6:], cache=cache)]
        padded = model(ids, padding=torch.tensor([0, 5]))
        return [whole, *learned, *after, padded[1, 5:]]

    wanted = answers()
    monkeypatch.setattr("cutaway.models.gpt2.model.BLOCK", 4)
    for one, other in zip(answers(), wanted, strict=True):
        assert torch.allclose(one, other, atol=1e-4)


@torch.no_grad()
def test_only_a_table_of_scores_is_held_never_a_vector_for_each_pair(model):
    attention, largest = model.blocks[0].attention, 0
    queries = torch.randn(1, SHAPE.heads, 24, SHAPE.head_width)

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            nonlocal largest
            made = func(*args, **(kwargs or {}))
            if isinstance(made, torch.Tensor):
                largest = max(largest, made.untyped_storage().nbytes() // made.element_size())
            return made

    with Watch():
        attention.by_distance(queries, 24)
    assert largest <= SHAPE.heads * 24 * 25  # the scores and the column that the skewing adds


@torch.no_grad()
def test_cached_is_uncached_and_padded_is_single(model):
    rows = [torch.randint(61, (length,), generator=torch.Generator().manual_seed(length)) for length in (20, 13, 1)]
    alone = [model(row[None])[0] for row in rows]
    cache = Cache(SHAPE)
    pieces = [model(piece[None], cache)[0] for piece in rows[0].split([5, 1, 1, 9, 4])]
    assert torch.allclose(torch.cat(pieces), alone[0], atol=1e-5)
    padding = torch.tensor([20 - len(row) for row in rows])
    together = torch.stack([torch.cat([torch.zeros(20 - len(row), dtype=torch.long), row]) for row in rows])
    cache = Cache(SHAPE, batch=3, capacity=24, padding=padding)
    found = torch.cat([model(together[:, :17], cache), model(together[:, 17:], cache)], dim=1)
    for row, own in enumerate(alone):
        assert torch.allclose(found[row, 20 - len(own) :], own, atol=1e-5)


@torch.no_grad()
def test_columns_beyond_the_context_are_padding_and_change_nothing(model):
    row = torch.arange(10) % 61
    padding = torch.tensor([20])
    ids = torch.cat([torch.zeros(20, dtype=torch.long), row])[None]  # 30 columns, and 24 positions
    assert torch.allclose(model(ids, padding=padding)[0, 20:], model(row[None])[0], atol=1e-5)


@torch.no_grad()
def test_a_shift_of_the_whole_text_changes_nothing(model):
    """What it is for: only distances count. The first tokens differ, so only where they cannot be seen: one block, and
    queries and keys of the same tokens."""
    scores = []
    for at in (0, 9):
        cache = Cache(SHAPE)
        if at:
            model(torch.full((1, at), 7), cache)
        trace = cutaway.parts.trace.Trace(keep="blocks.0.attention.placed")
        model(torch.arange(8)[None], cache, trace)
        scores.append(trace["blocks.0.attention.placed"][0, :, :, -8:].tril())
    assert torch.allclose(*scores, atol=1e-5)


def test_the_table_and_the_map_say_what_the_model_has(model):
    shapes = {name: tuple(one.shape) for name, one in model.named_parameters()}
    assert {one.name: one.ours for one in tensors(SHAPE)} == shapes
    assert "position_embedding.weight" not in shapes
    lm = cutaway.LanguageModel(model, events_like())
    trace = lm.trace([3, 5, 8, 13])
    assert list(trace) == list(places(SHAPE))
    at = "blocks.1.attention"
    both = trace[f"{at}.scores"] + trace[f"{at}.relative"]
    assert torch.allclose(trace[f"{at}.placed"], both)
    assert torch.allclose(trace["logits"], model(torch.tensor([[3, 5, 8, 13]]))[0], atol=1e-5)


def events_like() -> Tokenizer:
    from cutaway.text.no_tokenizer import NoTokenizer

    return NoTokenizer(61, "a test")


def test_every_number_can_be_explained_and_every_step_drawn(model):
    lm = cutaway.LanguageModel(model, events_like())
    run = inspect.run(lm, [3, 5, 8, 13])
    for name, place in places(SHAPE).items():
        head = 1 if place.axes[0] == "head" else None
        cell = explain(run, name, 2, 1, head)
        assert cell.total == pytest.approx(cell.value, abs=1e-5), name
    assert explain(run, "blocks.1.attention.relative", 2, 1, 0).count == SHAPE.head_width
    for step in model_map(SHAPE).steps:
        assert walk(run, step.name, 1, 1, 2) is not None


def test_it_is_saved_under_a_name_that_others_refuse(model, tmp_path):
    tokenizer = Tokenizer.load("gpt2")
    checkpoint.write_model(model, events_like(), tmp_path)
    written = json.loads((tmp_path / "config.json").read_text())
    assert (written["model_type"], written["positions"]) == ("cutaway-gpt2", "relative")
    again = checkpoint.read_model(tmp_path)
    assert again.config == SHAPE
    ids = torch.tensor([[1, 2, 3]])
    assert torch.equal(again.eval()(ids), model(ids))
    transformers = pytest.importorskip("transformers")
    with pytest.raises((ValueError, KeyError), match="cutaway-gpt2"):
        transformers.AutoConfig.from_pretrained(tmp_path)
    for write in (
        lambda: write_gguf(model, tokenizer, tmp_path / "a.gguf"),
        lambda: write_onnx(model, tmp_path / "a.onnx"),
    ):
        with pytest.raises(CutawayError, match="relative attention"):
            write()
    (tmp_path / "config.json").write_text(json.dumps({**written, "model_type": "gpt2"}))
    with pytest.raises(CutawayError, match="damaged"):
        checkpoint.read_model(tmp_path)


def test_an_unknown_kind_of_positions_is_refused():
    with pytest.raises(CutawayError, match="absolute or relative"):
        Config(positions="rotary")
