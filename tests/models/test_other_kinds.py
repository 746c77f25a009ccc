"""A language model of another kind, of which no more is known than `model(ids)`: a GRU, without positions, heads, a KV
cache or a word for padding."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import pytest
import torch
from torch import nn

import cutaway
from cutaway import train
from cutaway.cli import run
from cutaway.errors import CutawayError
from cutaway.evaluate.perplexity import perplexity
from cutaway.inspect import AblateHead
from cutaway.inspect.beams import tree
from cutaway.language_model import LanguageModel
from cutaway.models import architecture as architectures
from cutaway.models.architecture import Place, TensorSpec
from cutaway.parts.trace import UNWATCHED

TEXTS = ["A robot", "A robot must obey the orders given it", "The robot", ""]


@dataclass(frozen=True)
class Shape:
    kind: ClassVar[str] = "gru"
    vocabulary: int
    end: int
    width: int = 8


class Gru(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.config = shape
        self.words = nn.Embedding(shape.vocabulary, shape.width)
        self.gru = nn.GRU(shape.width, shape.width, batch_first=True)
        self.head = nn.Linear(shape.width, shape.vocabulary)

    def forward(self, ids, trace=None):
        watch = UNWATCHED if trace is None else trace
        words = watch("words", self.words(ids))
        return watch("logits", self.head(watch("states", self.gru(words)[0])))


class Halved(Gru):
    """Has methods of the names that a KV cache goes with, and declares none."""

    def read(self, ids, cache=None, trace=None, padding=None):
        return self.gru(self.words(ids))[0]

    def score(self, hidden):
        return self.head(hidden)


class Grus:
    kind, Shape, title, native, prefix = "gru", Shape, "GRU", False, ""
    copies: ClassVar[dict[str, str]] = {}
    model: ClassVar[type[Gru]] = Gru

    def read_shape(self, given: Any) -> Shape:
        return Shape(given["vocabulary"], given["end"])

    def write_shape(self, shape: Shape) -> dict[str, Any]:
        return {"model_type": self.kind, **asdict(shape)}

    def ignores(self, stored: str) -> bool:
        return False

    def build(self, shape: Shape) -> nn.Module:
        return self.model(shape)

    def tensors(self, shape: Shape) -> Iterator[TensorSpec]:
        with torch.device("meta"):
            model = Gru(shape)
        for name, value in model.named_parameters():
            yield TensorSpec(name, name, tuple(value.shape), name, name.partition(".")[0])

    def places(self, shape: Shape) -> Iterator[Place]:
        yield Place("words", ("token", "column"), "look up", ("ids",), "words")
        yield Place("states", ("token", "column"), "remember", ("words",), "gru")
        yield Place("logits", ("token", "column"), "linear", ("states",), "head")


@pytest.fixture(params=[Gru, Halved])
def gru(request, tiny_lm, monkeypatch, tmp_path) -> LanguageModel:
    monkeypatch.setattr(architectures, "_KNOWN", dict(architectures._KNOWN))
    monkeypatch.setattr(Grus, "model", request.param)
    architectures.register(Grus())
    torch.manual_seed(0)
    tokenizer = tiny_lm.tokenizer
    model = request.param(Shape(len(tokenizer), tokenizer.end))
    nn.init.normal_(model.head.weight, std=3)  # what comes next depends on what came before
    LanguageModel(model, tokenizer, "gru").save(tmp_path / "gru")
    return cutaway.load(tmp_path / "gru")


def by_hand(lm: LanguageModel, text: str, tokens: int) -> list[int]:
    ids = lm.ids(text) or [lm.config.end]
    for _ in range(tokens):
        scores = lm.model(torch.tensor([ids]))[0, -1, : len(lm.tokenizer)]
        ids.append(int(scores.argmax()))
    return ids[-tokens:]


def test_it_writes_what_it_gives_when_the_whole_text_is_read_for_every_token(gru):
    gru.model.head.bias.data[gru.config.end] = -1_000  # so that every text has all its tokens
    wanted = [by_hand(gru, text, 6) for text in TEXTS]
    assert len({tuple(one) for one in wanted}) > 1
    assert [one.ids for one in gru.generate(TEXTS, 6, top_k=1)] == wanted
    assert [one.ids for one in gru.generate(TEXTS, 6, beams=1)] == wanted
    assert "".join(gru.stream(TEXTS[1], 6, top_k=1)) == gru.tokenizer.decode(wanted[1])


def test_its_beams_have_the_probability_of_their_texts(gru):
    best = gru.generate(TEXTS[1], 4, beams=3, best=3, length_penalty=0)
    for one in best:
        ids = [*gru.ids(TEXTS[1]), *one.ids]
        logprobs = gru.model(torch.tensor([ids[:-1]]))[0].detach().log_softmax(-1)
        own = sum(float(logprobs[at - 1, ids[at]]) for at in range(len(ids) - len(one.ids), len(ids)))
        assert one.score == pytest.approx(own, abs=1e-4)
    assert [one.ids for one in tree(gru, TEXTS[1], beams=3, max_tokens=4, length_penalty=0).results] == [
        one.ids for one in best
    ]


def test_it_ends_even_if_nobody_says_when(gru):
    gru.model.head.bias.data[gru.config.end] = -1_000
    assert gru.generate("A", top_k=1).reason == "length"


def test_what_needs_a_cache_is_refused(gru):
    with pytest.raises(CutawayError, match="reads on from a KV cache, and GRU does not"):
        cutaway.inspect.written(gru, "A robot")
    with pytest.raises(CutawayError, match="reads on from a KV cache, and GRU does not"):
        gru.generate("A robot", 3, changes=[AblateHead(0, 0)])
    with pytest.raises(CutawayError, match="mean of what `read` gives, and GRU"):
        gru.embed("A robot")


def test_texts_of_unequal_length_are_scored_as_each_is_alone(gru):
    for text, logits, trace in zip(TEXTS, gru.logits(TEXTS), gru.traces(TEXTS), strict=True):
        alone = gru.model(gru.batch_of_one(text))[0].detach()
        torch.testing.assert_close(logits, alone)
        torch.testing.assert_close(trace["logits"], alone)
        best = gru.predict(text, k=1)[0]
        assert best.probability == pytest.approx(float(alone[-1].softmax(-1)[best.id]), rel=1e-4)
    for text, score in zip(TEXTS, gru.score(TEXTS, k=1), strict=True):
        ids = gru.ids(text)
        logprobs = gru.model(torch.tensor([[gru.config.end, *ids]]))[0].detach().log_softmax(-1)
        assert score.logprobs == pytest.approx([float(logprobs[at, one]) for at, one in enumerate(ids)], abs=1e-4)


def test_its_perplexity_is_that_of_its_scores(gru):
    found = perplexity(gru, TEXTS[1])
    assert found.perplexity == pytest.approx(gru.score(TEXTS[1]).perplexity, rel=1e-4)
    with pytest.raises(CutawayError, match="must be 2 or more tokens, not 1"):
        perplexity(gru, TEXTS[1], window=1)


def test_its_training_shows_samples(gru, tmp_path):
    settings = {"from_": tmp_path / "gru", "steps": 4, "batch": 4, "sample_every": 2, "prompt": "A robot"}
    train.run(tmp_path / "out", texts=["a robot must obey " * 40] * 4, cache=str(tmp_path / "cache"), **settings)
    samples = [json.loads(line) for line in (tmp_path / "out" / "samples.jsonl").read_text().splitlines()]
    assert samples
    assert all(one["prompt"] == "A robot" for one in samples)


def test_classes_on_it_are_refused_before_anything_is_prepared(gru, tmp_path):
    records = [{"text": f"text {at}", "label": "ab"[at % 2]} for at in range(20)]
    with pytest.raises(CutawayError, match="stands on a GPT-2, and this model is a GRU"):
        train.run(
            tmp_path / "out", records=records, task="classification", from_=tmp_path / "gru", cache=str(tmp_path / "c")
        )
    assert not (tmp_path / "out" / "recipe.toml").exists()
    assert not (tmp_path / "c").exists()


def test_its_table_of_parameters_says_what_there_is(gru, tmp_path, capsys):
    assert run(["parameters", "--model", str(tmp_path / "gru")]) == 0
    said = capsys.readouterr().out
    assert f"8 wide, {gru.config.vocabulary:,} tokens\n" in said
    assert "gru.weight_hh_l0" in said
    assert f"{sum(one.numel() for one in gru.model.parameters()):,}" in said
    assert "block" not in said


@pytest.mark.parametrize("kind", ["onnx", "gguf-f32", "cutaway-int8", "cutaway-int4"])
def test_formats_that_hold_only_gpt2_are_refused(gru, tmp_path, capsys, kind):
    out = tmp_path / "out.cutaway"
    assert run(["convert", str(tmp_path / "gru"), "--to", kind, "-o", str(out)]) == 2
    assert f"{kind} is for GPT-2" in " ".join(capsys.readouterr().err.split())
    assert not out.exists()


@pytest.mark.parametrize("asked", [{"weights": "int8"}, {"weights": "float32"}, {"engine": "native"}])
def test_the_native_engine_says_that_it_has_no_kernels_for_it(gru, tmp_path, asked):
    with pytest.raises(CutawayError, match="no kernels for GRU"):
        cutaway.load(tmp_path / "gru", **asked).generate("A", 2)
