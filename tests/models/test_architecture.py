"""A model is known by what it says of itself: its tensors and its map. Another one can be registered from outside."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import pytest
import torch
from torch import nn

import cutaway
from cutaway.errors import CutawayError
from cutaway.inspect.parameters import parameters
from cutaway.language_model import LanguageModel
from cutaway.models import architecture as architectures
from cutaway.models.architecture import Place, TensorSpec, architecture, count_parameters, places, tensors
from cutaway.parts.trace import UNWATCHED

VECTOR, TABLE = ("token", "column"), ("head", "token", "key")


def sized(tiny, tied: bool):
    return tiny.config.but(tied=tied)


@pytest.mark.parametrize("tied", [True, False])
def test_the_table_lists_the_models_own_parameters_in_their_shapes(tiny, tied):
    shape = sized(tiny, tied)
    model = architecture("gpt2").build(shape)
    assert {one.name: one.ours for one in tensors(shape)} == {n: tuple(p.shape) for n, p in model.named_parameters()}
    assert count_parameters(shape) == sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("tied", [True, False])
def test_every_place_is_made_of_places_before_it_by_a_module_that_is_there(tiny, tied):
    shape = sized(tiny, tied)
    model, seen = architecture("gpt2").build(shape), {"ids", "positions"}
    for place in places(shape).values():
        assert set(place.inputs) <= seen, place.name
        assert not place.module or model.get_submodule(place.module)
        seen.add(place.name)


def test_the_axes_on_the_map_are_those_of_the_values(tiny_lm):
    trace, config = tiny_lm.trace("A robot must obey"), tiny_lm.config
    tokens = len(tiny_lm.ids("A robot must obey"))
    size = {"token": tokens, "key": tokens, "head": config.heads}
    for place in places(config).values():
        for axis, length in zip(place.axes, trace[place.name].shape, strict=True):
            assert length == size.get(axis, length), place.name


# An encoder from outside: every token attends to every other, there are no positions and no blocks of GPT-2's.


@dataclass(frozen=True)
class Shape:
    kind: ClassVar[str] = "tiny-encoder"
    vocabulary: int
    width: int = 8
    layers: int = 1
    heads: int = 1
    context: int = 64
    end: int = 0


class Encoder(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.config = shape
        self.token_embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.mixing = nn.Linear(shape.width, shape.width)
        self.scale = 1 / math.sqrt(shape.width)

    def forward(self, ids, cache=None, trace=None, padding=None):
        watch = UNWATCHED if trace is None else trace
        tokens = watch("token_embedding", self.token_embedding(ids))  # [batch, token, width]
        scores = watch("scores", (tokens @ tokens.mT * self.scale)[:, None])  # [batch, head, token, key]
        weights = watch("weights", scores.softmax(-1))
        mixed = watch("mixed", (weights @ tokens[:, None])[:, 0])
        hidden = watch("hidden", self.mixing(mixed))
        return watch("logits", hidden @ self.token_embedding.weight.T)


class TinyEncoder:
    kind, Shape, title, native, prefix = "tiny-encoder", Shape, "tiny encoder", False, "encoder."
    copies: ClassVar[dict[str, str]] = {}

    def read_shape(self, given: Any) -> Shape:
        return Shape(**{name: given[name] for name in asdict(Shape(1))})

    def write_shape(self, shape: Shape) -> dict[str, Any]:
        return {"model_type": self.kind, **asdict(shape)}

    def ignores(self, stored: str) -> bool:
        return False

    def build(self, shape: Shape) -> nn.Module:
        return Encoder(shape)

    def tensors(self, shape: Shape) -> Iterator[TensorSpec]:
        rows, square = (shape.vocabulary, shape.width), (shape.width, shape.width)
        yield TensorSpec("token_embedding.weight", "words", rows, "a row for each token", "token embedding")
        yield TensorSpec("mixing.weight", "mix", square, "mixing", "mixing", block=0, transposed=True)
        yield TensorSpec("mixing.bias", "mix_bias", square[:1], "mixing, bias", "mixing", block=0)

    def places(self, shape: Shape) -> Iterator[Place]:
        yield Place("token_embedding", VECTOR, "look up", ("ids",), "token_embedding")
        yield Place("scores", TABLE, "score", ("token_embedding", "token_embedding"))
        yield Place("weights", TABLE, "softmax", ("scores",))
        yield Place("mixed", VECTOR, "mix", ("weights", "token_embedding"))
        yield Place("hidden", VECTOR, "linear", ("mixed",), "mixing")
        yield Place("logits", VECTOR, "linear", ("hidden",), "token_embedding")


@pytest.fixture
def encoder(tiny_lm, monkeypatch, tmp_path) -> LanguageModel:
    """Saved as any model is, and loaded again by its folder."""
    monkeypatch.setattr(architectures, "_KNOWN", dict(architectures._KNOWN))
    architectures.register(TinyEncoder())
    torch.manual_seed(0)
    LanguageModel(Encoder(Shape(len(tiny_lm.tokenizer))), tiny_lm.tokenizer, "encoder").save(tmp_path / "encoder")
    return cutaway.load(tmp_path / "encoder")


def test_a_model_from_outside_is_saved_and_loaded(encoder, tiny_lm):
    assert isinstance(encoder.model, Encoder)
    torch.manual_seed(0)
    first = Encoder(Shape(len(tiny_lm.tokenizer)))
    ids = torch.tensor([encoder.ids("A robot")])
    assert torch.equal(encoder.model(ids), first(ids))


def test_it_is_traced_by_the_names_of_its_own_map(encoder):
    trace = encoder.trace("A robot must", keep=["weights", "logits"])
    assert list(trace) == ["weights", "logits"]
    weights = trace["weights"]
    assert torch.allclose(weights.sum(-1), torch.ones(weights.shape[:-1]))
    assert (weights[0, 0, 1:] > 0).all()  # no mask: the first token attends to the later ones
    with pytest.raises(CutawayError, match=r"Nothing in this model is called 'blocks\.0\.residual'"):
        encoder.trace("A robot", keep="blocks.0.residual")


def test_its_parameters_are_counted_from_its_own_table(encoder):
    counted = parameters(encoder.config)
    assert counted.total == sum(parameter.numel() for parameter in encoder.model.parameters())
    assert counted.parts() == {"token embedding": 8 * encoder.config.vocabulary, "mixing": 8 * 8 + 8}
    assert [one.name for one in counted.before] == ["token_embedding.weight"]


def test_a_kind_that_nobody_has_registered_is_refused_by_its_name(encoder, tmp_path):
    config = tmp_path / "encoder" / "config.json"
    config.write_text(config.read_text().replace("tiny-encoder", "tiny-encodr"))
    with pytest.raises(CutawayError, match=r"'tiny-encodr', and only 'gpt2', 'tiny-encoder' .*'tiny-encoder'\?"):
        cutaway.load(tmp_path / "encoder")
