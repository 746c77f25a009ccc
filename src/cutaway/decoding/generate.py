"""Writing: read the prompt, then one token at a time, each chosen from the scores the last one gave.

Many texts are written at once, a row each; one that has ended leaves the batch.
What a row becomes depends only on its prompt, its seed and the settings, never on who else is in the batch.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from cutaway.decoding.batch import Machine, open_batch
from cutaway.decoding.rng import Dice
from cutaway.decoding.sampling import Array, Sampling, adjust, choose, log_total, require
from cutaway.errors import CutawayError

if TYPE_CHECKING:
    from cutaway.text.tokenizer import Tokenizer

ROWS_AT_ONCE = 32
"""How many texts share a batch; more wait for the next one."""


@dataclass(frozen=True)
class Settings(Sampling):
    """How to choose each token (see Sampling), and how much to write."""

    max_tokens: int | None = None
    """Stop after this many; None writes until the end token or the end of the context."""
    stop: tuple[str, ...] = ()
    """Stop as soon as one of these stands in the text; it is left out of the text."""
    seed: int | None = None
    """The same seed gives the same text; None takes a new one, which the result names."""
    samples: int | None = None
    """How many texts to write for each prompt."""
    overflow: str = "stop"
    """At the end of the context: 'stop', or 'slide', which forgets the oldest quarter and goes on."""
    beams: int | None = None
    """Search for the likeliest whole text, keeping this many, instead of drawing tokens (see beams.py)."""
    length_penalty: float = 1.0
    """Beams only: a text's score is its log-probability divided by its length to this power."""
    best: int | None = None
    """Beams only: how many of the texts found to give back."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_numbers("max_tokens", "seed", "samples", "beams", "best", whole=True, optional=True)
        self.check_numbers("length_penalty")
        given: object = self.stop
        stop = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list | tuple) else (given,)
        require("stop strings", repr(given), all(isinstance(one, str) for one in stop), "a text or a list of texts")
        object.__setattr__(self, "stop", stop)
        require("number of new tokens", self.max_tokens, self.max_tokens is None or self.max_tokens >= 0, "0 or more")
        require("number of samples", self.samples, self.samples is None or self.samples >= 1, "1 or more")
        require("number of beams", self.beams, self.beams is None or self.beams >= 1, "1 or more")
        require("seed", self.seed, self.seed is None or self.seed >= 0, "0 or more")
        require("overflow rule", self.overflow, self.overflow in ("stop", "slide"), "'stop' or 'slide'")
        require("stop string", repr(""), "" not in self.stop, "at least one character")
        require(
            "number of best",
            self.best,
            self.best is None or 1 <= self.best <= (self.beams or 0),
            "between 1 and the number of beams",
        )
        if self.beams and (self.samples or self.overflow == "slide"):
            raise CutawayError(
                "Beam search gives the best of one search: it takes neither samples nor a sliding window."
            )


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
class Draft:
    """One text while it is being written."""

    prompt: list[int]
    window: list[int]
    """What the model looks at now: the prompt and the new tokens, less what has slid out."""
    seed: int
    sample: int
    gate: Gate
    known: int
    """How many entries of the vocabulary are tokens."""
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    dropped: int = 0
    newest: tuple[int, float] | None = None
    """The token chosen last, be it the end token, and the model's own log-probability of it."""
    reason: str = ""
    explanation: str = ""
    piece: str = ""
    """The text that the last token made ready to be shown."""

    def __post_init__(self) -> None:
        own = zlib.crc32(np.array(self.prompt, dtype=np.int64).tobytes())  # two prompts do not share their luck
        self.dice = Dice([self.seed, self.sample, own])

    def end(self, reason: str, explanation: str) -> None:
        self.reason, self.explanation = reason, explanation
        self.piece += self.gate.finish()

    def result(self) -> Result:
        return Result(
            text=self.gate.text, ids=self.ids, reason=self.reason, explanation=self.explanation,
            logprobs=self.logprobs, prompt_ids=self.prompt, seed=self.seed, dropped=self.dropped,
        )  # fmt: skip


class Gate:
    """Lets text out as tokens come in: whole characters only, and nothing that may yet turn out to be a stop string."""

    def __init__(self, tokenizer: Tokenizer, stop: tuple[str, ...]):
        self.decoder, self.stop = tokenizer.stream(), stop
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


def drafts(prompts: list[list[int]], model: Machine, tokenizer: Tokenizer, how: Settings) -> list[Draft]:
    """One draft for each prompt and sample, prompt by prompt. An empty prompt begins at the end token, as texts do."""
    context, end = model.config.context, model.config.end
    seed = how.seed if how.seed is not None else int.from_bytes(os.urandom(4))
    for prompt in prompts:
        if len(prompt) > context and how.overflow == "stop":
            raise CutawayError(
                f"The prompt is {len(prompt):,} tokens long and this model's context is {context:,}. "
                "Shorten it, or use overflow 'slide', which drops the oldest."
            )
    return [
        Draft(prompt, list(prompt) or [end], seed, sample, gate=Gate(tokenizer, how.stop), known=len(tokenizer))
        for prompt in prompts
        for sample in range(how.samples or 1)
    ]


def write(model: Machine, texts: list[Draft], how: Settings) -> Generator[list[Draft], None, None]:
    """Write all the drafts to their ends, a token at a time; after each step gives those that changed."""
    for text in texts:
        ready(text, model, how)
    yield [text for text in texts if text.reason]
    live = [text for text in texts if not text.reason]
    if not live:
        return
    batch = open_batch(model)
    logits = batch.begin([text.window for text in live])  # [row, vocabulary]
    while True:
        add_tokens(model, live, logits, how)
        before = [len(text.window) for text in live]
        for text in live:
            ready(text, model, how)
        yield live
        stay = [row for row, text in enumerate(live) if not text.reason]
        slid = any(len(live[row].window) < before[row] for row in stay)
        if len(stay) < len(live):
            live = [live[row] for row in stay]
            if not live:
                return
            batch.keep(stay)
        # Where a window has slid: other positions, other keys and values, so that what is left is read anew.
        windows = [text.window for text in live]
        logits = batch.begin(windows) if slid else batch.step([window[-1] for window in windows])


def ready(text: Draft, model: Machine, how: Settings) -> None:
    """Before a token is chosen: end a text that may have no more of them, or make room for one."""
    context = model.config.context
    if text.reason:
        return
    if how.max_tokens is not None and len(text.ids) >= how.max_tokens:
        text.end("length", f"It has the {how.max_tokens:,} tokens that were asked for.")
    elif len(text.window) >= context and how.overflow == "stop":
        text.end("length", f"The context of {context:,} tokens is full.")
    elif len(text.window) >= context:
        keep = context - max(1, context // 4)
        text.dropped += len(text.window) - keep
        text.window = text.window[-keep:]


def add_tokens(model: Machine, texts: list[Draft], logits: Array, how: Settings) -> None:
    """Choose the next token of every text; the end token and stop strings end it.

    Some models score more entries than there are tokens: those are never chosen.
    """
    dice, end = np.array([text.dice.random() for text in texts]), model.config.end
    adjusted = adjust(logits, how, [text.prompt or [end] for text in texts], [text.ids for text in texts])
    chosen = choose(adjusted[:, : texts[0].known], how, dice)
    logprobs = np.take_along_axis(logits, chosen[:, None], axis=-1) - log_total(logits)
    for text, token, logprob in zip(texts, chosen.tolist(), logprobs[:, 0].tolist(), strict=True):
        text.newest, text.piece = (token, logprob), ""
        if token == end:
            text.end("end", "The model wrote its end token.")
            continue
        text.ids.append(token)
        text.window.append(token)
        text.logprobs.append(logprob)
        text.piece = text.gate.add(token)
        if text.gate.found:
            text.end("stop", f"The stop string {text.gate.found!r} came up.")


def generate(model: Machine, tokenizer: Tokenizer, prompts: list[list[int]], how: Settings) -> list[Result]:
    """Continue every prompt; results in the order of the prompts, a prompt's samples side by side."""
    texts = drafts(prompts, model, tokenizer, how)
    for first in range(0, len(texts), ROWS_AT_ONCE):
        for _ in write(model, texts[first : first + ROWS_AT_ONCE], how):
            pass
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

    def __init__(self, model: Machine, tokenizer: Tokenizer, prompt: list[int], how: Settings):
        [self.draft] = drafts([prompt], model, tokenizer, how)
        self.steps = write(model, [self.draft], how)

    def __iter__(self) -> Iterator[str]:
        return (token.text for token in self.tokens() if token.text)

    def tokens(self) -> Iterator[StreamedToken]:
        """The same token by token, each with its log-probability; the last may be the end token, which no text has."""
        for changed in self.steps:
            if changed and self.draft.newest is not None:
                yield StreamedToken(self.draft.newest[0], self.draft.piece, self.draft.newest[1])

    def close(self) -> None:
        """Write no more, and give back the memory that the text took."""
        self.steps.close()

    @property
    def result(self) -> Result:
        """What has been written; before the end its reason is 'interrupted'."""
        if not self.draft.reason:
            self.draft.end("interrupted", "It was not written to its end.")
        return self.draft.result()
