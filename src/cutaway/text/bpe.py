"""Byte pair encoding itself: two engines that cut a text into the tokens of a vocabulary.

`ByRank` is tiktoken, the fast one. It merges the two neighbours whose joined bytes come first in the vocabulary, which
is what a list of merges says only if the list was really learned from text; `ranked` finds out. `ByRules` is the
`tokenizers` library, which follows any `tokenizer.json` to the letter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Protocol, TypeVar

from cutaway.errors import CutawayError
from cutaway.processor import cores
from cutaway.text.vocabulary import ALPHABET, Vocabulary, spell

SPLIT = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
"""GPT-2's first cut: contractions, words, numbers and signs, each with the space before it, and other white space."""
CHUNK = 1 << 18
"""Longer texts are encoded in chunks of about so many characters: tiktoken's first cut breaks down on a million spaces,
unless they end the text."""

_SPACE = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
BORDER = re.compile(f"(?<=[^{_SPACE}])(?=[{_SPACE}])|(?<=[{_SPACE}])(?=[{_SPACE}][^{_SPACE}])")
"""Where GPT-2's first cut falls whatever stands on the other side, so that the two sides can be encoded apart: before
white space, and before the last of several spaces, which belongs to the word that follows."""

_GPT2_MERGES = "04e3597d7996f292ca9b8b7285ca4d58a6ae171ac47d73fc7140ceb0c7a6bbc0"

Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    """Something that knows the ids of a text."""

    def encode(self, text: str, special: bool) -> list[int]: ...

    def encode_bytes(self, data: bytes) -> list[int]: ...


def engine(vocabulary: Vocabulary, table: Sequence[bytes]) -> Engine:
    """The fastest engine that gives exactly the ids this vocabulary's files ask for."""
    if vocabulary.scheme is None and vocabulary.complete and ranked(vocabulary.merges):
        return ByRank(vocabulary, table)
    return ByRules(vocabulary)


class ByRank:
    """tiktoken's engine, which needs no rules beyond the order of the tokens."""

    def __init__(self, vocabulary: Vocabulary, table: Sequence[bytes]):
        import tiktoken

        ids = [vocabulary.tokens[letter] for letter in ALPHABET.values()]
        merged = [vocabulary.tokens[token] for token in vocabulary.made]
        ids += merged
        in_order = all(a < b for a, b in pairwise(merged))
        ranks = {table[i]: i for i in ids} if in_order else {table[i]: rank for rank, i in enumerate(ids)}
        self.ids = None if in_order else ids  # the id of each rank, where they differ
        self.bpe = tiktoken.Encoding("cutaway", pat_str=SPLIT, mergeable_ranks=ranks, special_tokens={})
        self.specials = vocabulary.specials
        self.special = any_of(vocabulary.specials)

    def encode(self, text: str, special: bool) -> list[int]:
        if special and self.special:
            parts = self.special.split(text)  # ordinary, special, ordinary, ...
            return joined([self.specials[part]] if i % 2 else self._ordinary(part) for i, part in enumerate(parts))
        return self._ordinary(text)

    def _ordinary(self, text: str) -> list[int]:
        if len(text) <= CHUNK:
            ids = self.bpe.encode_ordinary(text)
        else:
            ids = joined(map(self.bpe.encode_ordinary, chunks(text, CHUNK)))
        return ids if self.ids is None else [self.ids[rank] for rank in ids]

    def encode_bytes(self, data: bytes) -> list[int]:
        ids = self.bpe._encode_single_piece(data) if data else []
        return ids if self.ids is None else [self.ids[rank] for rank in ids]


class ByRules:
    """The `tokenizers` library's engine, for a `tokenizer.json` of any byte-level kind."""

    def __init__(self, vocabulary: Vocabulary):
        import tokenizers

        text = json.dumps(vocabulary.document())
        try:
            self.special = tokenizers.Tokenizer.from_str(text)
            self.ordinary = tokenizers.Tokenizer.from_str(text)
        except Exception as error:  # the library raises no class of its own
            raise CutawayError(f"{vocabulary.source} is not a tokenizer that can be run: {error}.") from None
        for name, i in {**vocabulary.specials, **vocabulary.words}.items():
            if self.special.token_to_id(name) != i:
                raise CutawayError(
                    f"{vocabulary.source} gives the added token {name!r} the id {i}, but by its own rules it would "
                    f"be {self.special.token_to_id(name)}. Give it that id, or put it among the other tokens."
                )
        for each in (self.special, self.ordinary):
            each.no_truncation()
            each.no_padding()
        self.ordinary.encode_special_tokens = True  # as text, that is
        self.source = vocabulary.source
        self.any_special = any_of({**vocabulary.specials, **vocabulary.words})
        self.any_word = any_of(vocabulary.words)
        unknown = (vocabulary.scheme or {}).get("model", {}).get("unk_token")
        lacking = [byte for byte, letter in ALPHABET.items() if letter not in vocabulary.tokens]
        self.lacking = frozenset([] if unknown else lacking)

    def encode(self, text: str, special: bool) -> list[int]:
        if self.lacking:
            added = self.any_special if special else self.any_word
            self._check((added.sub("", text) if added else text).encode())
        ids: list[int] = (self.special if special else self.ordinary).encode(text, add_special_tokens=False).ids
        return ids

    def encode_bytes(self, data: bytes) -> list[int]:
        self._check(data)
        return [token.id for token in self.ordinary.model.tokenize(spell(data))]

    def _check(self, data: bytes) -> None:
        for byte in self.lacking.intersection(data):
            raise CutawayError(
                f"{self.source} has no token for the byte 0x{byte:02x}, so it cannot represent this text. "
                "Use a vocabulary that holds all 256 bytes, as GPT-2's does and every one that Cutaway trains."
            )


def any_of(names: Sequence[str] | dict[str, int]) -> re.Pattern[str] | None:
    """A pattern with one group that finds any of these texts, the longest where several begin; None for no texts."""
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile(f"({'|'.join(map(re.escape, longest_first))})") if longest_first else None


def chunks(text: str, size: int) -> Iterator[str]:
    """The text in chunks of `size` characters or a little more, which have the same tokens apart as together.

    Only a word longer than that makes a longer chunk: it is never cut.
    """
    start = 0
    while len(text) - start > size and (border := BORDER.search(text, start + size)):
        yield text[start : border.start()]
        start = border.start()
    yield text[start:]


def spread(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """The results for all items, in order, worked out on all cores; the function must leave Python's lock to others."""
    workers = min(len(items), cores())
    if workers < 2:
        return [function(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, items))


def joined(lists: Iterable[list[Item]]) -> list[Item]:
    """One list of all that is in the lists; quicker than going through them item by item."""
    whole: list[Item] = []
    for part in lists:
        whole += part
    return whole


def ranked(merges: Sequence[tuple[str, str]]) -> bool:
    """Whether joining the neighbours whose joined text is earliest in the list is the same as following the list.

    It is, if each merge makes a token of its own, and if the merges before it, let loose on that token's text, would
    leave exactly its two halves: then whoever sees two neighbours that spell a token sees these two.
    """
    import hashlib

    digest = hashlib.sha256("\n".join(map(" ".join, merges)).encode("utf-8", "surrogatepass")).hexdigest()
    return digest == _GPT2_MERGES or learned(merges)


def learned(merges: Sequence[tuple[str, str]]) -> bool:
    """`ranked`, worked out: for each merge, one walk down the two sides of the seam between its halves."""
    number = {letter: i for i, letter in enumerate(ALPHABET.values())}
    halves = [(i, i) for i in range(len(number))]
    result: dict[tuple[int, int], int] = {}
    for new, (first, second) in enumerate(merges, len(halves)):
        if first + second in number or first not in number or second not in number:
            return False
        left, right = number[first], number[second]
        number[first + second] = new
        halves.append((left, right))
        result[left, right] = new
        # Back in time: the younger of the two tokens at the seam comes apart. If the two that then meet at the seam
        # are joined by a merge older than that (or by the same one, but further left), it had joined them by then.
        limit = new
        while result.get((left, right), limit) >= limit:
            if max(left, right) < len(ALPHABET):
                break
            if left > right:
                limit, left = left, halves[left][1]
            else:
                limit, right = right + 1, halves[right][0]
        else:
            return False
    return True
