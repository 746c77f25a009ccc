"""What it takes to read tokens along with one, on this machine, while a text is written: what a guess must be worth."""

from __future__ import annotations

from collections import deque

MOST = 4
"""Tokens read together of which the time is kept."""
KEPT, FEW = 15, 3
"""So many times are kept of each number, the latest; of fewer nothing is concluded."""
EVERY = 4
"""After so many reads it is worked out again: a read may take no longer than a quarter of a millisecond."""
PRESUMED = 0.3
"""What a token more takes, as a part of what one alone does, before it is known: more than on most machines."""


class Cost:
    """The time of each number of tokens: a machine has other things to do, so the quicker times say what it takes."""

    def __init__(self) -> None:
        self.seconds: list[deque[float]] = [deque(maxlen=KEPT) for _ in range(MOST)]
        self.one_more, self.reads = PRESUMED, 0

    def took(self, tokens: int, seconds: float) -> None:
        if tokens > MOST:
            return
        self.seconds[tokens - 1].append(seconds)
        self.reads += 1
        if self.reads % EVERY:
            return
        alone, *more = (sorted(kept)[len(kept) // 4] if len(kept) >= FEW else None for kept in self.seconds)
        parts = [(one / alone - 1) / count for count, one in enumerate(more, 1) if one and alone]
        if parts:
            self.one_more = max(0.0, sum(parts) / len(parts))
