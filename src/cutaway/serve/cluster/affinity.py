"""Who has read what: how requests begin, in blocks, and which replicas were sent such beginnings."""

from __future__ import annotations

import json
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

CHARACTERS, TOKENS = 64, 16
"""In a block of a text, and in one of a prompt that was given as tokens."""
MOST = 1 << 16
"""So many blocks are remembered; those not seen for longest are forgotten."""


def beginning(body: bytes) -> list[bytes]:
    """How the prompt of a request begins: a digest of its first block, one of its first two blocks, and so on.

    Requests begin alike as far as these agree. What has no prompt, and the rest after the last whole block, has none.
    """
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return []
    if not isinstance(asked, dict):
        return []
    found = asked.get("prompt", asked.get("input", asked.get("messages")))
    if isinstance(found, list) and found and isinstance(found[0], str | list):
        found = found[0]  # a batch goes where its first prompt goes
    if isinstance(found, list) and all(isinstance(one, dict) for one in found):
        found = "".join(f"{one.get('role')}\n{one.get('content')}\n" for one in found)
    size = CHARACTERS if isinstance(found, str) else TOKENS
    if not isinstance(found, str | list):
        return []
    digest, blocks = blake2b(repr(asked.get("model")).encode(), digest_size=16), []
    for start in range(0, len(found) - size + 1, size):
        digest.update(repr(found[start : start + size]).encode("utf-8", "replace"))
        blocks.append(digest.digest())
    return blocks


class Affinity:
    """Remembers which replicas were sent which beginnings."""

    def __init__(self, most: int = MOST):
        self.most = most
        self.readers: OrderedDict[bytes, set[Any]] = OrderedDict()
        self.held: Counter[Any] = Counter()
        """How many blocks each replica has read."""

    def note(self, blocks: Iterable[bytes], replica: Any) -> None:
        """This replica has read a prompt that begins like this."""
        for block in blocks:
            some = self.readers.setdefault(block, set())
            self.held[replica] += replica not in some
            some.add(replica)
            self.readers.move_to_end(block)
        while len(self.readers) > self.most:
            self.held.subtract(self.readers.popitem(last=False)[1])

    def keep(self, replicas: set[Any]) -> None:
        """Forget all replicas but these: what the others had read is gone with them."""
        self.readers = OrderedDict((block, left) for block, some in self.readers.items() if (left := some & replicas))
        self.held = Counter({one: count for one, count in self.held.items() if one in replicas})

    def matched(self, blocks: Sequence[bytes], replica: Any) -> int:
        """So many of the first blocks this replica has read."""
        for count, block in enumerate(blocks):
            if replica not in self.readers.get(block, ()):
                return count
        return len(blocks)

    def choose(self, blocks: Sequence[bytes], loads: Mapping[Any, int], spare: int) -> list[Any]:
        """The replicas, the best first, by how many requests each is answering.

        The one that has read most of the beginning, unless it has more than `spare` requests more than the least busy
        one; among those that have read as much, the least busy one, and then the one that has read least of all.
        """
        least = min(loads.values(), default=0)
        fit = {one: self.matched(blocks, one) if load <= least + spare else 0 for one, load in loads.items()}
        return sorted(loads, key=lambda one: (-fit[one], loads[one], self.held[one]))
