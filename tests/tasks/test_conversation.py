"""Prompts with completions, and conversations: which tokens there are, and which of them count."""

from __future__ import annotations

import pytest

from cutaway.errors import CutawayError
from cutaway.tasks import Chat, Completion, LeftOut
from cutaway.tasks.conversation import save_chat_template

TALK = [
    {"role": "system", "content": "the sun"},
    {"role": "user", "content": " the fox "},
    {"role": "assistant", "content": "runs"},
    {"role": "user", "content": "the dog"},
    {"role": "assistant", "content": "sleeps in the sun"},
]


def counted(example, tokenizer) -> str:
    """What counts in the loss, as text."""
    arrays = example.arrays
    flags = arrays.get("counted") or [at >= arrays["answer"][0] for at in range(len(example.ids))]
    return tokenizer.decode([one for one, counts in zip(example.ids, flags, strict=True) if counts])


def test_only_the_completion_and_its_end_count_and_no_space_is_lost(tokenizer):
    [example] = Completion().examples({"prompt": "the fox\n", "completion": " runs "}, tokenizer)
    assert tokenizer.decode(example.ids) == "the fox\n runs <|endoftext|>"
    assert counted(example, tokenizer) == " runs <|endoftext|>"
    assert example.ids[: example.arrays["answer"][0]] == Completion().prompt({"prompt": "the fox\n"}, tokenizer)


def test_an_empty_prompt_is_the_end_token(tokenizer):
    [example] = Completion().examples({"prompt": "", "completion": "the fox"}, tokenizer)
    assert example.ids == [tokenizer.end, *tokenizer.encode("the fox"), tokenizer.end]
    assert example.arrays["answer"][0] == 1


def test_a_pair_that_is_too_long_is_left_out(tokenizer):
    with pytest.raises(LeftOut, match="at most 4 fit"):
        Completion(limit=4).examples({"prompt": "the fox runs", "completion": " over the hill"}, tokenizer)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"prompt": "a"}, "'completion' is missing"),
        ({"prompt": "a", "completion": ""}, "'completion' is empty"),
        ({"prompt": 3, "completion": "a"}, "'prompt' must be text"),
    ],
)
def test_a_wrong_pair_is_refused(tokenizer, record, said):
    with pytest.raises(CutawayError, match=said):
        Completion().examples(record, tokenizer)


def test_every_answer_of_the_assistant_counts_with_its_end_and_nothing_else(tokenizer):
    [example] = Chat().examples({"messages": TALK}, tokenizer)
    assert tokenizer.decode(example.ids) == (
        "<|system|>the sun<|user|>the fox<|assistant|>runs<|endoftext|>"
        "<|user|>the dog<|assistant|>sleeps in the sun<|endoftext|>"
    )
    assert counted(example, tokenizer) == "runs<|endoftext|>sleeps in the sun<|endoftext|>"
    assert example.ids[: example.arrays["counted"].index(True)] == Chat().prompt({"messages": TALK[:2]}, tokenizer)


def test_a_weight_of_0_leaves_an_answer_out_of_the_loss_but_not_out_of_the_text(tokenizer):
    talk = [TALK[1], TALK[2] | {"weight": 0}, *TALK[3:]]
    [example] = Chat().examples({"messages": talk}, tokenizer)
    assert "<|assistant|>runs<|endoftext|>" in tokenizer.decode(example.ids)
    assert counted(example, tokenizer) == "sleeps in the sun<|endoftext|>"


def test_what_comes_after_the_last_answer_is_left_away(tokenizer):
    [example] = Chat().examples({"messages": [*TALK, {"role": "user", "content": "the hill"}]}, tokenizer)
    assert [example] == Chat().examples({"messages": TALK}, tokenizer)


def test_of_a_long_conversation_the_last_turns_are_cut_off_whole(tokenizer):
    [whole] = Chat().examples({"messages": TALK}, tokenizer)
    [cut] = Chat(limit=len(whole.ids) - 1).examples({"messages": TALK}, tokenizer)
    [short] = Chat().examples({"messages": TALK[:3]}, tokenizer)
    assert (cut.ids, cut.arrays, cut.cut) == (short.ids, short.arrays, len(whole.ids) - len(short.ids))
    with pytest.raises(LeftOut, match="first answer ends beyond"):
        Chat(limit=len(short.ids) - 1).examples({"messages": TALK}, tokenizer)


def test_content_may_come_in_parts_and_a_developer_is_the_system(tokenizer):
    parts = [{"type": "text", "text": "the "}, {"type": "text", "text": "sun"}]
    talk = [{"role": "developer", "content": parts}, *TALK[1:]]
    assert Chat().examples({"messages": talk}, tokenizer) == Chat().examples({"messages": TALK}, tokenizer)


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([], "must be a list like"),
        ("hello", "must be a list like"),
        ([{"content": "a"}], r"messages\[0\] must have a role"),
        ([{"role": "asistant", "content": "a"}], "Did you mean 'assistant'"),
        ([{"role": "user", "content": None}], "has no text in its content"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "parts that are not text"),
        ([{"role": "user", "content": "a"}], "no answer of the assistant"),
        ([{"role": "assistant", "content": "a", "weight": 0.5}], "has the weight 0.5"),
    ],
)
def test_wrong_messages_are_refused_in_a_sentence(tokenizer, messages, said):
    with pytest.raises(CutawayError, match=said):
        Chat().examples({"messages": messages}, tokenizer)


def test_transformers_makes_the_same_tokens_of_a_conversation(tokenizer, tmp_path):
    from transformers import AutoTokenizer

    tokenizer.save(tmp_path)
    save_chat_template(tmp_path)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    [whole] = Chat().examples({"messages": TALK}, tokenizer)
    assert theirs(theirs.apply_chat_template(TALK, tokenize=False))["input_ids"] == whole.ids
    asked = theirs.apply_chat_template(TALK[:2], tokenize=False, add_generation_prompt=True)
    assert theirs(asked)["input_ids"] == Chat().prompt({"messages": TALK[:2]}, tokenizer)
