"""The one exception for a person's mistake. The command line prints it and leaves with code 2; a traceback is a bug."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

Code = Literal[
    "bug", "memory", "too_long", "missing", "asleep", "no_text",
    "no_folder", "a_file", "not_a_model", "a_classifier", "not_on_hub", "unreachable", "offline", "disk_full",
    "no_layer", "no_head", "no_token", "no_neuron", "not_one_token", "patch_lengths", "no_sklearn", "no_view",
    "no_single", "no_pair", "no_reference",
    "no_task", "texts_missing", "other_weights", "learn_short", "learn_long", "learn_busy", "learn_ended",
    "not_midi", "midi_damaged", "midi_empty", "midi_drums", "midi_long", "no_pianist", "no_music",
]  # fmt: skip
"""What the explorer says in the reader's language (`errors.CODE` in web/src/messages); all else it says in English."""


class CutawayError(Exception):
    """Says what was wrong, where, and what to do about it, in words for the person who can mend it.

    `code` and `values` are the same for a program that writes the sentence itself, in another language.
    """

    def __init__(self, message: str = "", code: Code | None = None, **values: str | int):
        super().__init__(message)
        self.code, self.values = code, values


def nearest(word: str, known: Iterable[str]) -> str:
    """` Did you mean 'x'?` for the known word closest to this one, or nothing when none is close."""
    import difflib

    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" Did you mean {close[0]!r}?" if close else ""
