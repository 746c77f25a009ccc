"""LoRA: only the additions learn, and merged the model is plain and gives the same."""

import pytest
import torch

import cutaway
from cutaway.errors import CutawayError
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.tasks.head import Classifier
from cutaway.train import lora
from cutaway.train.events import Prepared
from cutaway.train.loop import train
from cutaway.train.recipe import Recipe


def model(seed=0):
    torch.manual_seed(seed)
    return GPT(Config(vocabulary=64, context=16, width=16, layers=2, heads=2))


def ids():
    return torch.arange(24).reshape(2, 12) % 64


@torch.no_grad()
def test_at_first_nothing_has_changed():
    gpt = model()
    before = gpt(ids())
    lora.adapt(gpt, rank=4)
    assert torch.equal(gpt(ids()), before)


def test_only_the_additions_learn_and_merged_they_give_the_same():
    gpt = model()
    frozen = {name: value.clone() for name, value in gpt.state_dict().items()}
    lora.adapt(gpt, rank=4, alpha=6.0)
    names = [name for name, parameter in gpt.named_parameters() if parameter.requires_grad]
    assert len(names) == 2 * 4 * 2  # two matrices for each of four layers in each of two blocks
    assert all(name.endswith((".down", ".up")) for name in names)
    with torch.no_grad():
        for parameter in gpt.parameters():
            if parameter.requires_grad:
                parameter.normal_(std=0.3)
        adapted = gpt(ids())
        lora.merge(gpt)
        assert torch.allclose(gpt(ids()), adapted, atol=1e-5)
        plain = GPT(gpt.config)
        plain.load_state_dict(gpt.state_dict())  # the names of a plain model, and no others
        assert torch.equal(plain(ids()), gpt(ids()))
    assert torch.equal(gpt.token_embedding.weight, frozen["token_embedding.weight"])
    assert not torch.equal(gpt.blocks[0].mlp.widen.weight, frozen["blocks.0.mlp.widen.weight"])
    assert all(parameter.requires_grad for parameter in gpt.parameters())


def test_the_addition_is_scaled_by_alpha_over_rank():
    linear = torch.nn.Linear(6, 5)
    adapted = lora.Adapted(linear, rank=2, alpha=8.0)
    with torch.no_grad():
        adapted.up.normal_()
    x = torch.randn(3, 6)
    assert torch.allclose(adapted(x), linear(x) + 4 * (x @ adapted.down.T @ adapted.up.T), atol=1e-6)


def test_a_classifiers_head_goes_on_learning():
    classifier = Classifier(model(), 3)
    lora.adapt(classifier, rank=2)
    assert classifier.score.weight.requires_grad
    assert not classifier.gpt.token_embedding.weight.requires_grad


def test_a_rank_no_matrix_has_is_refused():
    with pytest.raises(CutawayError, match=r"lora\.rank is 17"):
        lora.adapt(model(), rank=17)


def test_a_model_is_tuned_resumed_and_written_as_a_plain_folder(settings, tmp_path, uninterrupted, record, data):
    base = uninterrupted(settings | {"model": settings["model"] | {"context": 64}})
    tune = {
        "model": {"from": str(base)},
        "data": {"paths": [str(data / "pairs.tsv")], "cache": settings["data"]["cache"]},
        "task": {"name": "translation"},
        "lora": {"rank": 4},
        "train": {"steps": 8, "batch": 4, "learning_rate": 0.01, "checkpoint_every": 3, "sample_every": 0},
    }
    told = []
    train(Recipe.from_dict(tune), tmp_path / "whole", on_event=told.append)
    train(Recipe.from_dict(tune), tmp_path / "model", stop=lambda: True)
    train(None, tmp_path / "model", resume=True)
    assert record(tmp_path / "model") == record(tmp_path / "whole")
    [prepared] = [event for event in told if isinstance(event, Prepared)]
    assert prepared.learning < prepared.parameters / 2
    there, here = cutaway.load(base).model, cutaway.load(tmp_path / "model").model
    old = there.token_embedding.weight
    assert torch.equal(here.token_embedding.weight[: len(old)], old)
    assert torch.equal(here.final_norm.weight, there.final_norm.weight)
    assert not torch.equal(here.blocks[0].mlp.widen.weight, there.blocks[0].mlp.widen.weight)
    whole = tmp_path / "whole" / "model.safetensors"
    assert whole.read_bytes() == (tmp_path / "model" / "model.safetensors").read_bytes()
