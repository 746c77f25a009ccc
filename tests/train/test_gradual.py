"""ULMFiT's tuning: a rate for each layer, the slanted triangle, and layers that begin to learn one after the other."""

from __future__ import annotations

import math

import pytest
import torch

from cutaway import train
from cutaway.errors import CutawayError
from cutaway.models.architecture import architecture
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.models.transformer.shape import Shape
from cutaway.tasks.head import Classifier
from cutaway.train.optimizer import depths, learning_rate, make_optimizer, set_learning_rate, thawed
from cutaway.train.recipe import Train

SMALL = Config(vocabulary=300, context=32, width=8, layers=3, heads=2)
RECORDS = [
    {"text": f"the {who} is {how}", "label": how} for who in ("fox", "dog", "owl", "bear") for how in ("good", "bad")
] * 3
TUNED = {
    "schedule": "slanted", "warm_up": 0.1, "final": 1 / 32, "layer_factor": 1 / 2.6, "unfreeze_every": 3,
    "steps": 12, "batch": 4, "held_out": 0, "learning_rate": 0.01, "dropout": 0.1, "threads": 1, "checkpoint_every": 4,
}  # fmt: skip


def test_the_slanted_triangle_is_the_papers():
    settings = Train(steps=200, learning_rate=0.01, schedule="slanted", warm_up=0.1, final=1 / 32)
    cut = math.floor(200 * 0.1)
    for step in (1, 7, 19, 20, 21, 100, 199, 200):
        p = step / cut if step < cut else 1 - (step - cut) / (cut * (1 / 0.1 - 1))
        assert learning_rate(step, settings) == pytest.approx(0.01 * (1 + p * (32 - 1)) / 32), step
    assert learning_rate(20, settings) == pytest.approx(0.01)
    assert learning_rate(200, settings) == pytest.approx(0.01 / 32)


def test_each_layer_has_its_share_of_the_rate_of_the_one_above():
    model = Classifier(GPT(SMALL), 2)
    optimizer = make_optimizer(model, Train(learning_rate=1.0, layer_factor=1 / 2.6))
    set_learning_rate(optimizer, 0.5, 1 / 2.6)
    rates = {id(one): group["lr"] for group in optimizer.param_groups for one in group["params"]}
    expected = {
        "score": 0,
        "gpt.final_norm": 0,
        "gpt.blocks.2": 1,
        "gpt.blocks.1": 2,
        "gpt.blocks.0": 3,
        "gpt.token": 4,
        "gpt.position": 4,
    }
    for name, one in model.named_parameters():
        [depth] = [depth for begin, depth in expected.items() if name.startswith(begin)]
        assert rates[id(one)] == pytest.approx(0.5 / 2.6**depth), name
    assert len(rates) == len(list(model.parameters()))


def test_without_these_settings_the_groups_are_as_they_were():
    optimizer = make_optimizer(GPT(SMALL), Train(learning_rate=1.0))
    assert [group.get("depth") for group in optimizer.param_groups] == [None, None]


def test_a_decoder_is_above_its_encoder_and_a_model_without_blocks_is_refused():
    shape = Shape(vocabulary=50, width=8, heads=2, layers=2, mlp_width=16)
    model = architecture("transformer").build(shape)
    found = {name: depths(model)[id(one)] for name, one in model.named_parameters()}
    names = {
        stack: [depth for name, depth in found.items() if name.startswith(f"{stack}.blocks")]
        for stack in ("encoder", "decoder")
    }
    assert (set(names["decoder"]), set(names["encoder"])) == ({1, 2}, {3, 4})
    with pytest.raises(CutawayError, match="shows none"):
        make_optimizer(torch.nn.Linear(2, 2), Train(learning_rate=1.0, layer_factor=0.5))


def test_a_layer_more_learns_after_every_so_many_steps():
    settings = Train(steps=100, unfreeze_every=10)
    assert [thawed(step, settings) for step in (1, 10, 11, 20, 21)] == [0, 0, 1, 1, 2]
    assert thawed(26, Train(steps=100, unfreeze_every=0.25)) == 1
    assert thawed(1, Train(steps=100)) == math.inf


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base")
    train.run(
        folder / "base", texts=["the fox is good. the dog is bad. the owl is here. " * 40], steps=2, held_out=0,
        model={"layers": 3, "width": 16, "heads": 2, "context": 32, "vocabulary": 300}, threads=1,
        cache=str(folder / "cache"),
    )  # fmt: skip
    return folder


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_frozen_layers_do_not_move_and_the_others_do(base, tmp_path, optimizer):
    from safetensors.torch import load_file

    given = TUNED | {
        "optimizer": optimizer,
        "cache": str(base / "cache"),
        "task": "classification",
        "from_": str(base / "base"),
    }
    before = load_file(base / "base" / "model.safetensors")
    for steps, moving in ((3, {"score", "ln_f"}), (6, {"score", "ln_f", "h.2"}), (9, {"score", "ln_f", "h.2", "h.1"})):
        train.run(tmp_path / str(steps), records=RECORDS, **{**given, "steps": steps})
        after = load_file(tmp_path / str(steps) / "model.safetensors")
        for name, value in before.items():
            plain = name.removeprefix("transformer.")
            moved = not torch.equal(after[name][: len(value)], value)
            assert moved == any(plain.startswith(f"{one}.") for one in moving), (steps, name)


def test_it_is_resumed_to_the_bit(base, tmp_path):
    given = TUNED | {"cache": str(base / "cache"), "task": "classification", "from_": str(base / "base")}
    train.run(tmp_path / "whole", records=RECORDS, **given)
    asked = iter([False] * 6 + [True])
    assert train.run(tmp_path / "parts", records=RECORDS, stop=lambda: next(asked), **given).step == 7
    assert train.run(tmp_path / "parts", resume=True).reason == "done"
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts"))
    assert one == two


@pytest.mark.parametrize(
    ("given", "says"),
    [({"layer_factor": 0.0}, "above 0"), ({"layer_factor": 1.5}, "at most 1"), ({"unfreeze_every": -1.0}, "0 or more")],
)
def test_settings_that_cannot_be_are_refused(given, says):
    with pytest.raises(CutawayError, match=says):
        Train(**given)
