"""The loop: it learns, and whatever interrupts it, what comes out is bit for bit what would have come out."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import cutaway
from cutaway.errors import CutawayError
from cutaway.tasks import load_task
from cutaway.tasks.answer import load_classifier
from cutaway.train import loop, state
from cutaway.train.events import Evaluated, Finished, Prepared, Sampled, Saved, Step
from cutaway.train.loop import train
from cutaway.train.metrics import read_lines
from cutaway.train.recipe import Recipe


def test_it_learns_and_tells_what_happens_and_writes_a_folder_every_verb_takes(settings, tmp_path):
    settings["train"] |= {"steps": 60, "evaluate_every": 20, "sample_every": 30}
    told = []
    report = train(Recipe.from_dict(settings), tmp_path / "model", on_event=told.append)
    steps = [event for event in told if isinstance(event, Step)]
    assert [event.step for event in steps] == list(range(1, 61))
    assert steps[-1].loss < steps[0].loss - 1.5
    assert steps[-1].tokens == 60 * 4 * 24
    assert all(event.seconds_left >= 0 and event.steps == 60 for event in steps)
    [prepared] = [event for event in told if isinstance(event, Prepared)]
    assert prepared.step == 0 and prepared.learning == prepared.parameters
    held = [(event.step, event.whole) for event in told if isinstance(event, Evaluated)]
    assert held == [(20, False), (40, False), (60, False), (60, True)]
    assert len([event for event in told if isinstance(event, Sampled)]) == 2
    assert [event.step for event in told if isinstance(event, Saved)] == list(range(5, 61, 5))
    assert told[-1] == Finished(report)
    assert report.reason == "done" and report.held_loss < steps[0].loss - 1.5

    lm = cutaway.load(tmp_path / "model")
    assert lm.generate("The fox", max_tokens=5, seed=1).text
    lines = read_lines(tmp_path / "model" / "metrics.jsonl")
    assert [line["step"] for line in lines] == list(range(1, 61))
    assert {"loss", "tokens", "tokens_per_second", "learning_rate", "gradient_norm", "time"} <= lines[0].keys()
    assert "held_loss" in lines[19] and "held_loss" not in lines[20]
    assert (tmp_path / "model" / "loss.svg").read_text().startswith("<svg")
    assert json.loads((tmp_path / "model" / "report.json").read_text())["held_loss"] == report.held_loss
    assert load_task(tmp_path / "model").name == "language"


def test_the_recipe_it_writes_down_makes_the_same_model_again(settings, tmp_path, uninterrupted, assert_same):
    first = uninterrupted(settings)
    train(Recipe.load(first / "recipe.toml"), tmp_path / "again")
    assert_same(first, tmp_path / "again")


def test_recomputing_on_the_way_back_changes_nothing(settings, tmp_path, uninterrupted, record):
    other = uninterrupted(settings | {"train": settings["train"] | {"recompute": True}})
    assert record(other) == record(uninterrupted(settings))


def test_pieces_add_up_to_the_batch(settings, tmp_path, record):
    settings["model"]["dropout"] = 0.0
    losses = []
    for at_once in (1, 2, 4):
        settings["train"] |= {"at_once": at_once}
        train(Recipe.from_dict(settings), tmp_path / str(at_once))
        losses.append([line["loss"] for line in record(tmp_path / str(at_once))])
    assert losses[0] == pytest.approx(losses[2], rel=1e-4)
    assert losses[1] == pytest.approx(losses[2], rel=1e-4)


def test_pieces_of_unequal_answers_add_up_to_the_batch(settings, tmp_path, record, settings_for):
    settings = settings_for("translation")
    settings["model"]["dropout"] = 0.0
    losses = []
    for at_once in (1, 4):
        settings["train"] |= {"at_once": at_once}
        train(Recipe.from_dict(settings), tmp_path / str(at_once))
        losses.append([line["loss"] for line in record(tmp_path / str(at_once))])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_the_loss_is_that_of_plain_cross_entropy_and_plain_adamw(settings, tmp_path, record):
    """The whole loop against twenty lines that anyone can check."""
    from cutaway.train import start
    from cutaway.train.data.batches import Batches
    from cutaway.train.distributed import Team
    from cutaway.train.model import build_model
    from cutaway.train.optimizer import learning_rate

    settings["model"]["dropout"] = 0.0
    recipe = Recipe.from_dict(settings)
    train(recipe, tmp_path / "model")
    team = Team(torch.device("cpu"))
    ready = start.set_up(recipe, team, lambda event: None)
    model, chosen = build_model(ready, team), ready.recipe.train
    matrices = [one for one in model.parameters() if one.ndim == 2]
    rest = [one for one in model.parameters() if one.ndim == 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], betas=(0.9, 0.95)
    )
    losses = []
    for step, examples in zip(range(1, 13), Batches(ready.dataset.train, 4, 24, chosen.seed), strict=False):
        ids = torch.tensor([example["ids"].tolist() for example in examples])
        loss = torch.nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, chosen)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert [line["loss"] for line in record(tmp_path / "model")] == pytest.approx(losses, rel=1e-4)


def test_the_classifier_learns_and_is_used(settings, data, tmp_path, record, settings_for):
    settings = settings_for("classification")
    settings["train"] |= {"steps": 40, "batch": 16, "at_once": 16, "evaluate_every": 10}
    settings["data"] |= {"held_out": 30}
    report = train(Recipe.from_dict(settings), tmp_path / "model")
    assert report.accuracy is not None and report.bits_per_byte is None
    assert "accuracy" in record(tmp_path / "model")[9]
    classifier = load_classifier(tmp_path / "model")
    assert set(classifier.task.labels) == {"yes", "no"}


def test_the_translator_is_written_with_its_task_and_samples_have_references(settings, tmp_path, settings_for):
    settings = settings_for("translation")
    train(Recipe.from_dict(settings), tmp_path / "model")
    assert load_task(tmp_path / "model").name == "translation"
    sample = read_lines(tmp_path / "model" / "samples.jsonl")[0]
    assert sample["reference"] == sample["reference"].upper()
    assert sample["prompt"].endswith("<|translate|>")


def test_the_best_weights_are_kept_where_asked(settings, tmp_path):
    settings["train"] |= {
        "steps": 20,
        "keep": "best",
        "evaluate_every": 2,
        "schedule": "constant",
        "learning_rate": 0.02,
    }

    worse = []
    train(Recipe.from_dict(settings), tmp_path / "probe", on_event=worse.append)
    held = {event.step: event.held_loss for event in worse if isinstance(event, Evaluated) and not event.whole}
    held = held or {event.step: event.held_loss for event in worse if isinstance(event, Evaluated)}
    report = worse[-1].report
    assert report.kept_step == min(held, key=held.get)
    kept = load_file(tmp_path / "probe" / "training" / "best" / state.TENSORS)
    written = cutaway.load(tmp_path / "probe").model
    assert torch.equal(written.token_embedding.weight, kept["weights.token_embedding.weight"])


def test_a_loss_that_is_no_number_stops_it_and_the_last_good_checkpoint_stays(settings, tmp_path, monkeypatch):
    learn = loop.Run.learn
    monkeypatch.setattr(loop.Run, "learn", lambda self, batch: learn(self, batch) if self.step < 6 else math.nan)
    with pytest.raises(
        CutawayError, match=r"The loss is nan at step 7.*checkpoint of step 5 is intact.*lower learning rate"
    ):
        train(Recipe.from_dict(settings), tmp_path / "model")
    last = state.latest(tmp_path / "model" / "training")
    assert last.name == "step-00000005"
    assert all(tensor.isfinite().all() for tensor in load_file(last / state.TENSORS).values())
    assert not list((tmp_path / "model" / "training").glob(".*"))


def test_a_gradient_that_is_no_number_stops_it_before_the_weights_change(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "clip", lambda parameters, limit: math.inf)
    with pytest.raises(CutawayError, match=r"its gradient is not a number at step 1.*Nothing had been saved yet"):
        train(Recipe.from_dict(settings), tmp_path / "model")


def test_a_full_disk_is_said_to_be_one_and_loses_nothing(settings, tmp_path, monkeypatch):
    save_file = state.save_file

    def full(tensors, path):
        if "step-00000010" in str(path):
            Path(path).write_bytes(b"half")
            raise OSError(28, "No space left on device")
        save_file(tensors, path)

    monkeypatch.setattr(state, "save_file", full)
    with pytest.raises(CutawayError, match=r"The disk is full.*needs about [\d,]+ bytes.*step 5 is intact"):
        train(Recipe.from_dict(settings), tmp_path / "model")
    monkeypatch.undo()
    assert train(None, tmp_path / "model", resume=True).reason == "done"


def test_too_little_room_is_said_before_the_first_step(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(state.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 1_000}))
    with pytest.raises(CutawayError, match=r"has 1,000 bytes left, and this training needs about"):
        train(Recipe.from_dict(settings), tmp_path / "model")


def test_a_second_training_does_not_overwrite_the_first(settings, uninterrupted, tmp_path):
    with pytest.raises(CutawayError, match=r"contains a training that has reached step 12.*--resume"):
        train(Recipe.from_dict(settings), uninterrupted(settings))
    cutaway.load(uninterrupted(settings)).save(tmp_path / "model")
    before = (tmp_path / "model" / "model.safetensors").read_bytes()
    with pytest.raises(CutawayError, match="holds a model already"):
        train(Recipe.from_dict(settings), tmp_path / "model")
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == before


def test_an_output_that_cannot_be_written_is_refused_before_any_work(settings, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CutawayError, match="is a file, and a model is written as a folder"):
        train(Recipe.from_dict(settings), tmp_path / "file")
    with pytest.raises(CutawayError, match="Nothing can be written to"):
        train(Recipe.from_dict(settings), tmp_path / "file" / "model")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("text", ["", "\n", "Hello."])
def test_data_with_nothing_in_it_is_refused(settings, tmp_path, text):
    (tmp_path / "little.txt").write_text(text)
    settings["data"] |= {"paths": [str(tmp_path / "little.txt")]}
    with pytest.raises(CutawayError, match=r"nothing in .*little\.txt|only one document"):
        train(Recipe.from_dict(settings), tmp_path / "model")


def test_data_without_enough_to_hold_out_is_trained_on_and_not_measured(settings, tmp_path):
    (tmp_path / "little.txt").write_text("The fox saw the moon again and again. " * 12)
    settings["data"] |= {"paths": [str(tmp_path / "little.txt")], "held_out": 0}
    report = train(Recipe.from_dict(settings), tmp_path / "model")
    assert report.held_loss is None
    settings["train"]["keep"] = "best"
    with pytest.raises(CutawayError, match="keep = 'best' needs regular evaluation on held-out data"):
        train(Recipe.from_dict(settings), tmp_path / "other")


def test_a_context_longer_than_the_text_is_refused(settings, tmp_path):
    settings["model"] |= {"context": 100_000}
    with pytest.raises(CutawayError, match=r"make the rows .the context. shorter"):
        train(Recipe.from_dict(settings), tmp_path / "model")


def test_going_on_from_a_model_keeps_its_words_and_adds_the_separators(settings, data, tmp_path, uninterrupted):
    base = uninterrupted(settings)
    tune = {
        "model": {"from": str(base), "dropout": 0.0},
        "data": {"paths": [str(data / "labels.tsv")], "cache": settings["data"]["cache"]},
        "task": {"name": "classification"},
        "train": {"steps": 3, "learning_rate": 1e-3, "batch": 4},
    }
    train(Recipe.from_dict(tune), tmp_path / "tuned")
    there, here = cutaway.Tokenizer.load(base), cutaway.Tokenizer.load(tmp_path / "tuned")
    assert len(here) == len(there) + 2
    assert here.end == there.end
    classifier = load_classifier(tmp_path / "tuned")
    old = cutaway.load(base).model.token_embedding.weight
    assert (classifier.model.gpt.token_embedding.weight[: len(old)] - old).abs().max() < 0.02
    assert classifier.model.gpt.config.end == there.end


def test_a_recipe_for_another_model_is_refused(settings, tmp_path, uninterrupted):
    settings["model"] = {"from": str(uninterrupted(settings)), "layers": 3}
    with pytest.raises(CutawayError, match=r"says model.layers = 3, and .* has 2: it is for another model"):
        train(Recipe.from_dict(settings), tmp_path / "model")


def test_going_on_with_the_own_task_needs_no_task_said(settings, data, tmp_path, uninterrupted, settings_for):
    base = uninterrupted(settings_for("translation"))
    tune = {
        "model": {"from": str(base)},
        "data": settings["data"],
        "train": {"steps": 2, "batch": 4},
    }
    report = train(Recipe.from_dict(tune), tmp_path / "tuned")
    assert load_task(tmp_path / "tuned").name == "translation"
    assert report.loss < 5.5  # and not the 5.7 of a new model


def test_bfloat16_is_near_float32(settings, tmp_path, uninterrupted, record):
    settings["model"]["dropout"] = 0.0
    half = settings | {"train": settings["train"] | {"precision": "bfloat16"}}
    losses = [[line["loss"] for line in record(uninterrupted(one))] for one in (settings, half)]
    assert losses[0] == pytest.approx(losses[1], rel=0.01)
    assert losses[0] != losses[1]
