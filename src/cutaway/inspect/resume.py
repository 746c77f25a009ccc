"""A forward pass taken up in the middle: pieces of one run put into another, and only what they change computed.

The texts are read once. A patched copy of the base run (a *cell*) joins the batch at the block that it first changes,
and has rows only from the first token it changes: of the tokens before, the keys and values are at hand. The rows of
all cells stand together, without padding, so that a block multiplies once for all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, cast

import torch
from torch import Tensor

from cutaway.models.gpt2.model import Block
from cutaway.parts.trace import Fused, Trace

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel

QKV = ("queries", "keys", "values")
STREAM = ("residual.0", "blocks.*.residual", *(f"blocks.*.attention.{name}" for name in QKV), "final_norm")
PIECES = {
    "residual": (),
    "attention": ("blocks.*.attention.output",),
    "mlp": ("blocks.*.mlp.output", "blocks.*.residual.middle"),
    "head": ("blocks.*.attention.merged",),
    "neuron": ("blocks.*.mlp.activation",),
    "attention pattern": ("blocks.*.attention.weights", "blocks.*.attention.merged"),
}
"""What can be patched, and what is kept for it beside the residual stream with its keys and values."""
UNITS = {"head": "head", "attention pattern": "head", "neuron": "neuron"}
"""What a piece is of, where it is not one token: then it is patched at all tokens."""
NEEDS = (
    "config.layers", "config.heads", "config.head_width", "read", "score", "token_embedding.weight", "final_norm",
    "blocks.0.attention_norm", "blocks.0.attention.queries_keys_values", "blocks.0.attention.attend",
    "blocks.0.attention.projection", "blocks.0.mlp", "blocks.0.mlp_norm",
)  # fmt: skip
"""What is asked of the model itself, with blocks that are run one by one, as GPT-2's are."""


@dataclass(frozen=True)
class Cell:
    """One patch: of which layer, at which token or in which unit; the first block and the first token it changes."""

    layer: int
    index: int
    enters: int
    start: int


class Source(Protocol):
    """What is put in place of what the base run has: by the same names, in the same shapes."""

    def __getitem__(self, name: str) -> Tensor: ...


class Zeros:
    """Zero everywhere."""

    def __init__(self, base: Trace):
        self.base = base

    def __getitem__(self, name: str) -> Tensor:
        return torch.zeros_like(self.base[name])


class Means:
    """At every token the mean over all the tokens of some texts."""

    def __init__(self, base: Trace, traces: Sequence[Trace]):
        self.base = base
        self.means = {name: torch.cat([one[name] for one in traces]).mean(0) for name in traces[0]}  # [width]

    def __getitem__(self, name: str) -> Tensor:
        return self.means[name].to(self.base[name]).expand_as(self.base[name])


class Pair:
    """The base run and what is patched into it, and which tokens there is something to compute at."""

    def __init__(self, lm: LanguageModel, base: Trace, source: Source, what: str, first: int, position: int | None):
        self.lm, self.base, self.source, self.what, self.layers = lm, base, source, what, lm.config.layers
        self.first = first
        """The first token at which anything can differ."""
        self.end = len(base["final_norm"]) if position is None else position + 1
        self.last_only = position is not None
        """Whether the logits are wanted after the last token only."""

    def block(self, layer: int) -> Block:
        return cast(Block, self.lm.model.blocks[layer])

    def window(self, layer: int, start: int) -> slice:
        """The tokens whose stream is wanted on entering a block: after the last one, maybe only the last token."""
        return slice(self.end - 1 if layer == self.layers and self.last_only else start, self.end)

    def patches(self) -> Patches:
        kinds: dict[str, type[Patches]] = {
            "head": HeadPatches,
            "neuron": NeuronPatches,
            "attention pattern": PatternPatches,
        }
        return kinds.get(self.what, TokenPatches)(self)

    @torch.no_grad()
    def carry(self, cells: Sequence[Cell], patches: Patches) -> list[Tensor]:
        """These patched runs to the end: what leaves the final norm, of each from the first token that it changes, or
        at the last token only. [token, width] each
        """
        entering = defaultdict[int, dict[int, list[Cell]]](dict)
        for cell in cells:
            entering[cell.enters].setdefault(cell.start, []).append(cell)
        runs = list[Runs]()
        for layer in range(min(entering), self.layers + 1):
            for start, some in entering[layer].items():
                stream = patches.entering(some, self.window(layer, start))
                runs.append(Runs(start, some, stream, patches.tokens or stream.shape[1]))
            if layer < self.layers:
                runs = joined(self.through(layer, runs))
        found = dict[Cell, Tensor]()
        for one, rows in zip(runs, self.lm.model.final_norm(packed(runs)).split(lengths(runs)), strict=True):
            found |= zip(one.cells, rows.view_as(one.stream), strict=True)
        return [found[cell] for cell in cells]

    def through(self, layer: int, runs: Sequence[Runs]) -> list[Runs]:
        """One block, for runs that begin at different tokens: their rows stand together wherever a row is on its own,
        and apart where they attend. Queries, keys and values that no patch has changed are the base run's.
        """
        block, last = self.block(layer), self.last_only and layer == self.layers - 1
        attention, changed = block.attention, [replace(one, stream=one.stream[:, : one.changed]) for one in runs]
        made = attention.queries_keys_values(block.attention_norm(packed(changed)))  # [row, 3 x width]
        base = [self.base[f"blocks.{layer}.attention.{name}"][None, :, : self.end] for name in QKV]
        found = []
        for one, rows in zip(changed, made.split(lengths(changed)), strict=True):
            count, after = len(one.cells), one.start + one.changed
            own = (attention.split(part) for part in rows.view(count, one.changed, -1).chunk(3, -1))
            queries, keys, values = (
                torch.cat([piece.expand(count, -1, -1, -1) for piece in (theirs[:, :, first : one.start], ours,
                           theirs[:, :, after:])], dim=2)
                for first, theirs, ours in zip((one.start, 0, 0), base, own, strict=True)
            )  # fmt: skip
            heads = attention.attend(queries[:, :, -1:] if last else queries, keys, values, None)
            found.append(replace(one, stream=heads.transpose(1, 2).flatten(-2)))  # [cell, token, width]
        if last:
            runs = [replace(one, stream=one.stream[:, -1:]) for one in runs]
        rows = after_attention(block, packed(runs) + attention.projection(packed(found)))
        return [
            replace(one, stream=part.view_as(one.stream), changed=one.stream.shape[1])
            for one, part in zip(runs, rows.split(lengths(runs)), strict=True)
        ]


@dataclass(frozen=True)
class Runs:
    """Patched runs that begin at the same token."""

    start: int
    cells: list[Cell]
    stream: Tensor
    """[cell, token, width]"""
    changed: int
    """How many of the tokens, from the first on, differ from those of the base run."""


def joined(runs: Sequence[Runs]) -> list[Runs]:
    """Those that begin at the same token as one."""
    found = dict[int, Runs]()
    for one in runs:
        known = found.get(one.start)
        found[one.start] = one if known is None else replace(
            known, cells=known.cells + one.cells, stream=torch.cat((known.stream, one.stream))
        )  # fmt: skip
    return list(found.values())


def packed(runs: Sequence[Runs]) -> Tensor:
    """The rows of all these runs. [row, width]"""
    return torch.cat([one.stream.flatten(0, 1) for one in runs])


def lengths(runs: Sequence[Runs]) -> list[int]:
    """How many rows each of these has."""
    return [one.stream.shape[:2].numel() for one in runs]


def read_pair(lm: LanguageModel, texts: Sequence[list[int]], what: str) -> list[Trace]:
    """What one text makes on its way, or two of one length side by side: as much of it as these pieces need."""
    trace = Fused([*STREAM, *PIECES[what]])
    lm.model.read(torch.tensor(texts, device=lm.device), trace=trace)
    return [trace.row(index) for index in range(len(texts))]


class Patches(Protocol):
    """What is patched in: which cells there are, and what each brings to the block that it enters."""

    tokens: int | None
    """How many tokens a patch changes in the stream that enters a block; None: all from the first on."""

    def __init__(self, pair: Pair): ...

    def cells(self) -> list[Cell]:
        """Those that can change the metric; all others leave the base run as it is."""

    def entering(self, cells: Sequence[Cell], window: slice) -> Tensor:
        """The residual stream of these cells, all of one layer and start. [cell, token of the window, width]"""


class TokenPatches:
    """The stream that enters a block, or what its attention or MLP adds to it, at one token."""

    tokens: int | None = 1

    def __init__(self, pair: Pair):
        self.pair = pair
        self.shift = 0 if pair.what == "residual" else 1
        self.rows = [self.patched(layer) for layer in range(pair.layers)]

    def piece(self, layer: int) -> str:
        """The name of what is patched."""
        return stream_name(layer) if self.pair.what == "residual" else f"blocks.{layer}.{self.pair.what}.output"

    def patched(self, layer: int) -> Tensor:
        """What a patched token brings to the block it enters. [token, width]"""
        base, piece = self.pair.base, self.pair.source[self.piece(layer)]
        if self.pair.what == "residual":
            return piece
        if self.pair.what == "mlp":
            return base[f"blocks.{layer}.residual.middle"] + piece
        return after_attention(self.pair.block(layer), base[stream_name(layer)] + piece)

    def cells(self) -> list[Cell]:
        pair, found = self.pair, list[Cell]()
        for layer in range(pair.layers):
            differs = (pair.source[self.piece(layer)] != pair.base[self.piece(layer)]).any(-1).tolist()
            window = pair.window(layer + self.shift, pair.first)
            tokens = range(window.start, window.stop)
            found += [Cell(layer, one, layer + self.shift, one) for one in tokens if differs[one]]
        return sorted(found, key=lambda cell: (cell.index, cell.layer))

    def entering(self, cells: Sequence[Cell], window: slice) -> Tensor:
        stream = self.pair.base[stream_name(cells[0].enters)][window].repeat(len(cells), 1, 1)
        for row, cell in zip(stream, cells, strict=True):
            row[cell.index - window.start] = self.rows[cell.layer][cell.index]
        return stream


class HeadPatches:
    """What one head found, at all tokens."""

    tokens: int | None = None

    def __init__(self, pair: Pair):
        self.pair, self.count = pair, pair.lm.config.heads
        self.width = pair.lm.config.head_width

    def columns(self, head: int) -> slice:
        """Where a head stands among all that are merged."""
        return slice(head * self.width, (head + 1) * self.width)

    def found(self, layer: int, head: int, window: slice) -> Tensor:
        """What the head finds once it is patched. [token of the window, head_width]"""
        return self.pair.source[f"blocks.{layer}.attention.merged"][window, self.columns(head)]

    def differs(self, layer: int, head: int, window: slice) -> bool:
        columns, name = self.columns(head), f"blocks.{layer}.attention.merged"
        return bool((self.pair.source[name][window, columns] != self.pair.base[name][window, columns]).any())

    def cells(self) -> list[Cell]:
        pair, found = self.pair, list[Cell]()
        for layer in range(pair.layers):
            window = pair.window(layer + 1, pair.first)
            changed = [head for head in range(self.count) if self.differs(layer, head, window)]
            found += [Cell(layer, head, layer + 1, window.start) for head in changed]
        return sorted(found, key=lambda cell: (cell.start, cell.layer))

    def entering(self, cells: Sequence[Cell], window: slice) -> Tensor:
        layer = cells[0].layer
        block = self.pair.block(layer)
        merged = self.pair.base[f"blocks.{layer}.attention.merged"][window].repeat(len(cells), 1, 1)
        for row, cell in zip(merged, cells, strict=True):
            row[:, self.columns(cell.index)] = self.found(layer, cell.index, window)
        stream = self.pair.base[stream_name(layer)][window]
        return after_attention(block, stream + block.attention.projection(merged))


class PatternPatches(HeadPatches):
    """Where one head attends, at all tokens; the values it finds there are those of the base run."""

    def found(self, layer: int, head: int, window: slice) -> Tensor:
        weights = self.pair.source[f"blocks.{layer}.attention.weights"][head, window, : self.pair.end]
        return weights @ self.pair.base[f"blocks.{layer}.attention.values"][head, : self.pair.end]

    def differs(self, layer: int, head: int, window: slice) -> bool:
        name = f"blocks.{layer}.attention.weights"
        return bool((self.pair.source[name][head, window] != self.pair.base[name][head, window]).any())


class NeuronPatches:
    """The activation of one neuron, at all tokens."""

    tokens: int | None = None

    def __init__(self, pair: Pair):
        self.pair = pair

    def moved(self, layer: int, window: slice) -> Tensor:
        """By how much each activation changes. [token of the window, neuron]"""
        name = f"blocks.{layer}.mlp.activation"
        return self.pair.source[name][window] - self.pair.base[name][window]

    def cells(self) -> list[Cell]:
        pair, found = self.pair, list[Cell]()
        for layer in range(pair.layers):
            window = pair.window(layer + 1, pair.first)
            changed = self.moved(layer, window).any(0).nonzero()[:, 0].tolist()
            found += [Cell(layer, neuron, layer + 1, window.start) for neuron in changed]
        return sorted(found, key=lambda cell: (cell.start, cell.layer))

    def entering(self, cells: Sequence[Cell], window: slice) -> Tensor:
        layer, neurons = cells[0].layer, [cell.index for cell in cells]
        moved = self.moved(layer, window)[:, neurons]  # [token, cell]
        written = self.pair.block(layer).mlp.projection.weight[:, neurons]  # [width, cell]
        stream = self.pair.base[stream_name(layer + 1)][window]
        return stream + torch.einsum("tc,wc->ctw", moved, written)


def stream_name(layer: int) -> str:
    """The residual stream that enters a block, or after the last one leaves it."""
    return f"blocks.{layer - 1}.residual" if layer else "residual.0"


def after_attention(block: Block, middle: Tensor) -> Tensor:
    """The second half of a block, from the stream between its attention and its MLP."""
    return middle + block.mlp(block.mlp_norm(middle))
