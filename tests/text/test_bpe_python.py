"""What is encoded by hand has the ids that tiktoken gives it."""

from __future__ import annotations

import pickle
from functools import partial

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from cutaway.text import bpe, bpe_python
from cutaway.text.bpe_python import COMMON, LONGEST, SHORT, ShortTexts, TokenTable, merge_by_table
from cutaway.text.tokenizer import Tokenizer

GPT2 = Tokenizer.load("gpt2")
CHARACTERS = [chr(code) for code in [*range(0x250), *range(0x2010, 0x2028)]]
WORDS = st.sampled_from(
    ["the", "Once", "don't", "they'll", "I'VE", "'", "  ", " ", "\n", "\r\n", "\t", "2024", "½", "é"]
)


def refuse() -> None:
    raise AssertionError("the whole engine is not needed for that")


FULL = GPT2._engine.full  # type: ignore[union-attr]
"""tiktoken, which GPT2 has from now on, too: what the others are compared with."""
MERGED = partial(merge_by_table, GPT2.table())  # type: ignore[arg-type]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(WORDS, st.text(CHARACTERS, max_size=12)), max_size=12).map("".join))
def test_a_vocabulary_just_read_gives_the_same_ids_by_its_list_of_merges(text):
    new = Tokenizer(GPT2._vocabulary)
    assert new.encode(text) == GPT2.encode(text)
    assert not new._engine.built  # type: ignore[union-attr]


def by_hand(tokenizer: Tokenizer = GPT2) -> Tokenizer:
    table = tokenizer.table()
    assert table is not None
    return Tokenizer.from_table(table, tokenizer.specials, refuse)  # type: ignore[arg-type]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(WORDS, st.text(CHARACTERS, max_size=12)), max_size=12).map("".join))
def test_any_text_in_latin_letters_has_the_ids_that_tiktoken_gives_it(text):
    assert by_hand().encode(text) == GPT2.encode(text)


@pytest.mark.parametrize("around", ["{}", "a{}a", "1{}1", " {} ", "!{}!", "\n{}\n", "'{}", "{}{}"])
def test_every_character_is_what_tiktoken_takes_it_for(around):
    hand = by_hand()
    for character in CHARACTERS:
        hand._engine.room = SHORT  # type: ignore[union-attr]
        text = around.replace("{}", character)
        assert hand.encode(text) == GPT2.encode(text), ascii(text)


def test_a_small_vocabulary_too(tiny_lm):
    text = "Once upon a time the orders were given, and zebras obeyed: 1, 2, 3."
    assert by_hand(tiny_lm.tokenizer).encode(text) == tiny_lm.tokenizer.encode(text)


@pytest.mark.parametrize("text", ["日本", "naïve Ω", "a\u2028b", "x" * (SHORT + 1), "x" * (LONGEST + 1)])
def test_other_texts_wake_the_whole_engine_which_then_does_the_work(text):
    woken = []
    engine = ShortTexts(MERGED, {}, lambda: woken.append(1) or FULL)  # type: ignore[arg-type, func-returns-value]
    assert engine.encode("Once", False) == GPT2.encode("Once") and not woken
    assert engine.encode(text, False) == GPT2.encode(text) and woken
    assert engine.encode("Once", False) == GPT2.encode("Once") and woken == [1]


def test_who_has_much_to_encode_is_given_tiktoken():
    engine = ShortTexts(MERGED, {}, lambda: FULL)  # type: ignore[arg-type]
    for _ in range(SHORT // 1_000):
        engine.encode("word " * 200, False)
    assert not engine.built
    engine.encode("word " * 200, False)
    assert engine.built


def test_special_tokens_are_text_unless_asked_for():
    text = "one<|endoftext|>two"
    assert by_hand().encode(text) == GPT2.encode(text)
    whole = Tokenizer.from_table(GPT2.table(), GPT2.specials, lambda: GPT2._vocabulary)  # type: ignore[arg-type]
    assert whole.encode(text, special=True) == GPT2.encode(text, special=True)
    assert 50_256 in whole.encode(text, special=True)


def test_a_table_knows_every_token_and_no_other():
    table = GPT2.table()
    assert table is not None and len(table) == 50_257
    again = TokenTable(bytes(table.memory))
    assert [again[i] for i in range(len(again))] == [GPT2.token_bytes(i) for i in range(50_257)]
    assert all(again.find(again[i]) == i for i in range(0, 50_256, 97))
    assert (
        again.find(b"<|endoftext|>") is None
        and again.find(b"no such token") is None
        and again.find(b"\xff\xff") is None
    )
    for wrong in (-1, 50_257):
        with pytest.raises(KeyError):
            again[wrong]


def test_a_tokenizer_by_hand_is_one_like_any_other(tmp_path):
    hand = Tokenizer.from_table(GPT2.table(), GPT2.specials, lambda: GPT2._vocabulary)  # type: ignore[arg-type]
    ids = hand.encode("naïve “quotes” – and more")
    assert hand.decode(ids) == "naïve “quotes” – and more" and len(hand) == len(GPT2) and hand.end == GPT2.end
    assert pickle.loads(pickle.dumps(hand)).encode("Once upon") == GPT2.encode("Once upon")
    assert hand.with_specials(["<|x|>"]).specials["<|x|>"] == 50_257
    assert hand.vocabulary == GPT2.vocabulary and hand.merges == GPT2.merges
    hand.save(tmp_path)
    assert Tokenizer.load(tmp_path).encode("Once") == GPT2.encode("Once")


def test_a_vocabulary_with_rules_of_its_own_has_no_table(tmp_path):
    GPT2.save(tmp_path)
    config = tmp_path / "tokenizer_config.json"
    config.write_text(config.read_text().replace('"add_prefix_space": false', '"add_prefix_space": true'))
    assert Tokenizer.load(tmp_path).table() is None


def test_words_are_cut_where_gpt2_cuts_them():
    assert COMMON.fullmatch("".join(CHARACTERS)) and not COMMON.fullmatch("\u2028") and not COMMON.fullmatch("\u0250")
    for character in CHARACTERS:
        for text in (
            f"a{character}a",
            f"1{character}1",
            f"!{character}!",
            f"\t{character}\t",
            f"  {character}  ",
            f"'{character}",
        ):
            assert bpe_python.WORDS.findall(text) == regex.findall(bpe.SPLIT, text), ascii(text)
