"""The latest few of what was made, by name: what was used longest ago goes first."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(OrderedDict[K, V]):
    """A dictionary that keeps so many entries at most."""

    def __init__(self, most: int):
        super().__init__()
        self.most = most

    def keep(self, key: K, value: V) -> V:
        """Put it in as the newest."""
        self[key] = value
        self.move_to_end(key)
        while len(self) > self.most:
            self.popitem(last=False)
        return value
