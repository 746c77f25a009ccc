"""What each layer keeps between steps: the keys and values of the tokens read, so that none is computed twice."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from cutaway.errors import CutawayError


class Shape(Protocol):
    """What a cache asks of a model's shape."""

    @property
    def context(self) -> int: ...
    @property
    def layers(self) -> int: ...
    @property
    def heads(self) -> int: ...
    @property
    def head_width(self) -> int: ...


class Cache:
    """Keys and values for all layers of a batch of sequences, in columns: one for each token read so far.

    Sequences of unequal length stand flush right: `padding[row]` columns on the left of a row hold nothing.
    """

    def __init__(
        self,
        config: Shape,
        batch: int = 1,
        capacity: int | None = None,
        padding: Tensor | None = None,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ):
        self.capacity = capacity if capacity is not None else config.context
        self.length = 0
        self.padding = padding  # [batch], or None when every sequence is as long as every other
        shape = (config.layers, batch, config.heads, self.capacity, config.head_width)
        self.keys = torch.empty(shape, dtype=dtype, device=device)  # [layer, batch, head, column, head_width]
        self.values = torch.empty(shape, dtype=dtype, device=device)

    @property
    def batch(self) -> int:
        return self.keys.shape[1]

    @property
    def nbytes(self) -> int:
        """The bytes in use: those of the columns that hold something."""
        return 2 * self.keys[:, :, :, : self.length].numel() * self.keys.element_size()

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Put the new tokens' keys and values after the old ones; give back all of them, for this layer."""
        end = self.length + keys.shape[2]
        if end > self.capacity:
            raise CutawayError(f"The cache holds {self.capacity:,} tokens and was given {end:,}.")
        self.keys[layer, :, :, self.length : end] = keys
        self.values[layer, :, :, self.length : end] = values
        return self.keys[layer, :, :, :end], self.values[layer, :, :, :end]

    def advance(self, tokens: int) -> None:
        """After the last layer: the new columns are now old ones."""
        self.length += tokens

    def trim(self, length: int) -> None:
        """Forget the columns from `length` on."""
        self.length = min(self.length, length)

    def select(self, rows: Tensor) -> None:
        """Keep these rows, in this order; a row may be named twice (a beam that forks). Columns nobody uses go."""
        left = 0
        if self.padding is not None:
            self.padding = self.padding[rows]
            left = int(self.padding.min())
            self.padding = self.padding - left if bool((self.padding > left).any()) else None
        used = self.length - left
        old_keys, old_values = self.keys, self.values
        same = rows.numel() == self.batch
        if not same:
            shape = (old_keys.shape[0], rows.numel(), *old_keys.shape[2:])
            self.keys, self.values = old_keys.new_empty(shape), old_values.new_empty(shape)
        for layer in range(old_keys.shape[0]):  # one layer at a time: no second copy of the whole cache
            self.keys[layer, :, :, :used] = old_keys[layer, rows, :, left : self.length]
            self.values[layer, :, :, :used] = old_values[layer, rows, :, left : self.length]
        self.length = used

    def join(self, other: Cache) -> None:
        """Put the rows of another cache below these; those of the shorter one are moved to the right."""
        length, both = max(self.length, other.length), (self, other)
        shape = (self.keys.shape[0], self.batch + other.batch, *self.keys.shape[2:])
        keys, values = self.keys.new_empty(shape), self.values.new_empty(shape)
        for one, rows in zip(both, (slice(self.batch), slice(self.batch, None)), strict=True):
            left = length - one.length
            for joined, own in ((keys, one.keys), (values, one.values)):
                joined[:, rows, :, :left] = 0  # masked, but nan times a weight of 0 would be nan
                joined[:, rows, :, left:length] = own[:, :, :, : one.length]
        padding = torch.cat([one.paddings() + length - one.length for one in both])
        self.padding = padding if bool(padding.any()) else None
        self.keys, self.values, self.length = keys, values, length

    def paddings(self) -> Tensor:
        """How many columns on the left of each row hold nothing. [batch]"""
        none = torch.zeros(self.batch, dtype=torch.long, device=self.keys.device)
        return none if self.padding is None else self.padding
