"""What is left out is chosen, sensibly, with the reason; what was said stays as it was said."""

import re

import pytest
import torch

import cutaway
from cutaway.errors import CutawayError
from cutaway.models.architecture import count_parameters
from cutaway.models.gpt2.shape import Config
from cutaway.tasks import Classification, Language, Translation
from cutaway.train import plan
from cutaway.train.events import Prepared
from cutaway.train.loop import train
from cutaway.train.plan import Facts, context_for, make_plan, measure_on, precision_for, vocabulary_for
from cutaway.train.recipe import CHOSEN, Recipe

CPU = torch.device("cpu")


def machine(operations=1e11):
    """A machine of so many operations a second."""
    return lambda config, rows, length, precision: operations / plan.operations(config, length)


def planned(given=None, tokens=1_000_000, operations=1e11, world=1, **facts):
    recipe = Recipe.from_dict({"model": {"context": 256}, "train": {"precision": "float32"}}).but(given or {})
    facts = {"records": 1_000, "vocabulary": 2_048, "task": Language()} | facts
    return make_plan(recipe, Facts(tokens=tokens, **facts), CPU, world, machine(operations))


def size(made):
    model = made.recipe.model
    return count_parameters(
        Config(vocabulary=2_048, context=256, width=model.width, layers=model.layers, heads=model.heads)
    )


@pytest.mark.parametrize("tied", [True, False])
def test_parameters_are_counted_as_the_model_has_them(tied: bool):
    config = Config(vocabulary=300, context=20, width=32, layers=3, heads=4, mlp_width=72, tied=tied)
    assert count_parameters(config) == sum(parameter.numel() for parameter in cutaway.GPT(config).parameters())


def test_everything_is_chosen_and_each_choice_has_its_reason():
    made = planned({"train": {"steps": 500}})
    left = {key for key in CHOSEN if not made.recipe.decided(key)}
    off = {"lora.alpha", "teacher.weights", "train.time"}
    assert left == {"model.vocabulary", *off}  # start.py has chosen the first
    by_clock = planned()
    more = {key for key in CHOSEN if not by_clock.recipe.decided(key)}
    assert more - left == {"train.evaluate_every", "train.sample_every", "train.checkpoint_every"}  # the clock tells
    assert left - more == {"train.time"}
    assert planned(by_clock.recipe.to_dict()).recipe == by_clock.recipe
    assert all(choice.why and made.recipe.get(choice.key) == choice.value for choice in made.choices)
    how = made.recipe.train
    assert how.batch % how.at_once == 0
    assert 1e-4 < how.learning_rate < 3e-3
    assert planned(made.recipe.to_dict()).recipe == made.recipe  # a whole recipe is left alone


def test_more_time_and_more_data_make_a_larger_model():
    short, long = planned({"train": {"time": "2m"}}), planned({"train": {"time": "2h"}})
    assert size(short) < size(long)
    assert size(planned(tokens=10_000, operations=1e15)) < size(planned(tokens=100_000_000, operations=1e15))
    assert size(planned(operations=1e9)) < size(planned(operations=1e12))


def test_a_time_leaves_the_number_of_steps_to_the_clock_and_says_about_how_many_fit():
    made = planned({"train": {"time": "10m"}}, tokens=50_000_000)
    how, model = made.recipe.train, made.recipe.model
    config = Config(vocabulary=2_048, context=256, width=model.width, layers=model.layers, heads=model.heads)
    [why] = [choice.why for choice in made.choices if choice.key == "train.steps"]
    fit = int(re.search(r"about ([\d,]+) fit into 10m", why)[1].replace(",", ""))
    assert 0.75 * 600 < fit * how.batch * how.length * plan.operations(config, how.length) / 1e11 <= 600
    assert how.steps == round(plan.MOST_EPOCHS * 50_000_000 / how.length / how.batch)


def test_measuring_takes_little_of_a_short_time():
    def batches(time):
        return planned({"train": {"time": time}}, tokens=50_000_000, operations=1e10).recipe.train.evaluate_batches

    assert 1 == batches("10s") < batches("1h") < batches("5h") == 20
    asked = planned({"train": {"time": "10s", "evaluate_batches": 50}}, operations=1e10)
    assert asked.recipe.train.evaluate_batches == 50


def test_little_data_is_not_gone_through_without_end():
    made = planned({"train": {"time": "10h"}}, tokens=20_000)
    how = made.recipe.train
    assert how.steps * how.batch * how.length <= 20_000 * plan.MOST_EPOCHS * 1.1
    assert made.recipe.model.dropout > 0
    assert "times through the data" in next(choice.why for choice in made.choices if choice.key == "train.steps")


def test_what_was_said_is_not_chosen_and_the_rest_fits_it():
    made = planned({"model": {"width": 96, "dropout": 0.0}, "train": {"steps": 7, "batch": 6, "learning_rate": 0.5}})
    assert made.recipe.model.width == 96
    assert 96 % made.recipe.model.heads == 0
    assert made.recipe.train.steps == 7 and made.recipe.train.batch == 6 and made.recipe.train.learning_rate == 0.5
    assert made.recipe.model.dropout == 0.0
    said = {choice.key for choice in made.choices}
    assert not said & {"model.width", "train.steps", "train.batch", "train.learning_rate", "model.dropout"}
    assert planned({"train": {"evaluate_every": 0}}).recipe.train.evaluate_every == 0


def test_nothing_is_measured_where_nothing_depends_on_it():
    def never(*_):
        raise AssertionError("measured for nothing")

    for given in ({"layers": 2, "width": 32, "heads": 2}, {}):  # with so many steps not even the shape
        recipe = Recipe.from_dict({"model": {"context": 64, **given}, "train": {"steps": 5, "precision": "auto"}})
        make_plan(recipe, Facts(1_000, 10, 300, Language()), CPU, speed=never)


def test_a_batch_is_divided_between_processes():
    assert planned(world=3).recipe.train.batch % 3 == 0
    with pytest.raises(CutawayError, match=r"train\.batch is 4, which cannot be divided equally between 3"):
        planned({"train": {"batch": 4}}, world=3)


def test_tuning_takes_the_models_shape_and_smaller_steps():
    config = Config(vocabulary=2_048, context=256, width=64, layers=2, heads=2, dropout=0.1)
    made = planned(config=config, task=Classification(labels=("a", "b")), tokens=30_000)
    new = planned(task=Classification(labels=("a", "b")), tokens=30_000)
    assert not made.recipe.decided("model.layers")
    assert made.recipe.train.learning_rate < new.recipe.train.learning_rate / 2
    assert made.recipe.model.dropout == 0.1
    assert made.recipe.train.steps == round(3 * 1_000 / made.recipe.train.batch)
    assert planned({"lora": {"rank": 8}}, config=config).recipe.lora.alpha == 16


def test_a_row_longer_than_the_context_is_refused():
    with pytest.raises(CutawayError, match=r"train\.length is 512, more than the model's context of 256"):
        planned({"train": {"length": 512}})


def test_vocabulary_and_context_follow_the_data():
    sizes = [vocabulary_for(10**n) for n in range(3, 12)]
    assert sizes == sorted(sizes) and sizes[0] >= 257 and sizes[-1] <= 50_257
    assert context_for(Language(), [], 10_000_000)[0] == 256
    assert context_for(Language(), [], 500)[0] < 64
    assert context_for(Translation(), [10] * 995 + [90] * 5, 0)[0] == 96
    assert context_for(Translation(), [10] * 1_000, 0)[0] == 32
    assert context_for(Translation(), [5_000] * 10, 0)[0] == 1_024


@pytest.mark.processor
def test_the_precision_is_decided_by_what_the_processor_has_and_by_the_width_and_by_no_clock(sees, monkeypatch):
    monkeypatch.setattr(plan, "time", None)  # whoever asked a clock would fail
    fast = sees in ("avx512bf16", "amx")
    chosen = {width: precision_for(CPU, width)[0] for width in (64, 128, 320, 768)}
    assert chosen == dict.fromkeys((64, 128), "float32") | dict.fromkeys((320, 768), "bfloat16" if fast else "float32")
    for width, kind in ((64, "float32"), (320, chosen[320])):
        given = {"model": {"width": width, "layers": 2, "heads": 2}, "train": {"precision": "auto", "steps": 3}}
        made = planned(given)
        assert made.recipe.train.precision == kind
        assert "bfloat16" in next(choice.why for choice in made.choices if choice.key == "train.precision") or fast


def test_speed_is_measured_without_touching_the_dice():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    assert measure_on(CPU)(Config(vocabulary=300, context=16, width=16, layers=1, heads=1), 2, 16, "float32") > 0
    assert torch.equal(torch.rand(3), expected)


def test_one_line_is_enough(data, cache, tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "TIME", "2s")
    told = []
    recipe = Recipe.from_dict({"data": {"paths": [str(data / "text.txt")], "cache": str(cache)}})
    report = train(recipe, tmp_path / "model", on_event=told.append)
    assert report.reason == "done" and report.loss < 6
    [prepared] = [event for event in told if isinstance(event, Prepared)]
    chosen = {choice.key: choice for choice in prepared.choices}
    assert {"model.vocabulary", "model.context", "model.layers", "train.steps", "train.precision"} <= chosen.keys()
    assert cutaway.load(tmp_path / "model").generate("The", max_tokens=3, seed=0).text


def test_speed_is_measured_in_the_threads_that_will_train(monkeypatch):
    seen = []
    monkeypatch.setattr(plan, "threads_for", lambda how, width: (3, f"{how.at_once} x {how.length} x {width}"))
    monkeypatch.setattr(plan, "token_loss", watched(plan.token_loss, seen))
    plan.measure_on(CPU, 0.0)(Config(vocabulary=50, context=8, width=8, layers=1, heads=1), 2, 8, "float32")
    assert set(seen) == {3} and torch.get_num_threads() != 3


def watched(forward, seen):
    return lambda *args, **named: (seen.append(torch.get_num_threads()), forward(*args, **named))[1]
