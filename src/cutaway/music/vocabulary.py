"""The events as a vocabulary: every event one token with a name, so that whatever shows tokens shows them, too.

A model of performances is a folder like any other, with a tokenizer.json; what turns performances into its tokens is
`Events`. As text, a performance is the names of its events: `<velocity-20><on-60><wait-500><off-60>`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from cutaway.music.events import END, OFF, ON, PITCHES, SHIFT, SHIFTS, VELOCITIES, VELOCITY
from cutaway.text.tokenizer import Tokenizer
from cutaway.text.vocabulary import END as END_NAME
from cutaway.text.vocabulary import Vocabulary


def spelled(token: int) -> str:
    """The name of an event as a token."""
    if token < OFF:
        return f"<on-{token - ON}>"
    if token < SHIFT:
        return f"<off-{token - OFF}>"
    if token < VELOCITY:
        return f"<wait-{10 * (token - SHIFT + 1)}>"
    return END_NAME if token == END else f"<velocity-{token - VELOCITY + 1}>"


@cache
def event_tokenizer() -> Tokenizer:
    """The tokenizer of a model of performances."""
    count = 2 * PITCHES + SHIFTS + VELOCITIES
    words = {spelled(token): token for token in range(count)}
    plain = Vocabulary({}, [], {END_NAME: END}, END_NAME, words, source="the events of a performance")
    return Tokenizer(replace(plain, scheme=plain.document()))  # as it is read again: the same files come of both


def is_of_events(tokenizer: Tokenizer) -> bool:
    """Whether a model with this tokenizer reads and writes performances."""
    events = event_tokenizer()
    return tokenizer is events or (len(tokenizer) == len(events) and tokenizer.words == events.words)
