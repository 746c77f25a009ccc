"""Byte pair encoding without a library and without reading a vocabulary: what a packed file begins to write with.

tiktoken takes 0.3 s and 40 MB to be given GPT-2's vocabulary. The few words of a prompt are merged sooner than that, by
looking their pieces up where they lie in the file.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, pairwise

from cutaway.text.bpe import Engine, joined

BY_HAND = 1 << 14
"""So many characters are encoded by hand; who has more is better served by tiktoken."""

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


class ByHand:
    """An engine for the first texts; any that it is not made for wake the whole one, which then does the work."""

    def __init__(self, table: TokenTable, specials: Mapping[str, int], whole: Callable[[], Engine]):
        self.table, self.specials, self._wake = table, specials, whole
        self.room, self.awake = BY_HAND, False

    @cached_property
    def whole(self) -> Engine:
        self.awake = True
        return self._wake()

    def encode(self, text: str, special: bool) -> list[int]:
        easy = len(text) <= self.room and COMMON.fullmatch(text)
        if self.awake or not easy or (special and any(name in text for name in self.specials)):
            return self.whole.encode(text, special)
        self.room -= len(text)
        return joined(self.merged(word.encode()) for word in WORDS.findall(text))

    def encode_bytes(self, data: bytes) -> list[int]:
        return self.whole.encode_bytes(data)

    def merged(self, word: bytes) -> list[int]:
        """Two neighbours become one token, the two that make the smallest id first, until no two do."""
        whole = self.table.find(word)
        if whole is not None:
            return [whole]
        parts = [word[i : i + 1] for i in range(len(word))]
        pairs = [self.table.find(first + second) for first, second in pairwise(parts)]
        while True:
            best = min((token for token in pairs if token is not None), default=None)
            if best is None:
                return [token for part in parts if (token := self.table.find(part)) is not None]
            at = pairs.index(best)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
            beside = parts[max(0, at - 1) : at + 2]
            pairs[max(0, at - 1) : at + 2] = [self.table.find(first + second) for first, second in pairwise(beside)]
