"""Cross-entropy of tokens, as most tasks use it: of those that come next, or of any targets a task names.

Where a model shows its output matrix, this is computed without the logits: [positions, vocabulary] is never held, only
a piece of it at a time.

A piece's logits give its losses and, while they are at hand, its gradients; the next piece is written over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cutaway.tasks.task import Arrays, Batch, padded

IGNORED = -100
"""A target that does not count."""
PIECE_BYTES = 96 << 20
"""About how large a piece of the logits may be, in float32: large enough for fast matrix products, and no larger."""
LEAST_ROWS = 64
ALIGNED = 64
"""Rows of logits begin at multiples of this many columns: matrix products into odd places are a third slower."""


def next_tokens(examples: Sequence[Arrays]) -> Batch:
    """`inputs` [row, token], and as `targets` the id that comes after each, -100 where it does not count.

    What counts is the answer: all ids from `answer` on, or those marked in `counted`, or else all but the first.
    """
    inputs, targets = [], []
    for example in examples:
        ids = example["ids"].astype(np.int64)
        if "counted" in example:
            counts = example["counted"][1:] > 0
        else:
            counts = np.arange(1, len(ids)) >= (example["answer"][0] if "answer" in example else 1)
        inputs.append(ids[:-1])
        targets.append(np.where(counts, ids[1:], IGNORED))
    wanted = torch.from_numpy(padded(targets, IGNORED))
    tensors = {"inputs": torch.from_numpy(padded(inputs, 0)), "targets": wanted}
    return Batch(tensors, tokens=sum(map(len, inputs)), count=int((wanted != IGNORED).sum()))


def token_loss(
    model: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    scale: float = 1.0,
    smoothing: float = 0.0,
    hidden: Tensor | None = None,
) -> Tensor:
    """The sum of -log p(target) over the positions that count, times `scale`: ids in, and the ids wanted there.

    A model with `read` and `output_matrix` is spared its logits; of any other, `model(inputs)` are the logits. With
    label `smoothing` (which needs them, too) that share of the weight is divided between all tokens. `hidden` are the
    vectors that the model made of `inputs`, if they are there already.
    """
    matrix = getattr(model, "output_matrix", None)
    if matrix is not None and hidden is None:
        hidden = cast(Tensor, cast(Any, model).read(inputs))
    if matrix is not None and hidden is not None and smoothing:
        places = (targets != IGNORED).nonzero(as_tuple=True)
        logits = F.linear(hidden[places], matrix).float()
        return F.cross_entropy(logits, targets[places], reduction="sum", label_smoothing=smoothing) * scale
    if matrix is not None and hidden is not None:
        return next_token_loss(hidden, matrix, targets, scale)
    logits = model(inputs).flatten(0, -2).float()
    wanted = targets.flatten()
    loss = F.cross_entropy(logits, wanted, ignore_index=IGNORED, reduction="sum", label_smoothing=smoothing)
    return loss * scale


def next_token_loss(hidden: Tensor, matrix: Tensor, targets: Tensor, scale: float = 1.0) -> Tensor:
    """The sum of -log p(target) over the positions that count, times `scale`.

    `hidden` [..., width] are the vectors after the final norm, `matrix` [vocabulary, width] the token embedding,
    `targets` [...] the ids to be predicted, -100 where none is. Under autocast the products are taken in its precision.
    """
    hidden, targets = hidden.flatten(0, -2), targets.flatten()
    counts = targets != IGNORED
    if not bool(counts.all()):
        places = counts.nonzero()[:, 0]
        hidden, targets = hidden[places], targets[places]
    device = hidden.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
    learn = torch.is_grad_enabled()
    with torch.autocast(device, enabled=False):
        loss: Tensor = PieceByPiece.apply(hidden, matrix, targets, scale, dtype, learn)
    return loss


class PieceByPiece(torch.autograd.Function):
    """The loss and both gradients in one pass: going back is only handing them out."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, matrix: Tensor, targets: Tensor, scale: float, dtype: torch.dtype, learn: bool
    ) -> Tensor:
        positions, vocabulary = len(hidden), len(matrix)
        to_hidden, to_matrix = (learn and needed for needed in ctx.needs_input_grad[:2])
        whole = torch.promote_types(dtype, torch.float32)  # in which chances and sums are computed
        factor = matrix.to(dtype)
        grad_hidden = torch.empty_like(hidden) if to_hidden else None
        grad_matrix = torch.empty_like(matrix, dtype=whole) if to_matrix else None
        rows = piece_rows(positions, vocabulary)
        room = hidden.new_empty(rows, -(-vocabulary // ALIGNED) * ALIGNED, dtype=dtype)
        total = hidden.new_zeros((), dtype=whole)
        for start in range(0, positions, rows):
            piece, target = hidden[start : start + rows].to(dtype), targets[start : start + rows, None]
            padded = room[: len(piece)]
            padded[:, vocabulary:] = -torch.inf
            logits = padded[:, :vocabulary]  # [row, vocabulary], a view
            torch.mm(piece, factor.T, out=logits)
            wanted, highest = logits.gather(1, target).to(whole), padded.amax(1, keepdim=True).to(whole)
            chances = torch.softmax(padded, 1, dtype=whole, out=padded if dtype == whole else None)
            # The likeliest token's chance is exp(highest - logsumexp), and never too small to take the logarithm of.
            total += (highest - chances.amax(1, keepdim=True).log() - wanted).sum()
            if not (to_hidden or to_matrix):
                continue
            chances.scatter_add_(1, target, chances.new_full(target.shape, -1))
            if dtype != whole:
                padded.copy_(chances)
            errors = padded[:, :vocabulary]  # d loss / d logits: the chances, less one at the target
            if grad_hidden is not None:
                grad_hidden[start : start + rows] = errors @ factor
            if grad_matrix is not None:
                add_product_(grad_matrix, errors.T, piece * scale, first=start == 0)
        if grad_hidden is not None:
            grad_hidden.mul_(scale)
        if grad_matrix is not None and not positions:
            grad_matrix.zero_()
        ctx.grads = grad_hidden, grad_matrix
        return total * scale

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        given, (grad_hidden, grad_matrix) = grads[0], ctx.grads
        del ctx.grads
        if given.device.type != "cpu" or given.item() != 1:  # looking costs a wait on other devices
            grad_hidden, grad_matrix = (
                grad if grad is None else grad.mul_(given) for grad in (grad_hidden, grad_matrix)
            )
        return grad_hidden, grad_matrix, None, None, None, None


def add_product_(total: Tensor, left: Tensor, right: Tensor, first: bool) -> None:
    """Add a matrix product to a total, in the total's precision; the first one is put there instead."""
    if left.dtype == total.dtype:
        total.addmm_(left, right, beta=0 if first else 1)
    elif first:
        total.copy_(left @ right)
    else:
        total += left @ right


def piece_rows(positions: int, vocabulary: int) -> int:
    """How many positions make a piece: all pieces about equal, and none above the limit."""
    most = max(LEAST_ROWS, PIECE_BYTES // (4 * vocabulary))
    pieces = max(1, -(-positions // most))
    return max(1, -(-positions // pieces))
