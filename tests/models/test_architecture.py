"""A model is known by what it says of itself: its tensors and its map. Another one can be registered from outside, and
trained for a task that is registered from outside."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import pytest
import torch
from torch import nn

import cutaway
from cutaway import plugins, tasks, train
from cutaway.cli import run
from cutaway.errors import CutawayError
from cutaway.inspect.parameters import parameters
from cutaway.language_model import LanguageModel
from cutaway.models import architecture as architectures
from cutaway.models.architecture import Place, TensorSpec, architecture, count_parameters, places, tensors
from cutaway.parts.trace import UNWATCHED
from cutaway.tasks import Batch, Example, Loss, Task
from cutaway.tasks.task import padded, text, token
from cutaway.tasks.token_loss import IGNORED, token_loss
from cutaway.train import state
from cutaway.train.data.shards import prepare
from cutaway.train.events import Evaluated, Step

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
    with pytest.raises(CutawayError, match=r"'tiny-encodr', and only .*'gpt2'.* are supported.*'tiny-encoder'\?"):
        cutaway.load(tmp_path / "encoder")


# A task from outside, of a kind that no included one is of: words anywhere in a text are hidden, and guessed from both
# sides.


@dataclass(frozen=True)
class MaskedWords(Task):
    every: int = 4
    limit: int | None = None

    name: ClassVar[str] = "hidden words"
    fields: ClassVar[tuple[str, ...]] = ("text",)
    specials: ClassVar[tuple[str, ...]] = ("<|mask|>",)
    arrays: ClassVar[Mapping[str, str]] = {"targets": "i4"}

    def examples(self, record, tokenizer):
        ids, mask = tokenizer.encode(text(record, "text", self))[: self.limit], token(tokenizer, "<|mask|>", self)
        hidden = [at % self.every == len(ids) % self.every for at in range(len(ids))]
        inputs = [mask if hide else one for one, hide in zip(ids, hidden, strict=True)]
        targets = [one if hide else IGNORED for one, hide in zip(ids, hidden, strict=True)]
        return [Example(inputs, {"targets": targets})]

    def collate(self, examples):
        rows = [example["ids"] for example in examples]
        targets = torch.from_numpy(padded([example["targets"] for example in examples], IGNORED))
        tensors = {"inputs": torch.from_numpy(padded(rows, 0)), "targets": targets}
        return Batch(tensors, tokens=sum(map(len, rows)), count=int((targets != IGNORED).sum()))

    def loss(self, model, batch, scale=1.0):
        with torch.no_grad():
            right = (model(batch["inputs"]).argmax(-1) == batch["targets"]).sum()
        return Loss(token_loss(model, batch["inputs"], batch["targets"], scale), {"accuracy": right, "asked": right})


WORDS = """
a robot must obey the orders given it by human beings except where such orders would conflict
""".split()  # noqa: SIM905
RECORDS = [{"text": " ".join(WORDS[at % 9 : at % 9 + 4 + at % 5])} for at in range(60)]


@pytest.fixture
def settings(encoder, monkeypatch, tmp_path) -> dict[str, Any]:
    """Everything a training of the encoder needs, in the public way."""
    monkeypatch.setattr(tasks, "TASKS", dict(tasks.TASKS))
    tasks.register(MaskedWords)
    return {
        "task": "hidden words", "from_": tmp_path / "encoder", "steps": 80, "batch": 8, "at_once": 4, "seed": 3,
        "learning_rate": 0.05, "held_out": 10, "evaluate_every": 10, "checkpoint_every": 20,
        "cache": str(tmp_path / "cache"),
    }  # fmt: skip


def test_a_model_from_outside_learns_a_task_from_outside_and_is_saved_and_loaded(encoder, settings, tmp_path):
    events = []
    report = train.run(tmp_path / "trained", records=RECORDS, on_event=events.append, **settings)
    losses = [event.loss for event in events if isinstance(event, Step)]
    assert sum(losses[-5:]) < 0.6 * sum(losses[:5])
    measured = [event for event in events if isinstance(event, Evaluated)]
    assert measured[-1].held_loss < measured[0].held_loss
    assert report.accuracy == measured[-1].metrics["asked"] > 0.2
    lm = cutaway.load(tmp_path / "trained")
    assert isinstance(lm.model, Encoder)
    assert lm.config.vocabulary == encoder.config.vocabulary + 1  # there was no mask before
    assert tasks.load_task(tmp_path / "trained") == MaskedWords(limit=64)
    weights = state.latest(tmp_path / "trained" / "training")
    tensors = dict.fromkeys(["weights.token_embedding.weight"], torch.empty_like(lm.model.token_embedding.weight))
    state.load_tensors(weights, tensors)
    assert torch.equal(tensors["weights.token_embedding.weight"], lm.model.token_embedding.weight)


def test_its_training_is_resumed_to_the_bit(settings, tmp_path):
    train.run(tmp_path / "whole", records=RECORDS, **settings)
    asked = iter([False] * 12 + [True])
    stopped = train.run(tmp_path / "parts", records=RECORDS, stop=lambda: next(asked), **settings)
    assert (stopped.reason, stopped.step) == ("stopped", 13)
    assert train.run(tmp_path / "parts", resume=True).reason == "done"
    for name in ("model.safetensors", "task.json", "config.json"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_the_command_line_knows_both_by_name(settings, tmp_path, capsys):
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    given = ["--task", "hidden words", "--from", str(tmp_path / "encoder"), "--steps", "3", "--set", "data.held_out=5"]
    assert run(["train", str(data), "-o", str(tmp_path / "said"), *given]) == 0
    assert isinstance(cutaway.load(tmp_path / "said").model, Encoder)
    assert "Try it" not in capsys.readouterr().err  # there is no command for such a model


def test_a_language_model_of_another_kind_is_trained_without_a_stack_and_writes_samples(encoder, settings, tmp_path):
    settings = settings | {"task": "language", "steps": 4, "recompute": True, "prompt": "A robot"}
    train.run(tmp_path / "trained", texts=[record["text"] for record in RECORDS], **settings)
    assert (tmp_path / "trained" / "samples.jsonl").read_text()
    with pytest.raises(CutawayError, match="LoRA adapts the linear layers of a model's blocks"):
        train.run(tmp_path / "adapted", texts=[one["text"] for one in RECORDS], **settings, lora={"rank": 2})


@pytest.mark.parametrize("workers", [1, 2])
def test_data_for_a_task_from_outside_is_cut_in_processes_of_their_own(encoder, settings, tmp_path, workers):
    data, tokenizer = tmp_path / "data.jsonl", encoder.tokenizer.with_specials(MaskedWords.specials)
    data.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    made = prepare([data], tokenizer, MaskedWords(), tmp_path / "other", held_out=0, workers=workers)
    assert len(made.train) == len(RECORDS)
    example, [wanted] = made.train.example(7), MaskedWords().examples(RECORDS[7], tokenizer)
    assert example["ids"].tolist() == wanted.ids
    assert example["targets"].tolist() == wanted.arrays["targets"]


def test_an_example_with_other_arrays_than_its_task_says_is_refused(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(MaskedWords, "arrays", {"labels": "i4"})
    with pytest.raises(CutawayError, match=r"records\[0\]: .* says that .* the arrays labels, .* has targets"):
        train.run(tmp_path / "trained", records=RECORDS, **settings)


def test_what_is_no_task_is_not_registered():
    with pytest.raises(CutawayError, match="must be a frozen dataclass"):
        tasks.register(dict)

    @dataclass(frozen=True)
    class Nameless(Task):
        pass

    with pytest.raises(CutawayError, match="Nameless has no name"):
        tasks.register(Nameless)


def test_a_package_that_announces_itself_is_asked_for_what_is_not_known(monkeypatch):
    monkeypatch.setattr(tasks, "TASKS", dict(tasks.TASKS))
    monkeypatch.setattr(architectures, "_KNOWN", dict(architectures._KNOWN))

    class Announced:
        def load(self) -> None:
            tasks.register(MaskedWords)
            architectures.register(TinyEncoder())

    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [Announced()] if group == "cutaway" else [])
    plugins.load_plugins.cache_clear()
    assert tasks.task_from({"name": "hidden words", "every": 5}) == MaskedWords(5)
    assert architecture("tiny-encoder").title == "tiny encoder"
    plugins.load_plugins.cache_clear()


class Tied(Encoder):
    """Its output is a module of its own that shares the embedding's weight, and it makes constants of two kinds."""

    def __init__(self, shape: Shape):
        super().__init__(shape)
        self.output = nn.Linear(shape.width, shape.vocabulary, bias=False)
        self.output.weight = self.token_embedding.weight
        self.register_buffer("signs", torch.tensor([1.0, -1.0] * (shape.width // 2)), persistent=False)
        self.twice = torch.tensor(2.0)

    def forward(self, ids, trace=None):
        return self.twice * self.output(self.token_embedding(ids) * self.signs)


def described(model: type[nn.Module], **more: Any) -> Any:
    """The encoder's description with another model, or with something else in it."""
    return type("Described", (TinyEncoder,), {"build": lambda self, shape: model(shape), **more})()


def test_tied_weights_and_constants_are_there_when_a_model_is_loaded(tiny_lm, monkeypatch, tmp_path):
    monkeypatch.setitem(architectures._KNOWN, "tiny-encoder", described(Tied))
    torch.manual_seed(0)
    model = Tied(Shape(len(tiny_lm.tokenizer))).eval()
    LanguageModel(model, tiny_lm.tokenizer).save(tmp_path)
    again = cutaway.load(tmp_path).model
    assert again.output.weight is again.token_embedding.weight
    ids = torch.tensor([[1, 2, 3]])
    assert torch.equal(again(ids), model(ids))


def without_bias(self: Any, shape: Shape) -> Iterator[TensorSpec]:
    return (one for one in TinyEncoder.tensors(self, shape) if one.name != "mixing.bias")


def with_a_slip(self: Any, shape: Shape) -> Iterator[TensorSpec]:
    yield from TinyEncoder.tensors(self, shape)
    yield TensorSpec("mixing.biass", "more", (shape.width,), "", "")


def under_one_name(self: Any, shape: Shape) -> Iterator[TensorSpec]:
    return (dataclasses.replace(one, stored="same") for one in TinyEncoder.tensors(self, shape))


def of_another_shape(self: Any, shape: Shape) -> Iterator[TensorSpec]:
    return (dataclasses.replace(one, shape=(3, *one.shape[1:])) for one in TinyEncoder.tensors(self, shape))


@pytest.mark.parametrize(
    ("tensors", "problem"),
    [
        (without_bias, "lacks mixing.bias"),
        (with_a_slip, "has mixing.biass, which the model has not. Did you mean 'mixing.bias'"),
        (under_one_name, "stores two tensors under the name same"),
        (of_another_shape, "says that token_embedding.weight is 3 x 8"),
    ],
)
def test_a_table_that_is_not_the_models_is_refused_before_anything_is_written(
    tiny_lm, monkeypatch, tmp_path, tensors, problem
):
    monkeypatch.setitem(architectures._KNOWN, "tiny-encoder", described(Encoder, tensors=tensors))
    lm = LanguageModel(Encoder(Shape(len(tiny_lm.tokenizer))), tiny_lm.tokenizer)
    with pytest.raises(CutawayError, match=problem):
        lm.save(tmp_path / "model")
    assert not (tmp_path / "model" / "model.safetensors").exists()


def test_a_config_that_lacks_something_is_refused_in_a_sentence(encoder, tmp_path):
    encoder.save(tmp_path)
    path = tmp_path / "config.json"
    given = json.loads(path.read_text())
    del given["width"]
    path.write_text(json.dumps(given))
    with pytest.raises(CutawayError, match="lacks 'width', which a model of the type 'tiny-encoder' has"):
        cutaway.load(tmp_path)
