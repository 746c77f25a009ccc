"""The two engines give the ids that the list of merges asks for, whichever is chosen."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from cutaway.text.bpe import BORDER, CHUNK, ByRank, ByRules, chunks, engine, learned, ranked
from cutaway.text.tokenizer import Tokenizer
from cutaway.text.vocabulary import ALPHABET, Vocabulary

Merges = list[tuple[str, str]]
LETTERS = "abc"
ALL_SHORT = ["".join(letters) for length in range(1, 6) for letters in product(LETTERS, repeat=length)]


def by_list(text: str, merges: Merges) -> list[str]:
    """GPT-2's own way, word for word: take the earliest merge that is possible, everywhere, until none is."""
    order = {pair: i for i, pair in enumerate(merges)}
    word = list(text)
    while len(word) > 1:
        first, second = min(pairwise(word), key=lambda pair: order.get(pair, len(order)))
        if (first, second) not in order:
            break
        done, i = [], 0
        while i < len(word):
            here = tuple(word[i : i + 2]) == (first, second)
            done.append(first + second if here else word[i])
            i += 2 if here else 1
        word = done
    return word


def by_rank(text: str, merges: Merges) -> list[str]:
    """tiktoken's way: join the neighbours whose joined text is earliest; a whole word that is a token is that token."""
    rank = {first + second: i for i, (first, second) in reversed(list(enumerate(merges)))}
    if text in rank:
        return [text]
    word = list(text)
    while len(word) > 1:
        best = min(range(len(word) - 1), key=lambda i: rank.get(word[i] + word[i + 1], len(rank)))
        if word[best] + word[best + 1] not in rank:
            break
        word[best : best + 2] = [word[best] + word[best + 1]]
    return word


@st.composite
def merge_lists(draw: st.DrawFn) -> Merges:
    """Merges in any order that makes sense, learned or not: each joins two tokens there already are, to a new one."""
    tokens, merges = list(LETTERS), []
    for _ in range(draw(st.integers(0, 8))):
        pair = (draw(st.sampled_from(tokens)), draw(st.sampled_from(tokens)))
        if "".join(pair) not in tokens and len("".join(pair)) <= 7:
            merges.append(pair)
            tokens.append("".join(pair))
    return merges


@given(merges=merge_lists())
@settings(max_examples=150, deadline=None)
def test_merges_are_ranked_exactly_when_rank_and_list_agree_on_every_text(merges: Merges) -> None:
    texts = [*ALL_SHORT, *map("".join, merges), *map("".join, product(map("".join, merges), repeat=2))]
    same = all(by_list(text, merges) == by_rank(text, merges) for text in texts)
    assert learned(merges) == same


def test_gpt2s_merges_are_ranked_and_known_to_be() -> None:
    merges = Tokenizer.load().merges
    assert learned(merges) and ranked(merges)
    assert not ranked([*merges[:-1], ("Ġ", "nothing")])


@pytest.mark.parametrize(
    "merges",
    [
        [("b", "c"), ("a", "b"), ("ab", "c")],  # abc is never reached: bc is joined first
        [("a", "b"), ("b", "c"), ("a", "bc"), ("ab", "c")],  # two ways to abc
        [("a", "b"), ("a", "b")],
        [("ab", "c"), ("a", "b")],  # the parts come later than the whole
    ],
)
def test_merges_nobody_learned_are_not_ranked(merges: Merges) -> None:
    assert not learned(merges)


def vocabulary(merges: Merges, first: int = 0, shuffled: bool = False) -> Vocabulary:
    """All bytes and these merges, the ids from `first` on or in no order, and `<|endoftext|>` at 0 or at the end."""
    names = list(dict.fromkeys([*ALPHABET.values(), *map("".join, merges)]))
    if shuffled:
        names = names[::-1]
    tokens = {name: i for i, name in enumerate(names, first)}
    return Vocabulary(tokens, merges, {"<|endoftext|>": 0 if first else len(tokens)}, "<|endoftext|>")


@given(merges=merge_lists(), text=st.text("abcab '1\n", max_size=30), first=st.booleans(), shuffled=st.booleans())
@settings(max_examples=150, deadline=None)
def test_the_ids_are_those_of_the_tokenizers_library_for_any_merges(
    merges: Merges, text: str, first: bool, shuffled: bool
) -> None:
    words = vocabulary(merges, int(first), shuffled)
    ours = engine(words, words.table())
    assert isinstance(ours, ByRank) == learned(merges)
    other = tokenizers.Tokenizer(tokenizers.models.BPE(words.tokens, merges))
    other.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    assert ours.encode(text, False) == other.encode(text).ids
    for data in (b"\xff", b"\xe2\x80ab", text.encode()):
        assert b"".join(words.table()[i] for i in ours.encode_bytes(data)) == data


@pytest.mark.parametrize("kind", [ByRank, ByRules])
@pytest.mark.parametrize("first", [0, 1])
def test_both_engines_know_special_tokens_wherever_their_id_is(kind: type, first: int) -> None:
    words = vocabulary([("a", "b")], first)
    ours = ByRank(words, words.table()) if kind is ByRank else ByRules(words)
    end, ab = words.specials["<|endoftext|>"], words.tokens["ab"]
    assert ours.encode("ab<|endoftext|>ab", True) == [ab, end, ab]
    assert end not in ours.encode("ab<|endoftext|>ab", False)


@given(text=st.text(st.sampled_from("ab1'!é中 \n\t\r\u00a0\u3000\x1c\x85"), max_size=60), size=st.integers(1, 9))
@settings(max_examples=300, deadline=None)
def test_a_text_in_pieces_has_the_tokens_of_the_whole(text: str, size: int) -> None:
    parts = list(chunks(text, size))
    assert "".join(parts) == text
    gpt2 = Tokenizer.load()
    assert [i for part in parts for i in gpt2.encode(part)] == gpt2.encode(text)


def test_no_piece_is_longer_than_it_must_be() -> None:
    parts = list(chunks("some words and more " * 100_000, CHUNK))
    assert len(parts) == 8 and max(map(len, parts)) < CHUNK + 10
    assert len(list(chunks(" " * 3 * CHUNK + "x", CHUNK))) == 2  # a word keeps its space, the others stay together
    assert list(chunks("a" * 3 * CHUNK, CHUNK)) == ["a" * 3 * CHUNK]
    assert BORDER.search("word") is None
