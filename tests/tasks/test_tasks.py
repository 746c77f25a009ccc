"""What holds for every task, and how tasks are described, saved and loaded."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from cutaway.errors import CutawayError
from cutaway.tasks import TASKS, Language, LeftOut, Translation, load_task, save_task, task_from


def counted(task, examples) -> int:
    """How many losses there are in these examples."""
    stored = [{"ids": one.ids, **one.arrays} for one in examples]
    return task.collate([{name: np.array(value) for name, value in one.items()} for one in stored]).count


def test_a_task_gives_as_many_examples_with_as_many_arrays_as_it_says(example_task, tokenizer):
    task, record = example_task
    examples = task.examples(record, tokenizer)
    assert len(examples) == task.rows
    for example in examples:
        assert all(0 <= token < len(tokenizer) for token in example.ids)
        assert example.cut == 0
        assert example.arrays.keys() == task.arrays.keys()
    assert (
        counted(task, examples) == 1
        if task.outputs
        else 1 <= counted(task, examples) < sum(len(example.ids) for example in examples)
    )


def test_a_record_without_a_field_is_refused_by_the_name_of_the_field(example_task, tokenizer):
    task, record = example_task
    for field in task.fields:
        lacking = {name: value for name, value in record.items() if name != field}
        with pytest.raises(CutawayError, match=f"'{field}' is missing") as error:
            task.examples(lacking, tokenizer)
        assert not isinstance(error.value, LeftOut)
        with pytest.raises(CutawayError, match=f"'{field}' is empty"):
            task.examples({**record, field: None}, tokenizer)


def test_the_nearest_field_is_offered_for_a_wrong_one(tokenizer):
    with pytest.raises(CutawayError, match="Did you mean 'soruce'"):
        Translation().examples({"soruce": "a", "target": "b"}, tokenizer)


@pytest.mark.parametrize("wrong", [3, ["a"], b"bytes"])
def test_a_field_that_is_no_text_is_refused(example_task, tokenizer, wrong):
    task, record = example_task
    field = task.fields[0]
    kind = "text" if task.name != "chat" else "a list" if wrong != ["a"] else None
    with pytest.raises(CutawayError, match=f"'{field}' must be {kind}" if kind else r"messages\[0\] must have a role"):
        task.examples({**record, field: wrong}, tokenizer)


def test_an_empty_answer_is_an_error_but_an_empty_document_is_left_out(tokenizer):
    with pytest.raises(CutawayError, match="'target' is empty"):
        Translation().examples({"source": "the fox", "target": " \n"}, tokenizer)
    with pytest.raises(LeftOut) as error:
        Language().examples({"text": " \n"}, tokenizer)
    assert error.value.reason == "empty"


def test_no_example_is_longer_than_the_limit_whatever_the_record(example_task, tokenizer):
    task, record = example_task
    if task.name == "language":
        assert task.within(8) is task
        return
    used = left_out = 0
    for limit in range(6, 90):
        try:
            small = task_from({**task.settings(), **({"room": 2} if task.name == "summary" else {})}).within(limit)
            examples = small.examples(record, tokenizer)
        except LeftOut as error:
            assert error.reason == "too long"
            left_out += 1
            continue
        used += 1
        whole = task.examples(record, tokenizer)
        for example, before in zip(examples, whole, strict=True):
            assert len(example.ids) <= limit
            assert len(example.ids) + example.cut == len(before.ids)
        assert counted(task, examples) == counted(task, whole)  # the answer is never cut
    assert used
    assert left_out if task.name in ("completion", "chat", "translation", "choice", "summary") else not left_out


def test_settings_make_the_same_task_again(example_task, tmp_path):
    task, _ = example_task
    assert task_from(json.loads(json.dumps(task.settings()))) == task
    save_task(task.within(100), tmp_path)
    assert load_task(tmp_path) == task.within(100)
    assert [path.name for path in tmp_path.iterdir()] == ["task.json"]


def test_within_never_makes_a_limit_larger():
    assert Translation(limit=20).within(64).limit == 20
    assert Translation(limit=64).within(20).limit == 20
    assert Translation().within(64).limit == 64


def test_a_folder_without_a_task_holds_a_language_model(tmp_path):
    assert load_task(tmp_path) == Language()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "translate"}, "no task 'translate'.*Did you mean 'translation'"),
        ({}, "no task None"),
        ({"name": "translation", "seperator": "x"}, "no setting 'seperator'.*Did you mean 'separator'"),
        ({"name": "language", "limit": 3}, "no setting 'limit'. It has none"),
        ({"name": "translation", "limit": "many"}, "limit must be a whole number, not 'many'"),
        ({"name": "translation", "limit": True}, "limit must be a whole number"),
        ({"name": "translation", "separator": 4}, "separator must be text"),
        ({"name": "translation", "separator": " "}, "cannot be a separator"),
        ({"name": "summary", "separator": "<|endoftext|>"}, "cannot be a separator"),
        ({"name": "translation", "back": "<|translate|>"}, "must differ"),
        ({"name": "classification", "labels": "ab"}, "labels must be a list of texts"),
        ({"name": "classification", "labels": [0, 1]}, "labels must be a list of texts"),
        ({"name": "classification", "labels": ["a", "a"]}, "all different"),
        ({"name": "classification", "labels": ["a"]}, "two labels or more"),
        ({"name": "choice", "choices": 1}, "between two or more"),
        ({"name": "translation", "limit": 3}, "at least 4 tokens"),
        ({"name": "summary", "limit": 60}, "no room for an article"),
        ({"name": "summary", "room": 0}, "1 token or more"),
    ],
)
def test_wrong_settings_are_refused_with_a_remedy(settings, message):
    with pytest.raises(CutawayError, match=message):
        task_from(settings)


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"name": "nothing"}', "\x00"])
def test_a_broken_task_file_is_reported_with_its_path(tmp_path, content):
    (tmp_path / "task.json").write_text(content)
    with pytest.raises(CutawayError, match=r"task\.json"):
        load_task(tmp_path)


def test_a_folder_that_cannot_be_written_is_reported(tmp_path):
    with pytest.raises(CutawayError, match="cannot be written"):
        save_task(Language(), tmp_path / "nowhere")


def test_a_tokenizer_without_the_separator_is_refused():
    from cutaway.text.tokenizer import Tokenizer

    with pytest.raises(CutawayError, match=r"no <\|translate\|>.*with_specials"):
        Translation().examples({"source": "a", "target": "b"}, Tokenizer.load("gpt2"))


def test_what_is_left_out_survives_the_way_between_processes():
    error = pickle.loads(pickle.dumps(LeftOut("too bad", reason="empty")))
    assert (str(error), error.reason) == ("too bad", "empty")


def test_tasks_are_read_without_loading_torch():
    """Data is prepared in several processes: each of them imports the tasks."""
    import subprocess
    import sys

    code = "import sys, cutaway.tasks; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"


def test_every_task_of_the_design_is_there():
    assert list(TASKS) == [
        "language", "completion", "chat", "translation", "summary", "classification", "entailment", "similarity",
        "choice", "performance", "masked words", "tagging", "question answering", "both directions",
    ]  # fmt: skip
