"""`cutaway.train.run`: training from Python, on texts and records in memory or on files, in one call."""

from __future__ import annotations

import json
import shutil

import pytest

import cutaway
from cutaway.errors import CutawayError
from cutaway.train import run, state
from cutaway.train.events import Step
from cutaway.train.loop import train
from cutaway.train.recipe import Recipe

SMALL = {
    "layers": 1, "width": 16, "heads": 2, "context": 32, "vocabulary": 300, "steps": 4, "batch": 4, "sample_every": 0,
    "precision": "float32", "learning_rate": 0.01, "evaluate_every": 2, "checkpoint_every": 2, "seed": 3,
}  # fmt: skip


@pytest.fixture
def small(cache):
    return SMALL | {"cache": cache, "held_out": 0.1}


@pytest.fixture
def texts(data):
    return [one.strip("\n") for one in (data / "text.txt").read_text().split("<|endoftext|>\n")]


def weights(folder):
    return (folder / "model.safetensors").read_bytes()


def test_texts_in_memory_train_the_model_that_the_same_texts_in_a_file_do(texts, tmp_path, small):
    report = run(tmp_path / "memory", texts=texts, **small)
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps({"text": one}) + "\n" for one in texts))
    run(tmp_path / "file", files=tmp_path / "texts.jsonl", **small)
    assert (report.reason, report.step) == ("done", 4)
    assert weights(tmp_path / "memory") == weights(tmp_path / "file")
    cutaway.load(report.folder).generate("The", max_tokens=3)


def test_an_iterator_is_read_once_and_is_as_good_as_a_list(texts, tmp_path, small):
    run(tmp_path / "list", texts=texts, **small)
    run(tmp_path / "iterator", texts=(one for one in texts), **small)
    assert weights(tmp_path / "list") == weights(tmp_path / "iterator")


def test_records_are_those_of_the_task(tmp_path, small):
    records = [{"text": f"{word} {n}", "label": word} for n in range(20) for word in ("fox", "owl")]
    run(tmp_path / "judge", records=records, task="classification", **small)
    from cutaway.tasks.answer import classify, load_classifier

    [found] = classify(load_classifier(tmp_path / "judge"), ["fox 1"])
    assert set(found.probabilities) == {"fox", "owl"}


def test_the_settings_are_those_of_a_recipe(texts, tmp_path, small):
    run(tmp_path / "base", texts=texts, **small)
    settings = {key: small[key] for key in ("cache", "held_out", "batch", "sample_every", "precision")}
    run(tmp_path / "tuned", texts=texts, from_=tmp_path / "base", steps=2, lora={"rank": 2}, **settings)
    written = (tmp_path / "tuned" / "recipe.toml").read_text()
    assert "rank = 2" in written and f'from = "{tmp_path / "base"}"' in written and "steps = 2" in written


def test_stopped_and_resumed_it_goes_on_with_the_data_it_kept_even_if_the_folder_has_moved(texts, tmp_path, small):
    run(tmp_path / "whole", texts=texts, **small)
    seen = []
    stop = lambda: sum(isinstance(event, Step) for event in seen) >= 1  # noqa: E731
    stopped = run(tmp_path / "model", texts=iter(texts), on_event=seen.append, stop=stop, **small)
    assert (stopped.reason, stopped.step) == ("stopped", 2)
    shutil.move(tmp_path / "model", tmp_path / "moved")
    run(tmp_path / "moved", resume=True)
    assert weights(tmp_path / "moved") == weights(tmp_path / "whole")
    longer = run(tmp_path / "moved", texts=texts, resume=True, steps=6)  # the same texts may be given again
    assert longer.step == 6


def test_other_texts_are_refused_when_it_is_resumed_and_its_own_are_kept(texts, tmp_path, small):
    run(tmp_path / "model", texts=texts, **small)
    kept = (tmp_path / "model" / "training" / "records.jsonl").read_bytes()
    with pytest.raises(CutawayError, match="not the texts or records that this training started with"):
        run(tmp_path / "model", texts=texts[:-1], resume=True, steps=6)
    assert (tmp_path / "model" / "training" / "records.jsonl").read_bytes() == kept
    with pytest.raises(CutawayError, match="contains a training that has reached step 4"):
        run(tmp_path / "model", texts=["another"], **small)
    assert (tmp_path / "model" / "training" / "records.jsonl").read_bytes() == kept


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "exactly one of these; given: nothing"),
        ({"texts": ["a"], "files": "b"}, "given: texts and files"),
        ({"texts": "a text"}, "texts is a list of texts or an iterator over them, not str"),
        ({"texts": []}, "texts is empty"),
        ({"texts": iter(())}, "texts is empty"),
        ({"texts": [1]}, r"texts\[0\] is int, not a text"),
        ({"records": ["a"]}, r"records\[0\] is str, not a record"),
        ({"records": [{"text": {1}}]}, r"records\[0\] cannot be written down as JSON"),
        ({"texts": ["a"], "stepz": 3}, "no setting 'stepz'. Did you mean 'steps'"),
        ({"texts": ["a"], "lora": 4}, "lora is a table of settings, as in a recipe"),
        ({"texts": ["a"], "data": "a.txt"}, "no setting 'data'. Files are given as files="),
        ({"texts": ["a"], "paths": ["b"]}, "Files are given as files="),
        ({"texts": ["a"], "steps": "many"}, "train.steps must be a whole number"),
        ({"texts": ["a"], "task": "translation"}, "there is no 'source'"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(tmp_path, given, said, cache):
    with pytest.raises(CutawayError, match=said):
        run(tmp_path / "model", **given)
    assert state.latest(tmp_path / "model" / "training") is None


def test_the_loop_takes_records_with_a_recipe(texts, tmp_path, settings):
    del settings["data"]["paths"]
    train(Recipe.from_dict(settings), tmp_path / "model", records=[{"text": one} for one in texts])
    assert cutaway.load(tmp_path / "model").config.width == 16


def talk(number):
    asked = [{"role": "user", "content": f"fox {number}"}, {"role": "assistant", "content": f"owl {number}"}]
    return {"messages": [*asked, {"role": "user", "content": "and then"}, {"role": "assistant", "content": "moon"}]}


@pytest.mark.parametrize("workers", [1, 2])
def test_of_conversations_only_what_the_assistant_says_is_a_target(tmp_path, workers):
    from cutaway.tasks import Chat
    from cutaway.tasks.token_loss import IGNORED
    from cutaway.text.tokenizer import Tokenizer
    from cutaway.train.data.batches import Batches, once
    from cutaway.train.data.shards import prepare

    (tmp_path / "talks.jsonl").write_text("".join(json.dumps(talk(number)) + "\n" for number in range(30)))
    tokenizer = Tokenizer.load("gpt2").with_specials(Chat.specials)
    data = prepare([tmp_path / "talks.jsonl"], tokenizer, Chat(64), tmp_path / "cache", 5, workers=workers)
    batches = Batches(data.train, 8, 64)
    for batch in map(Chat().collate, [next(batches), next(batches), *once(data.held, 2, 64)]):
        for inputs, targets in zip(*batch.tensors.values(), strict=True):
            said = tokenizer.decode([int(one) for one in targets if one != IGNORED])
            number = tokenizer.decode([int(one) for one in inputs]).split("fox ")[1].split("<")[0]
            assert said == f"owl {number}<|endoftext|>moon<|endoftext|>"
        assert batch.count == int((batch.tensors["targets"] != IGNORED).sum())


def test_a_model_learns_to_answer_conversations_and_prompts(tmp_path, small):
    settings = small | {
        "steps": 60,
        "batch": 8,
        "context": 64,
        "width": 32,
        "learning_rate": 0.01,
        "checkpoint_every": 50,
        "sample_every": 30,
    }
    run(tmp_path / "chat", records=[talk(number) for number in range(30)], task="chat", **settings)
    lm = cutaway.load(tmp_path / "chat")
    from cutaway.tasks import load_task

    samples = [json.loads(line) for line in (tmp_path / "chat" / "samples.jsonl").read_text().splitlines()]
    assert len(samples) == 2
    for one in samples:  # what is shown is the first question of a conversation, and its answer
        number = one["prompt"].removeprefix("<|user|>fox ").removesuffix("<|assistant|>")
        assert one["reference"] == f"owl {number}"
    asked = load_task(tmp_path / "chat").prompt({"messages": talk(7)["messages"][:3]}, lm.tokenizer)
    assert lm.generate(asked, top_k=1).text == "moon"
    assert "chat_template" in json.loads((tmp_path / "chat" / "tokenizer_config.json").read_text())
    pairs = [{"prompt": f"fox {number} ->", "completion": " owl"} for number in range(30)]
    run(tmp_path / "pairs", records=pairs, task="completion", **settings)
    assert cutaway.load(tmp_path / "pairs").generate("fox 7 ->", top_k=1).text == " owl"


def test_records_of_another_task_are_told_which(tmp_path, cache):
    with pytest.raises(CutawayError, match=r"there is no 'text'.*looks like one for the task chat"):
        run(tmp_path / "model", records=[talk(1)], cache=cache)


@pytest.mark.parametrize(
    ("wrong", "task", "said"),
    [
        ({"messages": [{"role": "user", "content": "Hi"}]}, "language", r"records\[12\]: there is no 'text'"),
        ({"text": "a fox"}, "chat", r"records\[12\]: there is no 'messages'"),
        ({"text": "a fox"}, "classification", r"records\[12\]: there is no 'label'"),
    ],
)
def test_records_for_another_task_are_refused_by_their_number_and_leave_no_folder(tmp_path, small, wrong, task, said):
    right = {
        "language": {"text": "the fox"},
        "chat": {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]},
        "classification": {"text": "the fox", "label": "fox"},
    }[task]
    with pytest.raises(CutawayError, match=rf"^{said}"):
        run(tmp_path / "new" / "model", records=[*[right] * 12, wrong], task=task, **small)
    assert not (tmp_path / "new").exists()
