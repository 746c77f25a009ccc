"""Two texts in one sequence, `source <start> target`: how an encoder-decoder takes them apart, and puts them together.

Everything in the house is a sequence of tokens. For a model that reads one text and writes another it is the same
sequence that GPT-2 would learn translation from; what stands before the start token goes to the encoder, what begins
with it to the decoder.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from cutaway.errors import CutawayError

NO_SOURCE = "The source is empty: there is nothing to translate."


@dataclass(frozen=True)
class Pairs:
    """Rows of `source <start> target`, taken apart."""

    source: Tensor
    """[row, source token], filled up on the right."""
    heard: Tensor
    """[row, source token]: True where there is a token of the source."""
    target: Tensor
    """[row, target token], the start token first; filled up on the right with what does not matter."""
    columns: Tensor
    """[row, target token]: where each stands in its row of the whole; beyond its end where there is none."""
    length: int
    """How many tokens a whole row has."""

    def spread(self, values: Tensor) -> Tensor:
        """What the decoder gives for each token of the target, at its place in the whole row; zeros at the source."""
        rows, _ = self.columns.shape
        whole = values.new_zeros(rows, self.length, *values.shape[2:])
        row, place = (self.columns < self.length).nonzero(as_tuple=True)
        return whole.index_put((row, self.columns[row, place]), values[row, place])


def take_apart(ids: Tensor, start: int) -> Pairs:
    """Rows of ids [row, token] as sources and targets, divided at the first start token of each."""
    length = ids.shape[1]
    begins = ids == start
    if not bool(begins.any(dim=1).all()):
        raise CutawayError(f"A text for this model is source, start token ({start}) and target, and this one has none.")
    first = begins.int().argmax(dim=1)  # [row]
    if not bool(first.all()):
        raise CutawayError(NO_SOURCE)
    longest, shortest = int(first.max()), int(first.min())
    columns = first[:, None] + torch.arange(length - shortest, device=ids.device)  # [row, target token]
    heard = torch.arange(longest, device=ids.device) < first[:, None]  # [row, source token]
    return Pairs(ids[:, :longest], heard, ids.gather(1, columns.clamp(max=length - 1)), columns, length)


def side_by_side(sources: list[list[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Sources of unequal length as one table, and where it holds tokens. Both [row, source token]"""
    if not all(sources):
        raise CutawayError(NO_SOURCE)
    longest = max(map(len, sources))
    ids = torch.tensor([[*one, *[0] * (longest - len(one))] for one in sources], device=device)
    lengths = torch.tensor([len(one) for one in sources], device=device)
    return ids, torch.arange(longest, device=device) < lengths[:, None]


def join_on_the_right(one: Tensor, other: Tensor, axis: int) -> Tensor:
    """The rows of two tensors, those that are shorter on this axis filled up with zeros at its end."""
    longest = max(one.shape[axis], other.shape[axis])

    def filled(value: Tensor) -> Tensor:
        shape = list(value.shape)
        shape[axis] = longest - shape[axis]
        return torch.cat([value, value.new_zeros(shape)], dim=axis) if shape[axis] else value

    return torch.cat([filled(one), filled(other)])
