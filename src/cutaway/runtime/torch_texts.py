"""Several texts read side by side by torch, each given back without its padding."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor

from cutaway.decoding.scheduler import ROWS_AT_ONCE
from cutaway.models.architecture import Place, cached, places
from cutaway.models.gpt2.model import GPT
from cutaway.parts.trace import EarlyTrace, Trace

TOKENS_AT_ONCE = 8_192
"""How many tokens, padding among them, are read together."""


def halves(model: GPT) -> tuple[Callable[..., Tensor], Callable[[Tensor], Tensor]]:
    """`read` and `score`: what the second makes of what the first gives are the logits.

    Of a model that declares no halves (`Cached`) the first does it all.
    """
    return (model.read, model.score) if cached(model) else (model, lambda logits: logits)


def read_texts(model: GPT, texts: list[list[int]]) -> list[Tensor]:
    """What the first half of the model gives for each text: the vectors that leave the final norm, [tokens, width].

    An empty text is the end token.
    """
    found: dict[int, Tensor] = {}
    read, _ = halves(model)
    for numbers, ids, padding in batches(model, texts):
        vectors = read(ids) if padding is None else read(ids, padding=padding)
        for row, number in enumerate(numbers):
            found[number] = vectors[row, ids.shape[1] - max(1, len(texts[number])) :]
    return [found[number] for number in range(len(texts))]


@torch.inference_mode(False)  # plain tensors, whoever asks
def trace_texts(model: GPT, texts: list[list[int]], keep: str | Iterable[str]) -> list[Trace]:
    """What each text makes on its way, as a trace of it alone would have it."""
    keep = [keep] if isinstance(keep, str) else list(keep)
    known = places(model.config)
    Trace(keep).check(known)
    found: dict[int, Trace] = {}
    for numbers, ids, padding in batches(model, texts):
        trace = EarlyTrace(known, keep)
        padded = {} if padding is None else {"padding": padding}
        trace.follow(functools.partial(model, ids, trace=trace, **padded))
        for row, number in enumerate(numbers):
            found[number] = single = Trace(keep)
            single.single = True
            blank = ids.shape[1] - max(1, len(texts[number]))
            single.kept = {name: without_padding(known[name], value, row, blank) for name, value in trace.kept.items()}
    return [found[number] for number in range(len(texts))]


def without_padding(place: Place, value: Tensor, row: int, blank: int) -> Tensor:
    """One text's share of an intermediate; a copy, so that the others' can be forgotten."""
    own = value[row if len(value) > 1 else 0]  # positions are there once, where no row is padded
    return (own[..., blank:, blank:] if place.axes[-1] == "key" else own[..., blank:, :]).clone()


def batches(model: GPT, texts: list[list[int]]) -> Iterator[tuple[list[int], Tensor, Tensor | None]]:
    """Texts of like length together: their numbers, their ids flush right, and how much of each row is padding.

    A model that does not declare that it knows padding (`Cached`) is given texts of equal length only.
    """
    device, end = next(model.parameters()).device, model.config.end
    left = sorted(range(len(texts)), key=lambda number: len(texts[number]), reverse=True)
    while left:
        longest = max(1, len(texts[left[0]]))
        rows = min(ROWS_AT_ONCE, max(1, TOKENS_AT_ONCE // longest))
        if not cached(model):
            rows = min(rows, sum(max(1, len(texts[number])) == longest for number in left))
        numbers, left = left[:rows], left[rows:]
        own = [texts[number] or [end] for number in numbers]
        ids = torch.tensor([[0] * (longest - len(one)) + one for one in own], device=device)
        padding = torch.tensor([longest - len(one) for one in own], device=device)
        yield numbers, ids, padding if bool(padding.any()) else None
