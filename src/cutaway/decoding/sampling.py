"""From logits to the next token: pure functions, each a step, and the order they are taken in.

    logits -> bias -> penalties for what was said -> the caller's own steps -> temperature -> top-k -> top-p -> min-p
           -> probabilities -> a choice

The steps mean what they mean in Hugging Face's transformers; a test compares them one by one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cutaway.errors import CutawayError

Array = npt.NDArray[Any]
"""Numbers of any type; scores are float32."""

LogitsProcessor = Callable[[list[int], Array], Array]
"""A step of the caller's own: the ids so far (prompt and text) and the logits [vocabulary] of what comes next, an array
of its own that may be changed in place -> the logits to go on with."""

NEVER = np.float32("-inf")
COLUMN = 64
"""Scores that are looked at together when the likeliest are sought."""
STRETCH = 256
"""Probabilities that are summed up together when one is drawn: first the stretch is found, then the token."""
COLDEST = 1e-7
"""Below this temperature even logits that differ in their last digit only are certain and impossible: it is greedy."""


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen. The defaults are the article's: among the forty likeliest, as the model says."""

    temperature: float = 1.0
    """Below 1 the likely becomes likelier; above 1 the list flattens. 0 is greedy: always the likeliest token."""
    top_k: int | None = 40
    """Choose among this many; 1 is greedy, None is the whole vocabulary."""
    top_p: float | None = None
    """Choose among the fewest tokens that together have this probability."""
    min_p: float | None = None
    """Choose among tokens at least this share as likely as the likeliest."""
    repetition_penalty: float = 1.0
    """Above 1: every token already in the text, prompt included, becomes less likely by this factor of its logit."""
    presence_penalty: float = 0.0
    """Taken once from the logit of every token written so far."""
    frequency_penalty: float = 0.0
    """Taken from a token's logit as often as it has been written so far."""
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    """Added to the logits of these ids; -inf forbids one."""
    logits_processors: Sequence[LogitsProcessor] = ()
    """Steps of the caller's own, after bias and penalties and before temperature; one callable, or several."""

    def __post_init__(self) -> None:
        self.check_numbers("temperature", "repetition_penalty", "presence_penalty", "frequency_penalty")
        self.check_numbers("top_p", "min_p", optional=True)
        self.check_numbers("top_k", whole=True, optional=True)
        warm = self.temperature >= 0 and math.isfinite(self.temperature)
        require("temperature", self.temperature, warm, "0 (greedy) or above")
        require(
            "top-k", self.top_k, self.top_k is None or self.top_k >= 1, "1 or more, or none for the whole vocabulary"
        )
        require("top-p", self.top_p, self.top_p is None or 0 < self.top_p <= 1, "above 0 and at most 1")
        require("min-p", self.min_p, self.min_p is None or 0 <= self.min_p <= 1, "between 0 and 1")
        penalty = self.repetition_penalty
        require("repetition penalty", penalty, penalty > 0 and math.isfinite(penalty), "above 0 (1 changes nothing)")
        for name in ("presence_penalty", "frequency_penalty"):
            require(name.replace("_", " "), getattr(self, name), math.isfinite(getattr(self, name)), "a finite number")
        require("logit bias", self.logit_bias, isinstance(self.logit_bias, Mapping), "a dict from token ids to numbers")
        for token, bias in self.logit_bias.items():
            require("token of a logit bias", repr(token), is_whole(token), "an id, a whole number")
            valid = is_number(bias) and bias < math.inf
            require(f"logit bias of token {token}", bias, valid, "a number (or -inf, to forbid the token)")
        given = self.logits_processors
        processors = (given,) if callable(given) else tuple(given) if isinstance(given, Sequence) else (given,)
        require("logits processors", repr(given), all(map(callable, processors)), "a function or a list of functions")
        object.__setattr__(self, "logits_processors", processors)

    def check_numbers(self, *names: str, whole: bool = False, optional: bool = False) -> None:
        """Refuse what is no number where one is needed."""
        rule = ("a whole number" if whole else "a number") + (" or None" if optional else "")
        for name in names:
            value = getattr(self, name)
            if not (optional and value is None):
                require(f"setting {name}", repr(value), (is_whole if whole else is_number)(value), rule)

    @property
    def greedy(self) -> bool:
        return self.top_k == 1 or self.temperature < COLDEST


def is_whole(value: object) -> bool:
    """Whether this is a whole number, Python's or numpy's."""
    return not isinstance(value, bool) and isinstance(value, int | np.integer)


def is_number(value: object) -> bool:
    return is_whole(value) or isinstance(value, float | np.floating)


def require(name: str, value: object, holds: bool, rule: str) -> None:
    """Refuse a setting that breaks its rule, in one form of words for all of them."""
    if not holds:
        raise CutawayError(f"The {name} must be {rule}, not {value}.")


def adjust(logits: Array, settings: Sampling, prompt: list[int], written: list[int]) -> Array:
    """The steps that look at ids: bias, penalties for what stands in the prompt and the text, then the caller's own.

    The logits [vocabulary] given are left as they are.
    """
    if settings.logit_bias:
        ids = np.array(list(settings.logit_bias))
        if not 0 <= ids.min() <= ids.max() < len(logits):
            raise CutawayError(f"A logit bias names a token that is not in the vocabulary of {len(logits):,}.")
        logits = logits.copy()
        logits[ids] += np.array(list(settings.logit_bias.values()), dtype=logits.dtype)
    if settings.repetition_penalty != 1:
        logits = penalize_repetition(logits, [*prompt, *written], settings.repetition_penalty)
    if settings.presence_penalty or settings.frequency_penalty:
        logits = penalize_written(logits, written, settings.presence_penalty, settings.frequency_penalty)
    if settings.logits_processors:
        logits = process(logits, [*prompt, *written], settings.logits_processors)
    return logits


def process(logits: Array, ids: list[int], processors: Sequence[LogitsProcessor]) -> Array:
    """The logits [vocabulary] after the caller's own steps, each of them checked."""
    for processor in processors:
        name = getattr(processor, "__name__", type(processor).__name__)
        made = processor(list(ids), logits.copy())
        if not isinstance(made, np.ndarray) or made.shape != logits.shape:
            what = f"an array of {list(made.shape)}" if isinstance(made, np.ndarray) else f"{made!r:.80}"
            raise CutawayError(
                f"The logits processor {name} must give back an array of {list(logits.shape)} logits, not {what}."
            )
        logits = made.astype(np.float32, copy=False)
        if not np.isfinite(highest := logits.max()):
            raise CutawayError(
                f"The logits processor {name} left nothing to choose from: its highest logit is {highest}."
            )
    return logits


def penalize_repetition(logits: Array, seen: list[int], penalty: float) -> Array:
    """Divide the positive and multiply the negative logits of tokens already seen. [vocabulary]"""
    ids, penalized = np.array(sorted(set(seen)), dtype=np.int64), logits.copy()
    found, factor = logits[ids], logits.dtype.type(penalty)
    penalized[ids] = np.where(found < 0, found * factor, found / factor)
    return penalized


def penalize_written(logits: Array, written: list[int], presence: float, frequency: float) -> Array:
    """Take `presence` once and `frequency` each time from the logits of tokens written so far. [vocabulary]"""
    counts, penalized = Counter(written), logits.copy()
    off = np.array([presence + frequency * n for n in counts.values()], dtype=logits.dtype)
    penalized[np.array(list(counts), dtype=np.int64)] -= off
    return penalized


def keep_top_k(logits: Array, k: int) -> Array:
    """Only the k highest stay possible (and those level with the last of them)."""
    last = max(0, logits.shape[-1] - k)
    lowest_kept = np.partition(logits, last, axis=-1)[..., last, None]
    return np.where(logits < lowest_kept, NEVER, logits)


def keep_top_p(logits: Array, p: float, below: float = 0.0) -> Array:
    """Only the likeliest stay, as many as it takes to reach the probability p; the likeliest one always does.

    `below` is the probability of tokens less likely than all of these, which were left out before.
    """
    kept = logits.copy()
    for row in kept.reshape(-1, kept.shape[-1]):
        ordered = np.sort(row)
        line = (below + (1 - below) * softmax(ordered).astype(np.float64).cumsum()).astype(np.float32)
        dropped = min(int(np.searchsorted(line, np.float32(1 - p), side="right")), len(row) - 1)
        lowest = ordered[dropped]
        level = dropped - int(np.searchsorted(ordered, lowest))  # of equals the first go, until so many have gone
        row[np.flatnonzero(row == lowest)[:level]] = NEVER
        row[row < lowest] = NEVER
    return kept


def keep_min_p(logits: Array, share: float) -> Array:
    """Only tokens at least `share` times as likely as the likeliest stay."""
    chances = softmax(logits)
    return np.where(chances < np.float32(share) * chances.max(axis=-1, keepdims=True), NEVER, logits)


def softmax(logits: Array) -> Array:
    """Probabilities, as float32. [..., vocabulary]"""
    with np.errstate(invalid="ignore"):  # where everything is forbidden nothing has a probability
        chances: Array = np.exp(logits - logits.max(axis=-1, keepdims=True), dtype=np.float32)
    chances /= chances.sum(axis=-1, keepdims=True, dtype=np.float64).astype(np.float32)
    return chances


def log_total(logits: Array) -> Array:
    """What is to be taken from logits to make log-probabilities of them. [..., 1]"""
    highest = logits.max(axis=-1, keepdims=True)
    total: Array = highest + np.log(np.exp(logits - highest).sum(axis=-1, keepdims=True, dtype=np.float64))
    return total


def likeliest(scores: Array, k: int) -> Array:
    """Where the k highest are, the highest first; of equals, the one of the smaller id. [..., k]"""
    k = min(k, scores.shape[-1])
    if scores.ndim == 1 and (candidates := contenders(scores, k)) is not None:
        return candidates[np.argsort(-scores[candidates], kind="stable")[:k]]
    found = np.sort(np.argpartition(scores, -k, axis=-1)[..., -k:], axis=-1)
    order = np.argsort(-np.take_along_axis(scores, found, axis=-1), axis=-1, kind="stable")
    return np.take_along_axis(found, order, axis=-1)


def contenders(scores: Array, k: int) -> Array | None:
    """The few places, in order, among which the k highest must be; None where looking for them is not worth it.

    Of columns that each have a highest, the k highest of those are k scores: nothing below all of them is wanted.
    """
    if k * COLUMN > len(scores):
        return None
    columns = scores[: len(scores) // COLUMN * COLUMN].reshape(COLUMN, -1).max(axis=0)
    found = np.flatnonzero(scores >= np.partition(columns, -k)[-k])
    return found if len(found) >= k else None  # fewer: there is something that is no number


def nucleus(logits: Array, p: float) -> tuple[Array, float]:
    """The places, in order, among which the likeliest that together have probability p must be; and what the rest has.

    What is left out has together less than half of 1 - p, the rest of the way is for a sort of those that are left.
    """
    chances, least = softmax(logits), np.float32((1 - p) / (2 * len(logits)))
    while np.dot(chances, chances < 4 * least) < (1 - p) / 2:
        least *= 4
    few = np.flatnonzero(chances >= least)
    return few, max(0.0, 1 - float(chances[few].sum(dtype=np.float64)))


def warm(logits: Array, temperature: float) -> Array:
    """The logits divided by the temperature; at 0 only the highest stays possible, of equals the first."""
    if temperature >= COLDEST:
        return logits if temperature == 1 else logits / np.float32(temperature)
    only = np.full_like(logits, NEVER)
    np.put_along_axis(only, logits.argmax(axis=-1)[..., None], np.float32(0), axis=-1)
    return only


def probabilities(logits: Array, settings: Sampling) -> Array:
    """The distribution the next token is drawn from: temperature, top-k, top-p, min-p, softmax. [..., vocabulary]"""
    return truncated(warm(logits, settings.temperature), settings)


def truncated(logits: Array, settings: Sampling, below: float = 0.0) -> Array:
    """The distribution of logits that have their temperature: top-k, top-p, min-p, softmax. [..., vocabulary]"""
    if settings.top_k is not None:
        logits = keep_top_k(logits, settings.top_k)
    if settings.top_p is not None and settings.top_p < 1:
        logits = keep_top_p(logits, settings.top_p, below)
    if settings.min_p:
        logits = keep_min_p(logits, settings.min_p)
    return softmax(logits)


def draw(chances: Array, uniform: float) -> int:
    """The token that a number in [0, 1) points at, on the line that the probabilities [vocabulary] divide."""
    line = np.add.reduceat(chances, np.arange(0, len(chances), STRETCH), dtype=np.float64).cumsum()
    point = uniform * line[-1]
    stretch = int(np.searchsorted(line, point, side="right"))
    if stretch == len(line):
        return int(chances.argmax())
    first = stretch * STRETCH
    own = chances[first : first + STRETCH]
    ends = own.cumsum(dtype=np.float64) + (line[stretch - 1] if stretch else 0)
    at = int(np.searchsorted(ends, point, side="right"))
    return first + (at if at < len(own) else int(np.flatnonzero(own)[-1]))


def choose(logits: Array, settings: Sampling, uniform: float) -> int:
    """The token that follows these logits [vocabulary]: the highest when greedy, else drawn."""
    if settings.greedy:
        return int(logits.argmax())
    logits, below = warm(logits, settings.temperature), 0.0
    few = None
    if settings.top_k is not None:
        few = contenders(logits, settings.top_k)
    elif settings.top_p is not None and settings.top_p < 1:
        few, below = nucleus(logits, settings.top_p)
    if few is not None and len(few):  # the others are out: the rest need not go through the whole vocabulary
        return int(few[draw(truncated(logits[few], settings, below), uniform)])
    return draw(truncated(logits, settings), uniform)
