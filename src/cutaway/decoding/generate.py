"""Writing: read the prompt, then one token at a time, each chosen from the scores the last one gave."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cutaway.codec import Codec
from cutaway.decoding.runtime import Runtime
from cutaway.decoding.scheduler import Observer, Scheduler
from cutaway.decoding.sequence import Result, sequences
from cutaway.decoding.settings import Settings


def generate(
    runtime: Runtime,
    codec: Codec[str],
    prompts: list[list[int]],
    settings: Settings,
    observer: Observer | None = None,
) -> list[Result]:
    """Continue every prompt; results in the order of the prompts, a prompt's samples side by side."""
    texts, scheduler = sequences(prompts, codec, settings), Scheduler(runtime, observer)
    for text in texts:
        scheduler.add(text)
    while scheduler.busy:
        for text in scheduler.step():
            if text.error is not None:
                raise text.error
    return [text.result() for text in texts]


@dataclass(frozen=True)
class StreamedToken:
    """A token as it is written."""

    id: int
    text: str
    """The text that it made ready: whole characters only, so that it may be empty, or more than the token's own."""
    logprob: float
    """The model's own log-probability of it, before temperature and the rest."""


class TextStream:
    """The text of one prompt piece by piece as it is written; `result` is the whole when the pieces have ended."""

    def __init__(self, runtime: Runtime, codec: Codec[str], prompt: list[int], settings: Settings):
        [self.sequence] = sequences([prompt], codec, settings)
        self.scheduler = Scheduler(runtime)
        self.scheduler.add(self.sequence)

    def __iter__(self) -> Iterator[str]:
        return (token.text for token in self.tokens() if token.text)

    def tokens(self) -> Iterator[StreamedToken]:
        """The same token by token, each with its log-probability; the last may be the end token, which no text has."""
        while not self.sequence.reason:
            self.scheduler.step()
            if self.sequence.error is not None:
                raise self.sequence.error
            if self.sequence.newest is not None:
                yield StreamedToken(self.sequence.newest[0], self.sequence.piece, self.sequence.newest[1])

    def close(self) -> None:
        """Write no more, and give back the memory that the text took."""
        self.scheduler.cancel(self.sequence)

    @property
    def result(self) -> Result:
        """What has been written; before the end its reason is 'interrupted'."""
        self.sequence.interrupt()
        return self.sequence.result()
