"""What callers give, checked."""

from __future__ import annotations

from cutaway.decoding.sampling import is_whole
from cutaway.errors import CutawayError


def is_id(one: object) -> bool:
    """Whether this is a token's number, rather than a text; an array of one number is a text of one token."""
    return is_whole(one) or (hasattr(one, "__index__") and getattr(one, "ndim", 0) == 0)


def check_count(number: int, least: int, what: str = "predictions") -> int:
    """How many of something are asked for."""
    if not is_whole(number) or number < least:
        raise CutawayError(f"The number of {what} must be a whole number of {least} or more, not {number!r:.80}.")
    return number
