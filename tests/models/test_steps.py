"""The steps of the walk come from the map, and links hold them by name: the names do not change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from cutaway.models import architecture as architectures
from cutaway.models.architecture import Place, places
from cutaway.models.steps import StepSpec, model_map

VECTOR, HEADS = ("token", "column"), ("head", "token", "column")
GPT2 = [
    "whole", "token", "embedding", "position", "entry", "attention_norm", "made", "split", "scores", "mask", "softmax",
    "mix", "merge", "projection", "attention_residual", "mlp_norm", "widen", "activation", "narrow", "mlp_residual",
    "final_norm", "logits", "choice",
]  # fmt: skip


def test_gpt2s_steps_are_these_in_this_order(tiny):
    steps = model_map(tiny.config).steps
    assert [step.name for step in steps] == GPT2
    assert [step.name for step in steps if step.block] == GPT2[5:20]
    assert [step.group for step in steps] == ["text"] * 5 + ["attention"] * 10 + ["mlp"] * 5 + ["end"] * 3
    assert all(step.named for step in steps)


def test_every_place_is_made_by_one_step(tiny):
    steps = model_map(tiny.config).steps
    for pattern in {place.pattern for place in places(tiny.config).values()}:
        assert [step.name for step in steps if pattern in step.places and step.operation != "show"], pattern


def test_what_every_block_has_stands_on_the_pages_map_once(tiny):
    told = model_map(tiny.config)
    assert told.layers == tiny.config.layers
    assert len(told.places) == len({place.pattern for place in places(tiny.config).values()})
    axes = {one.name: one.axes for one in told.places}
    assert axes["blocks.*.attention.weights"] == ("head", "token", "key")
    assert axes["blocks.*.attention.keys"][0] == "head"
    kinds = {one.name: one.kind for one in told.places}
    assert (kinds["token_embedding"], kinds["position_embedding"]) == ("token", "position")
    assert (kinds["blocks.*.residual"], kinds["blocks.*.mlp.hidden"]) == ("stream", "hidden")


@dataclass(frozen=True)
class Shape:
    kind: ClassVar[str] = "unnamed"


class Unnamed:
    """A map that names no steps, with a part of its blocks that GPT-2 has not."""

    kind, Shape, title = "unnamed", Shape, "Unnamed"

    def places(self, shape: Shape):
        yield Place("words", VECTOR, "look up", ("ids",), "words")
        for i in range(2):
            stream = f"blocks.{i - 1}.out" if i else "words"
            yield Place(f"blocks.{i}.recall.found", VECTOR, "linear", (stream,), f"blocks.{i}.recall")
            yield Place(f"blocks.{i}.out", VECTOR, "add", (stream, f"blocks.{i}.recall.found"))


@pytest.fixture
def unnamed(monkeypatch) -> Shape:
    monkeypatch.setattr(architectures, "_KNOWN", dict(architectures._KNOWN))
    architectures.register(Unnamed())  # type: ignore[arg-type]
    return Shape()


def test_a_place_without_a_step_is_a_step_of_its_own_name(unnamed):
    assert model_map(unnamed).steps == (
        StepSpec("whole", "stack", "text"),
        StepSpec("token", "token", "text"),
        StepSpec("words", "look up", "text", ("words",), named=False),
        StepSpec("recall.found", "linear", "recall", ("blocks.*.recall.found",), True, False),
        StepSpec("out", "add", "recall", ("blocks.*.out",), True, False),
    )


def pair_shape(kind, **given):
    shape = architectures.architecture(kind).Shape
    return shape(50, width=16, layers=2, start_token=48, end_token=49, **given)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_model_of_two_texts_has_two_stacks_and_each_is_a_map_of_its_own(norm):
    told = model_map(pair_shape("transformer", heads=2, norm=norm))
    encoder, decoder = told.stacks
    assert (encoder.name, decoder.name) == ("encoder", "decoder") and encoder.layers == decoder.layers == 2
    assert all(step.named for stack in told.stacks for step in stack.steps)
    assert [step.operation for step in encoder.steps[:3]] == ["stack", "token", "look up"]
    assert [step.name for step in decoder.steps[-2:]] == ["logits", "choice"] and decoder.steps[-2].operation == "rank"
    assert {step.group for step in encoder.steps if step.block} == {"attention", "mlp"}
    assert {step.group for step in decoder.steps if step.block} == {"attention", "cross", "mlp"}
    keys = next(place for place in decoder.places if place.name == "blocks.*.cross.keys")
    assert keys.inputs == (f"encoder.{'final_norm' if norm == 'pre' else 'blocks.1.mlp.norm'}",)


def test_a_recurrent_pair_says_what_its_decoder_takes_from_the_encoder():
    for attention in ("none", "multiplicative"):
        _, decoder = model_map(pair_shape("seq2seq", attention=attention)).stacks
        taken = {one for place in decoder.places for one in place.inputs if one.startswith("encoder.")}
        assert "encoder.blocks.0.last" in taken
        assert ("encoder.blocks.1.hidden" in taken) == (attention != "none")


def test_a_model_of_one_text_has_no_stacks(tiny):
    assert model_map(tiny.config).stacks == ()
