"""Words spelled out: the rule, and the way back."""

from __future__ import annotations

import pytest

from cutaway.errors import CutawayError
from cutaway.text.spelled_words import END, FIRST_BYTE, LISTED, START, WORD, WORD_END, SpelledWords
from cutaway.text.tokenizer import Tokenizer

WORDS = SpelledWords.learn(["the cat saw the dog", "The End"], 6)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "Let's go",
        "  two  spaces\n\tand a tab ",
        "naïve 日本語 😀!",
        "…—«x»",
        "a\u00a0b",
        "3.14",
        "<W> </W> <S>",
    ],
)
def test_a_text_comes_back_as_it_was(text):
    ids = WORDS.encode(text)
    assert WORDS.decode(ids) == text
    assert WORDS.decode(WORDS.frame(ids)) == text
    stream = WORDS.stream()
    assert "".join([*map(stream.add, ids), stream.finish()]) == text


def test_bytes_that_are_no_text_come_back_too():
    assert WORDS.decode_bytes(WORDS.encode(b"ab \xff\xfe c")) == b"ab \xff\xfe c"


def test_a_word_stands_between_its_marks_and_white_space_in_none():
    spelled = [[WORD, *(FIRST_BYTE + byte for byte in word.encode()), WORD_END] for word in ("Let's", "go", "!")]
    assert WORDS.encode("Let's go!") == [*spelled[0], FIRST_BYTE + 32, *spelled[1], *spelled[2]]
    ids = WORDS.frame(WORDS.encode("Let's  go!"))
    assert [WORDS.word(ids[a:b]) for a, b in WORDS.spans(ids)] == ["<S>", "Let's", "go", "!", "</S>"]
    assert ids[0] == START
    assert ids[-1] == END


def test_the_list_has_the_most_frequent_words_in_lower_case_and_the_rest_are_unknown():
    assert WORDS.listed == (*LISTED, "the", "cat", "dog")  # of equally frequent ones the first in the alphabet
    ids = WORDS.frame(WORDS.encode("THE dog barked"))
    assert WORDS.words_of(ids) == [0, 3, 5, 2, 1]


def test_a_folder_says_that_words_are_spelled(tmp_path):
    WORDS.save(tmp_path)
    assert Tokenizer.from_folder(tmp_path).listed == WORDS.listed
    (tmp_path / "words.txt").write_text("<S>\n</S>\n<UNK>\na\na\n")
    with pytest.raises(CutawayError, match="none of them twice"):
        Tokenizer.from_folder(tmp_path)
