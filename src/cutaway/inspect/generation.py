"""A whole generation watched: what every step made on its way, and what it found in the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from cutaway.decoding.generate import generate
from cutaway.decoding.sequence import Result
from cutaway.decoding.settings import Settings
from cutaway.errors import CutawayError
from cutaway.inspect.change import KINDS, Change, check_made, replacements
from cutaway.models.architecture import places
from cutaway.models.gpt2.model import GPT
from cutaway.parts.cache import Cache
from cutaway.parts.trace import Fused, Trace
from cutaway.runtime.torch_batch import TorchRuntime, require_cached

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel, Prompt

BLANK = {"scores": float("nan"), "masked": float("-inf"), "weights": 0.0}
"""What stands where a step had no such key yet: its score was never made, and its weight is nothing."""


@dataclass(frozen=True)
class Step:
    """One reading: how many tokens were new, how many were in the cache, and the bytes it held before and after."""

    trace: Trace
    reused: int
    read: int
    bytes_before: int
    bytes_after: int


class Traced(TorchRuntime):
    """A model that is given a trace for each reading, made for so many tokens in the cache and so many new ones."""

    def __init__(self, model: GPT, begin: Callable[[int, int], Trace | None]):
        super().__init__(model)
        self.begin = begin

    def read(self, ids: Tensor, cache: Cache) -> Tensor:
        return self.traced(ids, cache, self.begin(cache.length, ids.shape[1]))

    def traced(self, ids: Tensor, cache: Cache, trace: Trace | None) -> Tensor:
        last = self.model.read(ids, cache, trace)[:, -1:]
        return self.model.score(last, trace)[:, 0]  # a trace's logits are [batch, token, vocabulary]


class Watched(Traced):
    """A model whose readings are remembered, each with its trace."""

    def __init__(self, model: GPT, begin: Callable[[int, int], Trace | None]):
        super().__init__(model, begin)
        self.steps: list[Step] = []

    def traced(self, ids: Tensor, cache: Cache, trace: Trace | None) -> Tensor:
        reused, before = cache.length, cache.nbytes
        logits = super().traced(ids, cache, trace)
        self.steps.append(Step(trace or Trace(()), reused, ids.shape[1], before, cache.nbytes))
        return logits


def under_changes(lm: LanguageModel, changes: Sequence[Change], ids: list[int], settings: Settings) -> Traced:
    """What writes after this prompt with these changes made to every token it reads and writes."""
    require_cached(lm.model)
    for change in changes:
        if not isinstance(change, Change):
            raise CutawayError(
                f"A change must be one of {', '.join(kind.__name__ for kind in KINDS.values())}: {change!r:.80}"
            )
    if settings.overflow != "stop":
        raise CutawayError("Changes are made at positions: a window that slides would move them. Use overflow='stop'.")
    tokens = max(1, len(ids))
    check_made(changes, tokens, tokens + 1)
    prompt = Fused((), replacements(lm, changes, tokens))
    after = Fused((), replacements(lm, changes, tokens, tokens, 1))
    return Traced(lm.model, lambda start, read: after if start else prompt)


@dataclass(frozen=True)
class Generation:
    """A text that was written, and the trace of each step: the prompt's, then one for each token but the last."""

    result: Result
    steps: tuple[Trace, ...]

    def whole(self, name: str) -> Tensor:
        """One intermediate of the whole text, the steps put together; of the logits, those that a token was chosen by.

        In attention a row has no keys after its own: there stands 0 as weight, -inf as masked and nan as raw score.
        """
        parts = [step[name] for step in self.steps]
        blank = BLANK.get(name.rpartition(".")[2])
        if blank is not None:
            longest = parts[-1].shape[-1]
            parts = [
                torch.nn.functional.pad(part, (0, longest - part.shape[-1]), value=blank) for part in parts
            ]  # [head, query, key]
        return torch.cat(parts, dim=-2)


def generation(
    lm: LanguageModel,
    prompt: Prompt,
    max_tokens: int | None = None,
    keep: str | Iterable[str] = "*",
    changes: Sequence[Change] = (),
    **settings: Any,
) -> Generation:
    """Continue a prompt as `lm.generate` does, with these changes, and keep what every step makes, by name."""
    patterns = [keep] if isinstance(keep, str) else list(keep)
    Trace(patterns).check(places(lm.config))
    if settings.get("overflow", "stop") != "stop":
        raise CutawayError("A traced generation cannot slide its window: earlier tokens would change their positions.")
    result, steps = watch(lm, prompt, max_tokens, patterns, changes, settings)
    return Generation(result, tuple(plain(step.trace.row(0)) for step in steps))


def plain(trace: Trace) -> Trace:
    """The trace with tensors of its own: those made while a text is written can take no part in a gradient."""
    trace.kept = {name: value.clone() for name, value in trace.kept.items()}
    return trace


def watch(
    lm: LanguageModel,
    prompt: Prompt,
    max_tokens: int | None,
    keep: list[str],
    changes: Sequence[Change],
    settings: dict[str, Any],
) -> tuple[Result, list[Step]]:
    """Generate, and give the steps beside the result."""
    chosen = lm.settings(settings, max_tokens)
    if chosen.beams or chosen.samples:
        raise CutawayError("Only one text can be traced: leave beams and samples out. Beams have a view of their own.")
    ids = lm.ids(prompt)
    length = max(1, len(ids))

    def begin(start: int, read: int) -> Trace | None:
        if not keep and not changes:
            return None  # nobody looks: the fused path
        return Trace(keep, replacements(lm, changes, length, start, read))

    watched = Watched(lm.model, begin)
    [result] = generate(watched, lm.tokenizer, [ids], chosen)
    return result, watched.steps
