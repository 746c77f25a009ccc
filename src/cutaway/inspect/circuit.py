"""Which part feeds which: every edge estimated from one backward pass, and paths from one part to another patched.

The residual stream is a sum, so that what a head or an MLP (a *sender*) adds goes straight to the input of each later
part (a *receiver*): the queries, keys or values of a head, an MLP, or the output. An edge is that way, and no other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from cutaway.errors import CutawayError, nearest
from cutaway.inspect.estimate import at_places
from cutaway.inspect.metric import Metric, as_metric, number
from cutaway.inspect.numbers import Line, Table, Token, ViewResult, array, token
from cutaway.inspect.resume import NEEDS, Pair, read_pair, stream_name
from cutaway.inspect.sweep import ROWS, Measured, Progress, check_texts, first_difference
from cutaway.inspect.view import check_fits

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel, Prompt
    from cutaway.parts.trace import Trace

READS = (
    "residual.0", "blocks.*.residual", "blocks.*.residual.middle", "blocks.*.attention.merged", "blocks.*.mlp.output",
    "blocks.*.attention.queries", "blocks.*.mlp.norm", "final_norm",
)  # fmt: skip
INPUTS = ("queries", "keys", "values")
OUTPUT = "output"


@dataclass(frozen=True)
class Edges(ViewResult):
    """What each edge would bring back of the clean run, to first order."""

    metric: str
    clean: float
    corrupted: float
    senders: tuple[str, ...]
    receivers: tuple[str, ...]
    scores: Table
    """[sender, receiver]; 0 where no edge is, since the sender comes later."""
    clean_tokens: tuple[Token, ...]
    corrupted_tokens: tuple[Token, ...]

    def strongest(self, count: int = 10) -> list[tuple[str, str, float]]:
        """The edges with the largest score, in either direction."""
        order = np.argsort(-np.abs(self.scores), axis=None, kind="stable")[:count]
        places = (np.unravel_index(at, self.scores.shape) for at in order)
        return [(self.senders[s], self.receivers[r], float(self.scores[s, r])) for s, r in places]


@dataclass(frozen=True)
class Paths(ViewResult):
    """The metric of the corrupted run where receivers read one sender as in the clean run, for every sender."""

    metric: str
    receivers: tuple[str, ...]
    senders: tuple[str, ...]
    values: Line
    """[sender]"""
    clean: float
    corrupted: float
    clean_tokens: tuple[Token, ...]
    corrupted_tokens: tuple[Token, ...]
    told = ("recovered",)

    @property
    def recovered(self) -> Line:
        """How much of the difference each path brings back: 0 as corrupted, 1 as clean. [sender]"""
        return (self.values - np.float32(self.corrupted)) / np.float32(self.clean - self.corrupted)

    def strongest(self, count: int = 10) -> list[tuple[str, float]]:
        """The senders that move the metric most, in either direction, and what they bring back."""
        order = np.argsort(-np.abs(self.values - self.corrupted), kind="stable")[:count]
        return [(self.senders[at], float(self.recovered[at])) for at in order]


def senders_of(lm: LanguageModel) -> list[tuple[str, int]]:
    """Every part that adds to the stream, with the number of the first half block that reads it."""
    found = [("embedding", 0)]
    for layer in range(lm.config.layers):
        found += [(f"head {layer}.{head}", 2 * layer + 1) for head in range(lm.config.heads)]
        found.append((f"mlp {layer}", 2 * layer + 2))
    return found


def receivers_of(lm: LanguageModel) -> dict[str, int]:
    """Every input that reads the stream, and the number of its half block."""
    found: dict[str, int] = {}
    for layer in range(lm.config.layers):
        for head in range(lm.config.heads):
            found |= {f"head {layer}.{head} {one}": 2 * layer for one in INPUTS}
        found[f"mlp {layer}"] = 2 * layer + 1
    return found | {OUTPUT: 2 * lm.config.layers}


class Compared:
    """A clean and a corrupted run, read once, with what each sender adds differently."""

    def __init__(
        self, lm: LanguageModel, clean: Prompt, corrupted: Prompt, metric: Metric | Callable[[Tensor], Any], name: str
    ):
        lm.check_unpacked("Edges and paths are found")
        check_fits(name, lm, READS, NEEDS)
        self.lm, self.ids = lm, [lm.ids(clean), lm.ids(corrupted)]
        self.texts = [tuple(token(lm.tokenizer, one) for one in text) for text in self.ids]
        check_texts(lm, self.texts)
        self.bound = as_metric(lm, metric, len(self.ids[0]))
        with torch.no_grad():
            self.runs = [self.read(ids) for ids in self.ids]
            short = read_pair(lm, self.ids, "head")
            self.pair = Pair(lm, short[1], short[0], "head", first_difference(self.ids), self.bound.position)
            self.measured = Measured(self.pair, short, self.bound)
            self.clean, self.corrupted = self.measured.plain()
            self.differences = self.added(self.runs[0]) - self.added(self.runs[1])  # [sender, token, width]

    def read(self, ids: list[int]) -> Trace:
        return self.lm.trace(ids, keep=[*READS, "blocks.*.attention.keys", "blocks.*.attention.values"])

    def added(self, run: Trace) -> Tensor:
        """What each sender adds to the stream. [sender, token, width]"""
        parts = [run["residual.0"][None]]
        for layer in range(self.lm.config.layers):
            projection = self.pair_block(layer).attention.projection
            heads = run[f"blocks.{layer}.attention.merged"].unflatten(-1, (self.lm.config.heads, -1))
            weight = projection.weight.unflatten(-1, (self.lm.config.heads, -1))  # [width, head, head_width]
            parts += [torch.einsum("thd,whd->htw", heads, weight), run[f"blocks.{layer}.mlp.output"][None]]
        return torch.cat(parts)

    def pair_block(self, layer: int) -> Any:
        return self.lm.model.blocks[layer]


@torch.inference_mode(False)
def edges(lm: LanguageModel, clean: Prompt, corrupted: Prompt, *, metric: Metric | Callable[[Tensor], Any]) -> Edges:
    """Edge attribution patching: the gradient at each receiver's input times what each sender adds differently."""
    both = Compared(lm, clean, corrupted, metric, "edges")
    names = [f"blocks.{layer}.attention.{one}" for layer in range(lm.config.layers) for one in INPUTS]
    names += [f"blocks.{layer}.mlp.norm" for layer in range(lm.config.layers)] + ["final_norm"]
    found = at_places(both.pair, both.measured.metric, both.ids[1], names)
    at, base = dict(zip(names, found, strict=True)), both.runs[1]
    with torch.no_grad():
        columns = []
        for layer in range(lm.config.layers):
            block = both.pair_block(layer)
            makers = block.attention.queries_keys_values.weight.unflatten(0, (3, lm.config.heads, -1))
            inputs = torch.stack([at[f"blocks.{layer}.attention.{one}"] for one in INPUTS])  # [3, head, token, dh]
            outer = torch.einsum("ihtd,ihdw->hitw", inputs, makers).flatten(0, 1)  # head after head, its three inputs
            columns.append(through_norm(block.attention_norm, base[stream_name(layer)], outer))
            middle = base[f"blocks.{layer}.residual.middle"]
            columns.append(through_norm(block.mlp_norm, middle, at[f"blocks.{layer}.mlp.norm"][None]))
        last = base[stream_name(lm.config.layers)]
        columns.append(through_norm(lm.model.final_norm, last, at["final_norm"][None]))
        scores = torch.einsum("stw,rtw->sr", both.differences.float(), torch.cat(columns).float())
        senders, receivers = senders_of(lm), receivers_of(lm)
        ready = torch.tensor([at for _, at in senders])[:, None]
        scores = scores.masked_fill(ready > torch.tensor(list(receivers.values())), 0.0)
    names_of = tuple(name for name, _ in senders), tuple(receivers)
    return Edges(both.bound.describe(lm), both.clean, both.corrupted, *names_of, array(scores), *both.texts)


def through_norm(norm: nn.LayerNorm, value: Tensor, outer: Tensor) -> Tensor:
    """The gradients after a layer norm [..., token, width] as gradients before it, where its input is this value."""
    spread = (value.var(-1, unbiased=False, keepdim=True) + norm.eps).sqrt()
    normed, outer = (value - value.mean(-1, keepdim=True)) / spread, outer * norm.weight
    return (outer - outer.mean(-1, keepdim=True) - normed * (outer * normed).mean(-1, keepdim=True)) / spread


@torch.inference_mode(False)
@torch.no_grad()
def paths(
    lm: LanguageModel,
    clean: Prompt,
    corrupted: Prompt,
    receivers: Sequence[str] = (OUTPUT,),
    *,
    metric: Metric | Callable[[Tensor], Any],
    progress: Progress | None = None,
) -> Paths:
    """Path patching: the corrupted run, in which the receivers (and nobody else) read one sender as in the clean run.

    A receiver is "head 5.2 queries" (or keys, values), "head 5.2" (all three), "mlp 3" or "output". All that lies
    between sender and receiver is as in the corrupted run, heads and MLPs alike; what comes after is computed.
    """
    both = Compared(lm, clean, corrupted, metric, "paths")
    wanted = chosen_receivers(lm, receivers)
    latest, found = max(wanted.values()), list[tuple[str, float]]()
    senders = [(at, name) for at, (name, ready) in enumerate(senders_of(lm)) if ready <= latest]
    size = max(1, ROWS // len(both.ids[0]))
    for first in range(0, len(senders), size):
        some = senders[first : first + size]
        logits = path_logits(both, [at for at, _ in some], wanted, both.differences)
        for (_, name), row in zip(some, logits, strict=True):
            value = number(both.measured.metric.of(row), f" along the path from {name}")
            found.append((name, value))
        if progress:
            progress(len(found), len(senders))
    values = np.array([value for _, value in found], np.float32)
    names = tuple(name for name, _ in found)
    return Paths(both.bound.describe(lm), tuple(wanted), names, values, both.clean, both.corrupted, *both.texts)


def chosen_receivers(lm: LanguageModel, receivers: Sequence[str]) -> dict[str, int]:
    """These receivers, checked; a head stands for its three inputs."""
    known, found = receivers_of(lm), dict[str, int]()
    if isinstance(receivers, str):
        receivers = [receivers]
    for one in receivers:
        inputs = [f"{one} {part}" for part in INPUTS if f"{one} {part}" in known] or [one]
        for name in inputs:
            if name not in known:
                raise CutawayError(
                    f"There is no receiver {name!r:.80}.{nearest(str(name), known)} "
                    'A receiver is "head LAYER.HEAD queries" (or keys, values), "mlp LAYER" or "output".'
                )
            found[name] = known[name]
    if not found:
        raise CutawayError('No receiver is named. Name one or more, such as "output" or "head 1.0 queries".')
    return found


def path_logits(both: Compared, senders: Sequence[int], receivers: dict[str, int], differences: Tensor) -> Tensor:
    """The logits that the metric asks for, of a run for each sender. [sender, (token,) vocabulary]"""
    lm, base = both.lm, both.runs[1]
    ready = torch.tensor([senders_of(lm)[at][1] for at in senders])
    first = min(receivers.values()) // 2

    def reads(number: int) -> Tensor:  # what the receivers of this half block read differently, [sender, token, width]
        return differences[list(senders)] * (ready <= number)[:, None, None].to(differences)

    stream = base[stream_name(first)].repeat(len(senders), 1, 1)
    for layer in range(first, lm.config.layers):
        block, put = both.pair_block(layer), Put(lm.config.heads)
        read = block.attention_norm(base[stream_name(layer)] + reads(2 * layer))
        makers = block.attention.queries_keys_values(read).chunk(3, -1)
        for name in receivers:
            place, _, part = name.removeprefix("head ").partition(" ")
            if name.startswith(f"head {layer}."):
                head = int(place.partition(".")[2])
                put.inputs[part].append((head, block.attention.split(makers[INPUTS.index(part)])[:, head]))
        if f"mlp {layer}" in receivers:
            put.norm = block.mlp_norm(base[f"blocks.{layer}.residual.middle"] + reads(2 * layer + 1))
        stream = block(stream, watch=put)
    if OUTPUT in receivers:
        stream = stream + reads(2 * lm.config.layers)
    at = slice(None) if both.bound.position is None else both.bound.position
    return lm.model.score(lm.model.final_norm(stream)[:, at]).float()


class Put:
    """Watches one block: puts other queries, keys and values into some heads, and another input into the MLP."""

    watching = False

    def __init__(self, heads: int, scope: str = "", inputs: Any = None, norm: Tensor | None = None):
        self.heads, self.scope = heads, scope
        self.inputs: dict[str, list[tuple[int, Tensor]]] = inputs if inputs is not None else {one: [] for one in INPUTS}
        self.norm = norm

    def within(self, scope: str) -> Put:
        return Put(self.heads, scope, self.inputs, self.norm)

    def __call__(self, name: str, value: Tensor) -> Tensor:
        if self.scope == "mlp" and name == "norm" and self.norm is not None:
            return self.norm
        if self.scope == "attention" and self.inputs.get(name):
            value = value.clone()
            for head, new in self.inputs[name]:
                value[:, head] = new
        return value
