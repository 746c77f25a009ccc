"""GPT-1's input forms, and how labels are read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutaway.errors import CutawayError
from cutaway.tasks import Choice, Classification, Entailment, LeftOut, Similarity
from cutaway.tasks.classes import cut_to_fit

LABELS = ("negative", "positive")


def test_a_text_stands_between_start_and_extract(tokenizer, mark):
    [example] = Classification(LABELS).examples({"text": " the fox runs\n", "label": "positive"}, tokenizer)
    assert example.ids == [mark("start"), *tokenizer.encode("the fox runs"), mark("extract")]
    assert example.arrays == {"label": [1]}


def test_of_a_long_text_the_end_is_cut_and_counted(tokenizer, mark):
    ids = tokenizer.encode("the fox runs over the hill")
    [example] = Classification(LABELS, limit=5).examples({"text": "the fox runs over the hill", "label": 0}, tokenizer)
    assert example.ids == [mark("start"), *ids[:3], mark("extract")]
    assert example.cut == len(ids) - 3


def test_premise_and_hypothesis_stand_around_the_delimiter(tokenizer, mark):
    record = {"premise": "the fox runs", "hypothesis": "the dog sleeps", "label": "1"}
    [example] = Entailment(LABELS).examples(record, tokenizer)
    first, second = tokenizer.encode("the fox runs"), tokenizer.encode("the dog sleeps")
    assert example.ids == [mark("start"), *first, mark("delimiter"), *second, mark("extract")]


def test_similarity_reads_both_orders(tokenizer, mark):
    record = {"first": "the fox runs", "second": "the dog", "label": "negative"}
    one, other = Similarity(LABELS).examples(record, tokenizer)
    first, second = tokenizer.encode("the fox runs"), tokenizer.encode("the dog")
    assert one.ids == [mark("start"), *first, mark("delimiter"), *second, mark("extract")]
    assert other.ids == [mark("start"), *second, mark("delimiter"), *first, mark("extract")]
    assert one.arrays == other.arrays == {"label": [0]}


def test_a_choice_reads_the_context_with_each_ending(tokenizer, mark):
    record = {"context": "the fox", "choices": ["runs", "sleeps"], "label": 1}
    examples = Choice(2).examples(record, tokenizer)
    for example, ending in zip(examples, ("runs", "sleeps"), strict=True):
        inside = [*tokenizer.encode("the fox"), mark("delimiter"), *tokenizer.encode(ending)]
        assert example.ids == [mark("start"), *inside, mark("extract")]
        assert example.arrays == {"label": [1]}


def test_a_choice_keeps_the_end_of_a_long_context(tokenizer):
    record = {"context": "the fox runs over the hill", "choices": ["in", "the sun"], "label": 0}
    context = tokenizer.encode(record["context"])
    for example, ending in zip(Choice(2, limit=9).examples(record, tokenizer), ("in", "the sun"), strict=True):
        keep = 9 - 3 - len(tokenizer.encode(ending))
        assert example.ids[1 : 1 + keep] == context[-keep:]
        assert example.cut == len(context) - keep
    with pytest.raises(LeftOut, match="A choice is"):
        Choice(2, limit=6).examples({**record, "choices": ["in", "the little dog sleeps"]}, tokenizer)


@pytest.mark.parametrize(
    ("label", "number"), [("negative", 0), ("positive", 1), (1, 1), ("1", 1), (0.0, 0), (" positive ", 1)]
)
def test_a_label_is_a_name_or_a_number(tokenizer, label, number):
    [example] = Classification(LABELS).examples({"text": "fox", "label": label}, tokenizer)
    assert example.arrays == {"label": [number]}


def test_a_name_comes_before_a_number():
    assert Classification(("1", "0")).class_of({"text": "fox", "label": "1"}) == 0


@pytest.mark.parametrize("label", ["postive", 2, "-1", "", 0.5, ["positive"]])
def test_an_unknown_label_is_refused(tokenizer, label):
    with pytest.raises(CutawayError, match=r"label"):
        Classification(LABELS).examples({"text": "fox", "label": label}, tokenizer)


def test_the_nearest_label_is_offered(tokenizer):
    with pytest.raises(CutawayError, match=r"'negative' and 'positive'\. Did you mean 'positive'"):
        Classification(LABELS).examples({"text": "fox", "label": "postive"}, tokenizer)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["b", "a", "b"], ("a", "b")),
        ([10, 9, 2], ("2", "9", "10")),
        (["0", "1", 1, 0.0], ("0", "1")),
        ([True, False], ("false", "true")),
    ],
)
def test_labels_are_learned_from_the_records_in_order(labels, expected):
    task = Classification().learn_classes({"text": "x", "label": label} for label in labels)
    assert task.labels == expected
    assert task.outputs == len(expected)
    assert Classification(LABELS).learn_classes([{"text": "x", "label": "a"}]).labels == LABELS


def test_records_of_one_class_are_refused():
    with pytest.raises(CutawayError, match="only 'a'"):
        Classification().learn_classes([{"text": "x", "label": "a"}])
    with pytest.raises(CutawayError, match="no 'label'"):
        Classification().learn_classes([])


def test_a_task_without_its_classes_says_what_is_missing(tokenizer):
    with pytest.raises(CutawayError, match=r"needs its labels, as in labels = "):
        Classification().examples({"text": "x", "label": 0}, tokenizer)
    with pytest.raises(CutawayError, match=r"as in choices = 4"):
        Choice().examples({"context": "x", "choices": ["a", "b"], "label": 0}, tokenizer)


def test_the_number_of_choices_is_learned_and_then_required(tokenizer):
    record = {"context": "x", "choices": ["a", "b", "c"], "label": 2}
    task = Choice().learn_classes([record])
    assert (task.rows, task.classes, task.outputs) == (3, 3, 1)
    with pytest.raises(CutawayError, match="has 2 choices, and all must have 3"):
        task.examples({**record, "choices": ["a", "b"]}, tokenizer)
    with pytest.raises(CutawayError, match="0 to 2, not '3'"):
        task.examples({**record, "label": 3}, tokenizer)


@pytest.mark.parametrize("choices", ["ab", 3, ["a"], ["a", ""], ["a", 4]])
def test_choices_that_are_no_list_of_texts_are_refused(tokenizer, choices):
    with pytest.raises(CutawayError, match="choices"):
        Choice(2).examples({"context": "x", "choices": choices, "label": 0}, tokenizer)


@given(one=st.integers(1, 30), other=st.integers(1, 30), limit=st.integers(5, 70))
def test_the_longer_of_two_texts_gives_first_and_both_keep_something(one, other, limit):
    first, second, cut = cut_to_fit([1] * one, [2] * other, limit)
    assert len(first) + len(second) + cut == one + other
    assert len(first) + len(second) + 3 <= limit or cut == 0
    assert cut == max(0, one + other + 3 - limit)
    assert first
    assert second
    if cut:
        assert len(first) + len(second) + 3 == limit
        assert abs(len(first) - len(second)) <= max(1, abs(one - other) - cut)
