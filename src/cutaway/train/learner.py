"""What is trained: a model with its task's loss, and the ways to make its blocks faster or smaller in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from cutaway.models.architecture import blocks
from cutaway.parts.gelu import fast_gelu, gelu_tanh
from cutaway.tasks import Task

if TYPE_CHECKING:
    from cutaway.train.teacher import Teacher


class Learner(nn.Module):
    """A model and what it is to be better at. One call is one way through the model, up to the loss.

    With a teacher it learns from that, too; held-out data is measured by the task's own loss.
    """

    def __init__(self, model: nn.Module, task: Task, teacher: Teacher | None = None):
        super().__init__()
        self.model, self.task = model, task
        self.teacher = teacher  # no module: its weights are none of the learner's

    def forward(self, batch: Mapping[str, Tensor], scale: float = 1.0) -> tuple[Tensor, dict[str, Tensor]]:
        """The sum of the losses of what counts in a batch, times `scale`, and the task's metrics: plain values, so
        that what divides a model between processes finds the tensors among them."""
        if self.teacher is not None and self.training:
            loss = self.teacher.loss(self.task, self.model, batch, scale)
        else:
            loss = self.task.loss(self.model, batch, scale)
        return loss.sum, dict(loss.metrics)


def prepare_blocks(model: nn.Module, compiled: bool, recompute: bool) -> None:
    """Have every block compiled, or computed again on the way back instead of remembered, or both."""
    for block in blocks(model):
        for module in block.modules():
            if getattr(module, "activation", None) is gelu_tanh and not compiled:
                setattr(module, "activation", fast_gelu)  # noqa: B010
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
