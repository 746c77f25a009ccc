"""Translation, summary and plain text: what the model reads, and what it is asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutaway.errors import CutawayError
from cutaway.tasks import Language, LeftOut, Summary, Translation, task_from


def test_a_document_is_the_end_token_and_its_text_as_it_is(tokenizer):
    text = "  the fox\n\nruns \n"
    [example] = Language().examples({"text": text}, tokenizer)
    assert example.ids == [tokenizer.end, *tokenizer.encode(text)]
    assert not example.arrays  # all but the first id count
    assert tokenizer.decode(example.ids[1:]) == text


def test_a_pair_is_source_separator_target_end_and_only_the_target_counts(tokenizer, mark):
    task = Translation()
    [example] = task.examples({"source": " the fox runs\n", "target": "le renard court "}, tokenizer)
    source, target = tokenizer.encode("the fox runs"), tokenizer.encode("le renard court")
    assert example.ids == [*source, mark("translate"), *target, tokenizer.end]
    assert example.ids[example.arrays["answer"][0] :] == [*target, tokenizer.end]
    assert task.prompt({"source": "the fox runs"}, tokenizer) == example.ids[: example.arrays["answer"][0]]


def test_two_directions_are_learned_under_two_separators(tokenizer, mark):
    task = Translation(back="<|back|>")
    there, back = task.examples({"source": "the fox", "target": "le renard"}, tokenizer)
    one, other = tokenizer.encode("the fox"), tokenizer.encode("le renard")
    assert there.ids == [*one, mark("translate"), *other, tokenizer.end]
    assert back.ids == [*other, mark("back"), *one, tokenizer.end]
    assert back.arrays["answer"][0] == len(other) + 1
    assert task.specials == ("<|translate|>", "<|back|>")
    assert task.turned().prompt({"source": "le renard"}, tokenizer) == back.ids[: back.arrays["answer"][0]]
    assert task.turned().turned() == task
    with pytest.raises(CutawayError, match="one direction only"):
        Translation().turned()


def test_a_separator_spelled_out_in_the_text_stays_text(tokenizer, mark):
    [example] = Translation().examples({"source": "a <|translate|> b", "target": "<|endoftext|>"}, tokenizer)
    assert example.ids.count(mark("translate")) == 1
    assert example.ids.count(tokenizer.end) == 1


def test_a_pair_that_just_fits_is_used_and_one_token_more_is_left_out(tokenizer):
    record = {"source": "the fox runs", "target": "le renard court"}
    [example] = Translation().examples(record, tokenizer)
    assert Translation(limit=len(example.ids)).examples(record, tokenizer) == [example]
    with pytest.raises(LeftOut, match=f"{len(example.ids)} tokens long") as error:
        Translation(limit=len(example.ids) - 1).examples(record, tokenizer)
    assert error.value.reason == "too long"


def test_a_source_without_room_for_a_translation_is_refused(tokenizer):
    prompt = Translation().prompt({"source": "the fox runs over the hill"}, tokenizer)
    Translation(limit=len(prompt) + 1).prompt({"source": "the fox runs over the hill"}, tokenizer)
    with pytest.raises(CutawayError, match="Split it into sentences"):
        Translation(limit=len(prompt)).prompt({"source": "the fox runs over the hill"}, tokenizer)


def test_a_summary_is_article_separator_summary_end_and_only_the_summary_counts(tokenizer, mark):
    task = Summary()
    [example] = task.examples({"article": "the fox runs over the hill", "summary": "fox runs"}, tokenizer)
    article, summary = tokenizer.encode("the fox runs over the hill"), tokenizer.encode("fox runs")
    assert example.ids == [*article, mark("summarize"), *summary, tokenizer.end]
    assert example.ids[example.arrays["answer"][0] :] == [*summary, tokenizer.end]
    assert (
        task.prompt({"article": "the fox runs over the hill"}, tokenizer) == example.ids[: example.arrays["answer"][0]]
    )


@given(words=st.integers(1, 60), room=st.integers(1, 20), limit=st.integers(24, 80))
def test_a_long_article_loses_its_end_alike_in_training_and_in_use(tokenizer, words, room, limit):
    task = Summary(room=room, limit=limit)
    article, summary = " ".join(["fox"] * words), "the sun"
    [example] = task.examples({"article": article, "summary": summary}, tokenizer)
    prompt, cut = task.prompt_and_cut({"article": article}, tokenizer)
    ids = tokenizer.encode(article)
    assert len(example.ids) <= limit
    assert prompt[:-1] == ids[: len(prompt) - 1]
    assert len(prompt) - 1 + cut == len(ids)
    assert len(prompt) + room < limit or cut == 0 or len(prompt) + room + 1 == limit
    if len(tokenizer.encode(summary)) <= room:
        assert example.ids[: example.arrays["answer"][0]] == prompt
        assert example.cut == cut


def test_a_summary_longer_than_its_room_takes_it_from_the_article(tokenizer):
    task = Summary(room=1, limit=20)
    [example] = task.examples({"article": "the fox runs " * 20, "summary": "the dog sleeps"}, tokenizer)
    assert len(example.ids) == 20
    assert example.ids[example.arrays["answer"][0] : -1] == tokenizer.encode("the dog sleeps")
    with pytest.raises(LeftOut, match="must hold the article"):
        task.examples({"article": "the fox", "summary": "the fox runs over the hill and the dog sleeps"}, tokenizer)


def test_an_article_on_several_lines_is_read_as_one_where_the_task_says_so(tokenizer):
    broken, plain = {"article": "One two\n three\n\nfour."}, {"article": "One two three four."}
    assert Summary(one_line=True).prompt(broken, tokenizer) == Summary().prompt(plain, tokenizer)
    assert Summary().prompt(broken, tokenizer) != Summary().prompt(plain, tokenizer)
    learned = Summary(one_line=True).examples({**broken, "summary": "Five."}, tokenizer)
    assert learned == Summary().examples({**plain, "summary": "Five."}, tokenizer)


@pytest.mark.parametrize("given", [1, "yes", None])
def test_yes_or_no_is_neither_a_number_nor_a_text(given):
    assert task_from({"name": "summary", "one_line": True}) == Summary(one_line=True)
    with pytest.raises(CutawayError, match="one_line must be true or false"):
        task_from({"name": "summary", "one_line": given})
