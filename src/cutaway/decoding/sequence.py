"""One text while it is being written: its tokens so far, the settings it is written by, and how it came to its end."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass, field

import numpy as np

from cutaway.codec import Codec
from cutaway.decoding.rng import Random
from cutaway.decoding.runtime import Limits, continued
from cutaway.decoding.settings import Settings


@dataclass(frozen=True)
class Result:
    """A text that has been written, and how it came to its end."""

    text: str
    """What was written, without the prompt and without the stop string that ended it; empty without a tokenizer."""
    ids: list[int]
    """The new tokens, without the end token; a stop string's tokens are among them."""
    reason: str
    """'end': the model wrote its end token. 'stop': a stop string. 'length': max_tokens, or the context is full."""
    explanation: str
    """The reason as a sentence."""
    logprobs: list[float]
    """The model's own log-probability of each new token, before temperature and the rest."""
    prompt_ids: list[int]
    seed: int | None = None
    dropped: int = 0
    """How many of the oldest tokens the sliding window has forgotten."""
    score: float | None = None
    """Beams only: the sum of log-probabilities over the length to the power of the length penalty."""


@dataclass(eq=False)
class Sequence:
    """One text. What it becomes follows from these five, and from nothing else that is written beside it."""

    prompt: list[int]
    settings: Settings
    codec: Codec[str]
    seed: int
    sample: int = 0
    score_prompt: bool = False
    """Whether a server is told the scores after every token of the prompt; changes nothing of what is written."""

    ids: list[int] = field(default_factory=list, init=False)
    logprobs: list[float] = field(default_factory=list, init=False)
    dropped: int = field(default=0, init=False)
    newest: tuple[int, float] | None = field(default=None, init=False)
    """The token chosen last, be it the end token, and the model's own log-probability of it."""
    piece: str = field(default="", init=False)
    """The text that the last token made ready to be shown."""
    reason: str = field(default="", init=False)
    explanation: str = field(default="", init=False)
    error: Exception | None = field(default=None, init=False)
    """What went wrong in choosing a token, in a logits processor for example; the reason is then 'error'."""

    def __post_init__(self) -> None:
        own = zlib.crc32(np.array(self.prompt, dtype=np.int64).tobytes())  # two prompts do not share their luck
        self.random = Random([self.seed, self.sample, own])
        self.filter = StopFilter(self.codec, self.settings.stop)
        self.window: list[int] = list(self.prompt)
        """What the model reads: the prompt and the new tokens, less what has slid out."""

    def make_room(self, limits: Limits) -> bool:
        """Before a token is chosen: end a text that may have no more of them; where it is full, let it slide.

        Gives back whether it has slid: other positions, other keys and values, so that what is left is read anew.
        """
        most, context = self.settings.max_tokens, limits.context
        self.window = self.window or [limits.end]
        if most is not None and len(self.ids) >= most:
            self.end("length", f"It has the {most:,} tokens that were asked for.")
        elif len(continued(limits, self.window)) < context:
            return False
        elif self.settings.overflow == "stop":
            self.end("length", f"The context of {context:,} tokens is full.")
        else:
            kept = context - max(1, context // 4)
            self.dropped += len(self.window) - kept
            self.window = self.window[-kept:]
            return True
        return False

    def append(self, token: int, logprob: float, end: int) -> None:
        """The next token; the end token and stop strings end the text."""
        self.newest, self.piece = (token, logprob), ""
        if token == end:
            self.end("end", "The model wrote its end token.")
            return
        self.ids.append(token)
        self.window.append(token)
        self.logprobs.append(logprob)
        self.piece = self.filter.add(token)
        if self.filter.found:
            self.end("stop", f"The stop string {self.filter.found!r} came up.")

    def end(self, reason: str, explanation: str) -> None:
        self.reason, self.explanation = reason, explanation
        self.piece += self.filter.finish()

    def interrupt(self) -> None:
        """End it here, unless it has ended."""
        if not self.reason:
            self.end("interrupted", "It was not written to its end.")

    def result(self) -> Result:
        return Result(
            text=self.filter.text, ids=self.ids, reason=self.reason, explanation=self.explanation,
            logprobs=self.logprobs, prompt_ids=self.prompt, seed=self.seed, dropped=self.dropped,
        )  # fmt: skip


def sequences(prompts: list[list[int]], codec: Codec[str], settings: Settings) -> list[Sequence]:
    """One for each prompt and sample, prompt by prompt; without a seed, all take the same new one."""
    seed = settings.seed if settings.seed is not None else int.from_bytes(os.urandom(4))
    count = settings.samples or 1
    return [Sequence(prompt, settings, codec, seed, sample) for prompt in prompts for sample in range(count)]


class StopFilter:
    """Lets text out as tokens come in: whole characters only, and nothing that may yet turn out to be a stop string."""

    def __init__(self, codec: Codec[str], stop: tuple[str, ...]):
        self.decoder, self.stop = codec.stream(), stop
        self.text, self.waiting, self.found = "", "", ""

    def add(self, token: int) -> str:
        return self.let_out(self.decoder.add(token))

    def finish(self) -> str:
        """Everything still held back: the last half character, the beginning of a stop string that never came."""
        if self.found:
            return ""
        out = self.let_out(self.decoder.finish())
        rest, self.waiting = ("" if self.found else self.waiting), ""
        self.text += rest
        return out + rest

    def let_out(self, piece: str) -> str:
        self.waiting += piece
        hits = [(at, stop) for stop in self.stop if (at := self.waiting.find(stop)) >= 0]
        if hits:
            ready, self.found = min(hits)
            out, self.waiting = self.waiting[:ready], ""
        else:
            held = max((begun(self.waiting, stop) for stop in self.stop), default=0)
            out, self.waiting = self.waiting[: len(self.waiting) - held], self.waiting[len(self.waiting) - held :]
        self.text += out
        return out


def begun(text: str, stop: str) -> int:
    """How many characters at the end of the text are the beginning of the stop string."""
    return next((n for n in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:n])), 0)
