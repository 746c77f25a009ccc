"""What may come next."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Prediction:
    """One candidate for the next token."""

    id: int
    text: str
    probability: float
