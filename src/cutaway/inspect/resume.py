"""A forward pass taken up in the middle: pieces of one run put into another, and only what they change computed.

Both texts are read once. A patched copy of the corrupted run (a *cell*) joins the batch at the block that it first
changes, and has rows only from the first token it changes: of the tokens before, the keys and values are at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

import torch
from torch import Tensor

from cutaway.models.gpt2.model import Block
from cutaway.parts.trace import Fused

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel

STREAM = ("residual.0", "blocks.*.residual", "blocks.*.attention.keys", "blocks.*.attention.values", "final_norm")
PIECES = {
    "residual": (),
    "attention": ("blocks.*.attention.output",),
    "mlp": ("blocks.*.mlp.output", "blocks.*.residual.middle"),
    "head": ("blocks.*.attention.merged",),
}
"""What can be patched, and what is kept for it beside the residual stream with its keys and values."""
NEEDS = (
    "config.layers", "config.heads", "config.head_width", "read", "score", "token_embedding.weight", "final_norm",
    "blocks.0.attention.projection", "blocks.0.mlp", "blocks.0.mlp_norm",
)  # fmt: skip
"""What is asked of the model itself, with blocks that are run one by one, as GPT-2's are."""


@dataclass(frozen=True)
class Cell:
    """One patch: of which layer, at which token or in which head; the first block and the first token it changes."""

    layer: int
    index: int
    enters: int
    start: int


class Pair:
    """The clean and the corrupted run, and which tokens there is something to compute at."""

    def __init__(self, lm: LanguageModel, clean: list[int], corrupted: list[int], what: str, position: int | None):
        self.lm, self.what, self.layers = lm, what, lm.config.layers
        self.first = next(i for i, (one, other) in enumerate(zip(clean, corrupted, strict=True)) if one != other)
        """The first token that differs: before it the two runs are one."""
        self.end = len(clean) if position is None else position + 1
        self.last_only = position is not None
        """Whether the logits are wanted after the last token only."""
        trace = Fused([*STREAM, *PIECES[what]])
        lm.model.read(torch.tensor([clean, corrupted], device=lm.device), trace=trace)
        self.clean, self.corrupted = trace.row(0), trace.row(1)

    def block(self, layer: int) -> Block:
        return cast(Block, self.lm.model.blocks[layer])

    def window(self, layer: int, start: int) -> slice:
        """The tokens whose stream is wanted on entering a block: after the last one, maybe only the last token."""
        return slice(self.end - 1 if layer == self.layers and self.last_only else start, self.end)

    def patches(self) -> Patches:
        return HeadPatches(self) if self.what == "head" else TokenPatches(self)

    @torch.no_grad()
    def carry(self, cells: Sequence[Cell], patches: Patches) -> Tensor:
        """These patched runs to the end: what leaves the final norm, from the first token that one of them changes,
        or at the last token only. [cell, token, width]
        """
        start, stream, order = min(cell.start for cell in cells), None, list[Cell]()
        for layer in range(min(cell.enters for cell in cells), self.layers + 1):
            joining = [cell for cell in cells if cell.enters == layer]
            if joining:
                new = patches.entering(joining, self.window(layer, start))
                stream, order = new if stream is None else torch.cat((stream, new)), order + joining
            if stream is not None and layer < self.layers:
                stream = self.block(layer)(stream, watch=self.resumed(layer, start))
        assert stream is not None
        place = {cell: at for at, cell in enumerate(order)}
        return self.lm.model.final_norm(stream[[place[cell] for cell in cells]])

    def resumed(self, layer: int, start: int) -> Resumed:
        scope = f"blocks.{layer}.attention"
        keys, values = (self.corrupted[f"{scope}.{name}"][None, :, :start] for name in ("keys", "values"))
        return Resumed(keys, values, self.last_only and layer == self.layers - 1)


class Resumed:
    """Watches one block: puts the keys and values of the tokens before in front, and maybe goes on at the last only."""

    watching = False

    def __init__(self, keys: Tensor, values: Tensor, last_only: bool):
        self.before, self.last_only = {"keys": keys, "values": values}, last_only  # [1, head, token, head_width]

    def within(self, scope: str) -> Resumed:
        return self

    def __call__(self, name: str, value: Tensor) -> Tensor:
        if name in self.before and self.before[name].shape[2]:
            return torch.cat((self.before[name].expand(len(value), -1, -1, -1), value), dim=2)
        if self.last_only and name in ("queries", "residual.middle"):
            return value[..., -1:, :]
        return value


class Patches(Protocol):
    """What is patched in: which cells there are, and what each brings to the block that it enters."""

    count: int
    """How many cells a layer has."""

    def cells(self) -> list[Cell]:
        """Those that can change the metric; all others leave the corrupted run as it is."""

    def entering(self, cells: Sequence[Cell], window: slice) -> Tensor:
        """The residual stream of these cells, all of which enter one block. [cell, token of the window, width]"""


class TokenPatches:
    """The stream that enters a block, or what its attention or MLP adds to it, at one token."""

    def __init__(self, pair: Pair):
        self.pair, self.count = pair, len(pair.clean["final_norm"])
        self.shift = 0 if pair.what == "residual" else 1
        self.rows = [self.patched(layer) for layer in range(pair.layers)]

    def piece(self, layer: int) -> str:
        """The name of what is patched."""
        return stream_name(layer) if self.pair.what == "residual" else f"blocks.{layer}.{self.pair.what}.output"

    def patched(self, layer: int) -> Tensor:
        """What a patched token brings to the block it enters. [token, width]"""
        corrupted, piece = self.pair.corrupted, self.pair.clean[self.piece(layer)]
        if self.pair.what == "residual":
            return piece
        if self.pair.what == "mlp":
            return corrupted[f"blocks.{layer}.residual.middle"] + piece
        return after_attention(self.pair.block(layer), corrupted[stream_name(layer)] + piece)

    def cells(self) -> list[Cell]:
        pair, found = self.pair, list[Cell]()
        for layer in range(pair.layers):
            differs = (pair.clean[self.piece(layer)] != pair.corrupted[self.piece(layer)]).any(-1).tolist()
            window = pair.window(layer + self.shift, pair.first)
            tokens = range(window.start, window.stop)
            found += [Cell(layer, one, layer + self.shift, one) for one in tokens if differs[one]]
        return sorted(found, key=lambda cell: (cell.index, cell.layer))

    def entering(self, cells: Sequence[Cell], window: slice) -> Tensor:
        stream = self.pair.corrupted[stream_name(cells[0].enters)][window].repeat(len(cells), 1, 1)
        for row, cell in zip(stream, cells, strict=True):
            row[cell.index - window.start] = self.rows[cell.layer][cell.index]
        return stream


class HeadPatches:
    """What one head found, at all tokens."""

    def __init__(self, pair: Pair):
        self.pair, self.count = pair, pair.lm.config.heads
        self.width = pair.lm.config.head_width

    def columns(self, head: int) -> slice:
        """Where a head stands among all that are merged."""
        return slice(head * self.width, (head + 1) * self.width)

    def cells(self) -> list[Cell]:
        pair, found = self.pair, list[Cell]()
        for layer in range(pair.layers):
            name, window = f"blocks.{layer}.attention.merged", pair.window(layer + 1, pair.first)
            differs = (pair.clean[name] != pair.corrupted[name])[window]
            changed = [head for head in range(self.count) if differs[:, self.columns(head)].any()]
            found += [Cell(layer, head, layer + 1, window.start) for head in changed]
        return sorted(found, key=lambda cell: (cell.start, cell.layer))

    def entering(self, cells: Sequence[Cell], window: slice) -> Tensor:
        layer = cells[0].layer
        block, name = self.pair.block(layer), f"blocks.{layer}.attention.merged"
        merged = self.pair.corrupted[name][window].repeat(len(cells), 1, 1)
        for row, cell in zip(merged, cells, strict=True):
            columns = self.columns(cell.index)
            row[:, columns] = self.pair.clean[name][window, columns]
        stream = self.pair.corrupted[stream_name(layer)][window]
        return after_attention(block, stream + block.attention.projection(merged))


def stream_name(layer: int) -> str:
    """The residual stream that enters a block, or after the last one leaves it."""
    return f"blocks.{layer - 1}.residual" if layer else "residual.0"


def after_attention(block: Block, middle: Tensor) -> Tensor:
    """The second half of a block, from the stream between its attention and its MLP."""
    return middle + block.mlp(block.mlp_norm(middle))
