"""Perplexity and bits per byte of a text, with the window and stride that gave them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cutaway.errors import CutawayError
from cutaway.evaluate.likelihood import Progress, Row, score
from cutaway.language_model import LanguageModel
from cutaway.models.architecture import UNLIMITED, context_of

WITHOUT_CONTEXT = 1_024
"""The window for a model that reads texts of any length, if none is named."""


@dataclass(frozen=True)
class Perplexity:
    """How well a model predicts a text, and how that was measured."""

    nats_per_token: float
    """The mean loss: minus the natural logarithm of a token's probability."""
    perplexity: float
    """e to that power: among how many tokens, all equally likely, the model might as well be choosing."""
    bits_per_byte: float
    """The loss in bits over the bytes of the text in UTF-8: comparable between models with different tokens."""
    tokens: int
    bytes: int
    documents: int
    window: int
    """How many tokens the model looks at, at most."""
    stride: int
    """How far apart the windows begin."""
    detokenizer: str | None = None
    """What was done to the text before the model read it; None: nothing."""
    words: int | None = None
    """How many words the text had before that, as its data set counts them."""
    word_perplexity: float | None = None
    """Perplexity over those words: what the GPT-2 paper gives for data sets that come in words."""

    @property
    def how(self) -> str:
        """In words, how the numbers were got."""
        texts = "the text" if self.documents == 1 else f"each of {self.documents:,} texts"
        least = self.window - self.stride
        look = f"from {least:,} or more before it where there are that many" if least else "from those in its window"
        parts = [
            f"{self.tokens:,} tokens, each predicted once, {look}",
            f"windows of {self.window:,} tokens, {self.stride:,} apart",
            f"{texts} begins after <|endoftext|>, and its own end is not counted",
            f"bits per byte over {self.bytes:,} bytes of UTF-8",
            f"detokenizer: {self.detokenizer or 'none'}",
        ]
        if self.words is not None:
            parts.append(f"word perplexity over {self.words:,} words of the original")
        return "; ".join(parts) + "."


def perplexity(
    lm: LanguageModel,
    text: str | Sequence[str],
    window: int | None = None,
    stride: int | None = None,
    words: int | None = None,
    detokenizer: str | None = None,
    progress: Progress | None = None,
) -> Perplexity:
    """Measure a text, or several that are unconnected. Left out, the window is the context and the stride half of it.

    `words` and `detokenizer` are for a text that was brought into another form: how many words it had, and by what.
    """
    lm.refuse_encoder("be measured by the next token")
    window, stride = windows(context_of(lm.config), window, stride)
    texts = [text] if isinstance(text, str) else list(text)
    rows = [row for one in texts for row in cut(begun(lm, one), window, stride)]
    if not rows:
        raise CutawayError("The text is empty: there is nothing to measure.")
    scores = score(lm.model, rows, progress=progress)
    nats = -math.fsum(float(one.logprobs.sum()) for one in scores)
    tokens = sum(len(one.logprobs) for one in scores)
    size = sum(len(one.encode()) for one in texts)
    return Perplexity(
        nats_per_token=nats / tokens, perplexity=power(nats / tokens), bits_per_byte=nats / math.log(2) / size,
        tokens=tokens, bytes=size, documents=len(texts), window=window, stride=stride, detokenizer=detokenizer,
        words=words, word_perplexity=power(nats / words) if words else None,
    )  # fmt: skip


def windows(context: int, window: int | None, stride: int | None) -> tuple[int, int]:
    """The window and the stride to use, refused if the model cannot."""
    if window is None:
        window = WITHOUT_CONTEXT if context == UNLIMITED else context
    if not 2 <= window <= context:
        bounds = "2 or more tokens" if context == UNLIMITED else f"between 2 and the model's {context:,} positions"
        raise CutawayError(f"The window must be {bounds}, not {window:,}.")
    stride = window // 2 if stride is None else stride
    if not 1 <= stride <= window:
        raise CutawayError(f"The stride must be between 1 and the window of {window:,} tokens, not {stride:,}.")
    return window, stride


def begun(lm: LanguageModel, text: str) -> list[int]:
    """The tokens of a text, with the end token in front that every text begins after."""
    return [lm.config.end, *lm.tokenizer.encode(text)]


def cut(ids: list[int], window: int, stride: int) -> Iterator[Row]:
    """Windows over the ids, `stride` apart; each scores what no earlier one did: every id but the first is scored once.

    Without overlap (a stride as long as the window) each begins with the last token of the one before, which is not
    scored again: it has something to look at.
    """
    scored = 1
    for first in range(0, len(ids), stride):
        end = min(first + window, len(ids))
        first = min(first, scored - 1)
        if end > scored:
            yield Row(ids[first:end], start=scored - first)
            scored = end
        if end == len(ids):
            return


def power(nats: float) -> float:
    """e to the power of a loss; infinite where that is too large for a number."""
    return math.exp(nats) if nats < 700 else math.inf
