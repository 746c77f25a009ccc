"""Muon: for the blocks' matrices, a step that turns every direction of the gradient by the same amount.

AdamW looks at each number of a matrix by itself. Muon (K. Jordan, 2024) looks at the matrix: of the averaged gradient,
U S V', it takes U V', by a few products in place of a decomposition. Embeddings, biases and norms stay with AdamW, and
one learning rate does for both: the step is scaled to the size AdamW's would have (J. Liu et al., 2025).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

MOMENTUM = 0.95
ROUNDS = 5
FACTORS = (3.4445, -4.7750, 2.0315)
"""Of the polynomial that, applied again and again, brings all singular values near one."""
SIZE = 0.2
"""How large a number of AdamW's steps is, in the mean, for a learning rate of one."""


class Muon(torch.optim.AdamW):
    """AdamW, but for groups marked `whole`, whose matrices are stepped as matrices; their one moment is `exp_avg`."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        groups = self.param_groups
        try:
            self.param_groups = [group for group in groups if not group.get("whole")]
            loss = super().step(closure)
        finally:
            self.param_groups = groups
        for group in groups:
            if group.get("whole"):
                for matrix in group["params"]:
                    if matrix.grad is not None:
                        self.turn(matrix, matrix.grad, group)
        return loss

    def turn(self, matrix: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        kept = self.state[matrix]
        if "exp_avg" not in kept:
            kept["step"], kept["exp_avg"] = torch.tensor(0.0), torch.zeros_like(matrix)
        kept["step"] += 1
        average = kept["exp_avg"].lerp_(grad, 1 - MOMENTUM)
        ahead = grad.lerp(average, MOMENTUM)  # Nesterov's look ahead
        matrix.mul_(1 - group["lr"] * group["weight_decay"])
        matrix.add_(orthogonal(ahead), alpha=-group["lr"] * SIZE * max(matrix.shape) ** 0.5)


def orthogonal(matrix: Tensor) -> Tensor:
    """Nearly U V' of a matrix U S V': its directions, all with a length of about one (between 0.7 and 1.2)."""
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / (x.norm() + 1e-7)
    a, b, c = FACTORS
    for _ in range(ROUNDS):
        squared = x @ x.T
        x = torch.addmm(x, torch.addmm(squared, squared, squared, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x
