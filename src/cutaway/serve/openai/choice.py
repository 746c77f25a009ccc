"""One text of an answer as it comes in: its tokens with their log-probabilities, and where each stands in the text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cutaway.serve.writer import Step, Top
from cutaway.text.tokenizer import Tokenizer

REASONS = {"end": "stop", "stop": "stop", "length": "length", "interrupted": "abort"}
"""How a text came to its end, in OpenAI's words; `abort` when the server stops."""


def token_text(tokenizer: Tokenizer, token: int) -> str:
    """A token as a text; one that is no whole character as OpenAI writes it: `bytes:\\xe2\\x80`."""
    own = tokenizer.token_bytes(token)
    try:
        return own.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in own)


@dataclass(frozen=True)
class Told:
    """A token as it is told."""

    id: int
    logprob: float | None
    top: Top
    offset: int


@dataclass
class Choice:
    """Collects one text. Tokens are let out when text of theirs is: a stream says the same as the whole answer."""

    tokenizer: Tokenizer
    index: int
    length: int = 0
    """Characters let out so far, an echoed prompt's among them."""
    text: str = ""
    reason: str = ""
    told: list[Told] = field(default_factory=list)
    count: int = 0
    """Tokens written, without the end token."""
    total: float = 0.0

    def __post_init__(self) -> None:
        self.decoder = self.tokenizer.stream()
        self.offset = self.length
        self.held: list[Told] = []

    def echo(self, ids: list[int], scores: list[tuple[float, Top]] | None) -> tuple[str, list[Told]]:
        """The prompt comes before what is written; its first token has nothing before it to be likely after."""
        text, out = self.tokenizer.decode(ids), []
        decoder = self.tokenizer.stream()
        for at, token in enumerate(ids):
            logprob, top = scores[at - 1] if scores and at else (None, [])
            out.append(Told(token, logprob, top, self.offset))
            self.offset += len(decoder.add(token))
        self.offset = self.length = len(text)
        self.text = text
        self.told += out
        return text, out

    def add(self, step: Step) -> tuple[str, list[Told]]:
        """What a step lets out: text, and tokens."""
        self.text += step.piece
        self.length += len(step.piece)
        self.reason = step.reason
        if step.token is not None and step.reason != "end":
            self.held.append(Told(step.token, step.logprob, step.top or [], self.offset))
            self.offset += len(self.decoder.add(step.token))
            self.count += 1
            self.total += step.logprob
        whole = bool(step.reason) and step.reason != "stop"
        out = [one for one in self.held if whole or one.offset < self.length]
        self.held = self.held[len(out) :]
        self.told += out
        return step.piece, out

    @property
    def mean_logprob(self) -> float:
        """By which the best of several is chosen."""
        return self.total / max(1, self.count)

    @property
    def finish_reason(self) -> str | None:
        return REASONS.get(self.reason, self.reason) or None

    def completion_logprobs(self, told: list[Told]) -> dict[str, Any]:
        """Four lists, in the form of /v1/completions."""
        spell = self.tokenizer
        tops: list[dict[str, float] | None] = []
        for one in told:
            found = {token_text(spell, token): logprob for token, logprob in one.top}
            if one.logprob is not None and one.top:
                found.setdefault(token_text(spell, one.id), one.logprob)
            tops.append(found if one.logprob is not None else None)
        return {
            "tokens": [token_text(spell, one.id) for one in told],
            "token_logprobs": [one.logprob for one in told],
            "top_logprobs": tops,
            "text_offset": [one.offset for one in told],
        }

    def chat_logprobs(self, told: list[Told]) -> dict[str, Any]:
        """One object a token, in the form of /v1/chat/completions."""

        def about(token: int, logprob: float | None) -> dict[str, Any]:
            own = self.tokenizer.token_bytes(token)
            return {"token": token_text(self.tokenizer, token), "logprob": logprob, "bytes": list(own)}

        return {
            "content": [
                {**about(one.id, one.logprob), "top_logprobs": [about(*each) for each in one.top]} for one in told
            ],
            "refusal": None,
        }
