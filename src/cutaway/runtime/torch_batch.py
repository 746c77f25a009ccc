"""Texts read side by side by torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from cutaway.decoding.runtime import Runtime, Scores, distinct
from cutaway.errors import CutawayError
from cutaway.models.architecture import Decoding, TwoTexts, architecture, cached, context_of, encoder, start_of
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.parts.cache import Cache


def torch_runtime(model: Any) -> Runtime:
    """What runs this model: with a KV cache, if it declares that it has one; an encoder-decoder by its state."""
    if encoder(model):
        title = architecture(model.config.kind).title
        raise CutawayError(f"A {title} reads a text in both directions at once and has no next token: it cannot write.")
    if start_of(model.config) is not None:
        return EncoderDecoder(model)
    return TorchRuntime(model) if cached(model) else Rereading(model)


def require_cached(model: Any) -> None:
    """Refuse a model that has to be read from the beginning again for every token."""
    if not cached(model):
        title = architecture(model.config.kind).title
        raise CutawayError(f"This needs a model that reads on from a KV cache, and {title} does not declare that.")


class TorchRuntime:
    """A model that torch runs with a KV cache. See `cutaway.decoding.runtime.Runtime`."""

    def __init__(self, model: GPT):
        require_cached(model)
        self.model = model

    @property
    def config(self) -> Config:
        return self.model.config

    def open(self) -> TorchBatch:
        return TorchBatch(self)

    def read(self, ids: Tensor, cache: Cache) -> Tensor:
        """The new tokens [row, token] are read and cached; the scores after the last of each row. [row, vocabulary]"""
        return self.model.score(self.model.read(ids, cache)[:, -1])


class TorchBatch:
    """See `cutaway.decoding.runtime.Batch`. Rows of unequal length stand flush right in one cache."""

    def __init__(self, runtime: TorchRuntime):
        self.runtime, weight = runtime, runtime.model.token_embedding.weight
        self.device, self.dtype = weight.device, weight.dtype
        self.cache = Cache(runtime.config, batch=0, capacity=0)

    @torch.inference_mode()
    def add(self, windows: list[list[int]]) -> Scores:
        different, rows = distinct(windows)
        longest = max(map(len, different))
        ids = torch.tensor([[0] * (longest - len(window)) + window for window in different], device=self.device)
        padding = torch.tensor([longest - len(window) for window in different], device=self.device)
        cache = Cache(
            self.runtime.config, len(different), padding=padding if bool(padding.any()) else None,
            dtype=self.dtype, device=self.device,
        )  # fmt: skip
        logits = self.runtime.read(ids, cache)
        if len(different) < len(windows):
            picked = torch.tensor(rows, device=self.device)
            cache.select(picked)
            logits = logits[picked]
        if self.cache.batch:
            self.cache.join(cache)
        else:
            self.cache = cache
        return logits.float().cpu().numpy()

    @torch.inference_mode()
    def step(self, tokens: list[int]) -> Scores:
        last = torch.tensor([[token] for token in tokens], device=self.device)
        return self.runtime.read(last, self.cache).float().cpu().numpy()

    @torch.inference_mode()
    def keep(self, rows: list[int]) -> None:
        if rows:
            self.cache.select(torch.tensor(rows, device=self.device))
        else:
            self.cache = Cache(self.runtime.config, batch=0, capacity=0)

    def begin(self, window: list[int], whole: bool = False) -> OpenText:
        cache = Cache(self.runtime.config, 1, dtype=self.dtype, device=self.device)
        return OpenText(list(window), cache)

    def done(self, row: OpenText) -> int:
        return row.cache.length

    @torch.inference_mode()
    def read(self, rows: list[OpenText], counts: list[int], every: list[bool]) -> list[Scores]:
        found = []
        for row, count, all_ in zip(rows, counts, every, strict=True):
            start = row.cache.length
            ids = torch.tensor([row.ids[start : start + count]], device=self.device)
            vectors = self.runtime.model.read(ids, row.cache)[0]
            found.append(self.runtime.model.score(vectors if all_ else vectors[-1:]).float().cpu().numpy())
        return found

    @torch.inference_mode()
    def join(self, rows: list[OpenText], copies: list[int]) -> None:
        for row, count in zip(rows, copies, strict=True):
            if count > 1:
                row.cache.select(torch.zeros(count, dtype=torch.long, device=self.device))
            if self.cache.batch:
                self.cache.join(row.cache)
            else:
                self.cache = row.cache

    @torch.inference_mode()
    def hold(self, row: int) -> OpenText:
        blank = int(self.cache.paddings()[row])
        cache = Cache(self.runtime.config, 1, dtype=self.dtype, device=self.device)
        cache.length = self.cache.length - blank
        for own, all_ in ((cache.keys, self.cache.keys), (cache.values, self.cache.values)):
            own[:, :, :, : cache.length] = all_[:, row : row + 1, :, blank : self.cache.length]
        return OpenText([], cache)


@dataclass
class OpenText:
    """A text beside the batch: one that is being read in pieces, or that was set aside."""

    ids: list[int]
    cache: Cache


@dataclass(frozen=True)
class Bounds:
    """See `cutaway.decoding.runtime.Limits`."""

    context: int
    end: int
    start: int | None = None


class EncoderDecoder:
    """A model that reads one text and writes another. See `TwoTexts` in models/architecture.py."""

    def __init__(self, model: TwoTexts):
        self.model: Any = model

    @property
    def config(self) -> Bounds:
        shape = self.model.config
        return Bounds(context_of(shape), shape.end, shape.start)

    def open(self) -> Pairs:
        return Pairs(self)


class Pairs:
    """See `cutaway.decoding.runtime.Batch`. A row is `source <start> target`: the encoder reads its source once."""

    def __init__(self, runtime: EncoderDecoder):
        self.model, self.device = runtime.model, runtime.model.token_embedding.weight.device
        self.state: Decoding | None = None

    @torch.inference_mode()
    def add(self, windows: list[list[int]]) -> Scores:
        different, rows = distinct(windows)
        divided = [self.divided(window) for window in different]
        joined: Decoding | None = None
        scores, order = [], list[int]()
        for length in dict.fromkeys(len(target) for _, target in divided):  # mostly one: targets are yet to be written
            numbers = [number for number, (_, target) in enumerate(divided) if len(target) == length]
            state = self.model.begin([divided[number][0] for number in numbers])
            targets = torch.tensor([divided[number][1] for number in numbers], device=self.device)
            scores.append(self.model.score(self.model.decode(targets, state)[:, -1]))
            order += numbers
            joined = joined_with(joined, state)
        assert joined is not None
        picked = torch.tensor([order.index(row) for row in rows], device=self.device)
        joined.select(picked)
        self.state = joined_with(self.state, joined)
        return torch.cat(scores)[picked].float().cpu().numpy()

    @torch.inference_mode()
    def step(self, tokens: list[int]) -> Scores:
        last = torch.tensor([[token] for token in tokens], device=self.device)
        return self.model.score(self.model.decode(last, self.state)[:, -1]).float().cpu().numpy()

    @torch.inference_mode()
    def keep(self, rows: list[int]) -> None:
        if rows and self.state is not None:
            self.state.select(torch.tensor(rows, device=self.device))
        else:
            self.state = None

    def divided(self, window: list[int]) -> tuple[list[int], list[int]]:
        """Source and target, which begins with the start token."""
        start = self.model.config.start
        if start not in window:
            raise CutawayError(
                f"This model reads one text and writes another, and these ids have no start token ({start}) between "
                "the two. Give a text, or the ids of lm.pair(source, target)."
            )
        at = window.index(start)
        return window[:at], window[at:]


def joined_with(state: Decoding | None, other: Decoding) -> Decoding:
    if state is None:
        return other
    state.join(other)
    return state


class Rereading:
    """A model of which no more is known than `model(ids)`: every text is read whole again for each of its tokens."""

    def __init__(self, model: Any):
        self.model, self.device = model, next(model.parameters()).device

    @property
    def config(self) -> Bounds:
        return Bounds(context_of(self.model.config), self.model.config.end)

    def open(self) -> WholeTexts:
        return WholeTexts(self)


class WholeTexts:
    """See `cutaway.decoding.runtime.Batch`. Each row is read alone: such a model may know no padding."""

    def __init__(self, runtime: Rereading):
        self.runtime = runtime
        self.rows: list[list[int]] = []

    @torch.inference_mode()
    def read(self, texts: list[list[int]]) -> Scores:
        different, rows = distinct(texts)
        model, device = self.runtime.model, self.runtime.device
        scores = torch.stack([model(torch.tensor([text], device=device))[0, -1] for text in different])
        return scores[rows].float().cpu().numpy()

    def add(self, windows: list[list[int]]) -> Scores:
        self.rows += [list(window) for window in windows]
        return self.read(windows)

    def step(self, tokens: list[int]) -> Scores:
        self.rows = [[*row, token] for row, token in zip(self.rows, tokens, strict=True)]
        return self.read(self.rows)

    def keep(self, rows: list[int]) -> None:
        self.rows = [self.rows[row] for row in rows]
