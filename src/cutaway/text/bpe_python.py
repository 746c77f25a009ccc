"""Byte pair encoding without a library: what the first texts are encoded with.

tiktoken takes 0.3 s and 40 MB to be given GPT-2's vocabulary. The few words of a prompt are merged sooner than that, by
the vocabulary's merges, or by looking their pieces up where they lie in a packed file.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TypeVar

from cutaway.text.bpe import Engine, joined
from cutaway.text.vocabulary import spell

Part = TypeVar("Part", str, bytes)

SHORT = 1 << 14
"""So many characters are encoded here; who has more is better served by tiktoken."""
LONGEST = 200
"""Letters in a word that is merged here: twice as long takes four times as long."""

_LETTER, _NUMBER, _SPACE = "A-Za-zªµºÀ-ÖØ-öø-ɏ", "0-9²³¹¼-¾", "\t-\r \x85\xa0"
COMMON = re.compile("[\0-\u024f\u2010-\u2027]*")
"""Texts in Latin letters: of these characters it is certain which are letters, in any version of Unicode."""
WORDS = re.compile(
    rf"'(?:[sdmt]|ll|ve|re)| ?[{_LETTER}]++| ?[{_NUMBER}]++| ?[^{_SPACE}{_LETTER}{_NUMBER}]++"
    rf"|[{_SPACE}]++\Z|[{_SPACE}]+(?![^{_SPACE}])|[{_SPACE}]"
)
"""GPT-2's first cut (`cutaway.text.bpe.SPLIT`) for such texts."""

_COUNTS = struct.Struct("<II")


class TokenTable:
    """The bytes of every token by its id, and its id by its bytes, in one piece of memory.

    4 + 4 bytes     how many tokens there are, and how many of them merges make
    4 bytes each    where each token begins, and where the last one ends
    4 bytes each    the ids that merges make, in the order of their bytes
    the rest        the tokens
    """

    def __init__(self, memory: bytes | memoryview):
        self.memory = memoryview(memory)
        count, made = _COUNTS.unpack_from(self.memory)
        first = _COUNTS.size + 4 * (count + 1 + made)
        numbers = self.memory[_COUNTS.size : first].cast("I")
        self.starts, self.made, self.tokens = numbers[: count + 1], numbers[count + 1 :], self.memory[first:]

    @classmethod
    def of(cls, tokens: Sequence[bytes], made: Iterable[int]) -> TokenTable:
        """Of all tokens, by id, and those that a text can become by merges: the smaller of two ids is merged first."""
        order = sorted(made, key=tokens.__getitem__)
        numbers = [*accumulate(map(len, tokens), initial=0), *order]
        head = _COUNTS.pack(len(tokens), len(order)) + struct.pack(f"<{len(numbers)}I", *numbers)
        return cls(head + b"".join(tokens))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, token: int) -> bytes:
        if not 0 <= token < len(self):
            raise KeyError(token)
        return bytes(self.tokens[self.starts[token] : self.starts[token + 1]])

    def find(self, data: bytes) -> int | None:
        """The token that merges make of these bytes, if there is one."""
        at = bisect_left(self.made, data, key=self.__getitem__)
        return self.made[at] if at < len(self.made) and self[self.made[at]] == data else None


class ShortTexts:
    """An engine for the first texts; for any that it is not made for the full one is built, and does the work from
    then on. `merged` gives the ids of one word."""

    def __init__(
        self, merged: Callable[[bytes], list[int]], specials: Mapping[str, int], build_full: Callable[[], Engine]
    ):
        self.merged, self.specials, self._build_full = merged, specials, build_full
        self.room, self.built = SHORT, False

    @cached_property
    def full(self) -> Engine:
        self.built = True
        return self._build_full()

    def encode(self, text: str, special: bool) -> list[int]:
        if not self.built and len(text) <= self.room and COMMON.fullmatch(text):
            words = WORDS.findall(text)
            named = special and any(name in text for name in self.specials)
            if not named and all(len(word) <= LONGEST for word in words):
                self.room -= len(text)
                return joined(self.merged(word.encode()) for word in words)
        return self.full.encode(text, special)

    def encode_bytes(self, data: bytes) -> list[int]:
        return self.full.encode_bytes(data)


def merge_by_table(table: TokenTable, word: bytes) -> list[int]:
    """Of all tokens that two neighbours make, the one with the smallest id first."""
    found = table.find(word)
    if found is not None:
        return [found]
    parts = [word[i : i + 1] for i in range(len(word))]
    parts = merge(parts, lambda first, second: table.find(first + second))
    return [token for part in parts if (token := table.find(part)) is not None]


def merge_by_list(ranks: Mapping[tuple[str, str], int], tokens: Mapping[str, int], word: bytes) -> list[int]:
    """As a vocabulary's list of merges says, in its order."""
    return [tokens[part] for part in merge(list(spell(word)), lambda first, second: ranks.get((first, second)))]


def merge(parts: list[Part], rank: Callable[[Part, Part], int | None]) -> list[Part]:
    """Two neighbours become one, the two of the lowest rank first, until no two have one."""
    ranks = [rank(first, second) for first, second in pairwise(parts)]
    while (best := min((one for one in ranks if one is not None), default=None)) is not None:
        at = ranks.index(best)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
        beside = parts[max(0, at - 1) : at + 2]
        ranks[max(0, at - 1) : at + 2] = [rank(first, second) for first, second in pairwise(beside)]
    return parts
