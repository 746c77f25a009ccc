"""The one exception for a person's mistake. The command line prints it and leaves with code 2; a traceback is a bug."""

from __future__ import annotations

from collections.abc import Iterable


class CutawayError(Exception):
    """Says what was wrong, where, and what to do about it, in words for the person who can mend it."""


def nearest(word: str, known: Iterable[str]) -> str:
    """` Did you mean 'x'?` for the known word closest to this one, or nothing when none is close."""
    import difflib

    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" Did you mean {close[0]!r}?" if close else ""
