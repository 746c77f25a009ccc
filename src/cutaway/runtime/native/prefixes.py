"""What was read before: keys and values of texts that have ended, so that who begins alike need not read again."""

from __future__ import annotations

from collections import OrderedDict

from cutaway.runtime.native.engine import Text

SHORTEST = 16
"""Shorter texts are read again: that costs no more than looking for them."""


class Prefixes:
    """Texts by their tokens, as many as fit into so many bytes; the one used longest ago goes first.

    Scores do not depend on how a text's tokens are cut into calls, so that what follows is the same to the bit.
    """

    def __init__(self, memory: int):
        self.memory = memory
        self.texts: OrderedDict[bytes, Text] = OrderedDict()
        self.held = 0
        self.found = 0
        """How many tokens did not have to be read."""

    def add(self, ids: list[int], text: Text) -> None:
        """Keep a text that nobody writes on, and the tokens it has read."""
        key = packed(ids)
        if len(ids) < SHORTEST or text.nbytes > self.memory:
            return
        if key in self.texts:
            self.texts.move_to_end(key)
            return
        self.texts[key] = text
        self.held += text.nbytes
        while self.held > self.memory:
            self.held -= self.texts.popitem(last=False)[1].nbytes

    def find(self, ids: list[int]) -> Text | None:
        """A text that begins as this one does, for as long as possible; the last token is always left to read."""
        key, best, longest = packed(ids[:-1]), b"", SHORTEST - 1
        for other in self.texts:
            common = common_tokens(key, other)
            if common > longest:
                best, longest = other, common
        if not best:
            return None
        self.texts.move_to_end(best)
        self.found += longest
        text = self.texts[best].fork()
        text.trim(longest)
        return text


def packed(ids: list[int]) -> bytes:
    """Ids as bytes, four each: compared and hashed at once."""
    return b"".join(token.to_bytes(4, "little") for token in ids)


def common_tokens(one: bytes, other: bytes) -> int:
    """With how many tokens both begin."""
    length = min(len(one), len(other)) // 4
    if one[: 4 * length] == other[: 4 * length]:
        return length
    low, high = 0, length  # the first `low` are the same, the first `high` are not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if one[: 4 * middle] == other[: 4 * middle] else (low, middle)
    return low
