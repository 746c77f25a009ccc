"""What is trained: a model with its task's loss, and the ways to make its blocks faster or smaller in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from cutaway.models.gpt2.model import GPT
from cutaway.tasks import ClassTask, Task
from cutaway.tasks.head import Classifier, by_record, label_loss
from cutaway.train.data.batches import IGNORED, Batch
from cutaway.train.gelu import gelu
from cutaway.train.loss import next_token_loss


class Learner(nn.Module):
    """A model and what it is to be better at. One call is one way through the model, up to the loss."""

    def __init__(self, model: GPT | Classifier, task: Task):
        super().__init__()
        self.model, self.task = model, task

    @property
    def gpt(self) -> GPT:
        return self.model.gpt if isinstance(self.model, Classifier) else self.model

    def forward(
        self, inputs: Tensor, targets: Tensor, labels: Tensor | None, last: Tensor | None, scale: float = 1.0
    ) -> tuple[Tensor, Tensor]:
        """The sum of the losses of what counts in a batch, times `scale`; and how many records are classed right."""
        if isinstance(self.model, Classifier):
            assert labels is not None and last is not None
            task = cast(ClassTask, self.task)
            scores = self.model(inputs, last)
            wanted = labels[:: task.rows]
            right = (by_record(scores.detach(), task).argmax(dim=1) == wanted).sum()
            return label_loss(scores, labels, task) * (len(wanted) * scale), right
        hidden = self.model.read(inputs)
        output = self.model.output
        matrix = self.model.token_embedding.weight if output is None else output.weight
        return next_token_loss(hidden, matrix, targets, scale), hidden.new_zeros(())


def counted(batch: Batch, task: Task, world: int = 1) -> tuple[int, int]:
    """How many losses there are in a batch, here and over all processes: one for a target, or one for a record."""
    if batch.labels is None:
        return batch.counted, batch.counted_in_all
    records = len(batch.labels) // task.rows
    return records, records * world


def pieces(
    batch: Batch, rows: int, device: torch.device
) -> Iterator[tuple[Tensor, Tensor, Tensor | None, Tensor | None]]:
    """A batch in pieces of so many rows, each without the columns that none of its rows needs.

    A batch without rows gives one row that counts nothing: processes that share a model go through it together.
    """
    if not len(batch.inputs):
        batch = nothing(batch, rows)
    for start in range(0, len(batch.inputs), rows):
        some = slice(start, start + rows)
        targets = batch.targets[some]
        labels, last = (None if one is None else one[some] for one in (batch.labels, batch.last))
        counts = (targets != IGNORED).any(dim=0).nonzero()
        width = int(last.max()) + 1 if last is not None else int(counts[-1]) + 1 if len(counts) else 1
        parts = (batch.inputs[some, :width], targets[:, :width], labels, last)
        yield cast(Any, tuple(None if part is None else part.to(device, non_blocking=True) for part in parts))


def nothing(batch: Batch, rows: int) -> Batch:
    zeros = torch.zeros(rows, dtype=torch.long)
    empty = batch.labels is None
    return replace(
        batch,
        inputs=zeros[:, None],
        targets=torch.full((rows, 1), IGNORED),
        labels=None if empty else zeros,
        last=None if empty else zeros,
    )


def prepare_blocks(model: GPT, compiled: bool, recompute: bool) -> None:
    """Have every block compiled, or computed again on the way back instead of remembered, or both."""
    for block in model.blocks:
        if model.config.activation == "gelu_tanh" and not compiled:
            setattr(block.mlp, "activation", gelu)  # noqa: B010
        run: Callable[..., Tensor] = block.forward
        if compiled:
            run = torch.compile(run)
        if recompute:
            run = recomputing(run)
        setattr(block, "forward", run)  # noqa: B010  (mypy does not let a method be assigned)


def recomputing(run: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def again(*args: Any) -> Tensor:
        if not torch.is_grad_enabled():
            return run(*args)
        return cast(Tensor, checkpoint(run, *args, use_reentrant=False))

    return again
