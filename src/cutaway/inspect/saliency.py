"""Which tokens caused this one: gradient x input, and integrated gradients, on the token embeddings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from cutaway.checks import check_count
from cutaway.errors import CutawayError
from cutaway.inspect.backward import down_the_stack
from cutaway.inspect.numbers import Line, Table, Token, ViewResult, array
from cutaway.inspect.runs import Run
from cutaway.parts.trace import Fused

Method = Literal["gradient", "integrated"]
METHODS = ("gradient", "integrated")
AT_ONCE = 2048
"""How many tokens (rows x length) go through the model side by side."""


@dataclass(frozen=True)
class Target(ViewResult):
    """A token to explain."""

    position: int
    token: Token
    probability: float


@dataclass(frozen=True)
class Saliency(ViewResult):
    """For each target, the share of each token before it, and whether it spoke for the target or against it."""

    method: Method
    targets: tuple[Target, ...]
    share: Table
    """The published measure, without a sign. [target, token]; a row sums to 1, and is 0 from the target on."""
    signed: Table
    """Gradient x input added up: in logits, and negative where a token speaks against the target. [target, token]"""
    norm: Line
    """The sum of a row before it was made one. [target]"""
    gap: Line | None
    """Integrated only: how far its parts are from adding up to the change of the logit. [target]"""


def saliency(run: Run, targets: Sequence[int] | None = None, method: str = "gradient", steps: int = 16) -> Saliency:
    """How much each token before a target did for its logit: L2 norm of gradient x input, normalised; and its sum.

    Targets are positions of tokens in the text (-1 is the last), or its length, for the likeliest next one. Unless they
    are named, they are the tokens of the continuation, or without one the next token. `steps` is for integrated
    gradients only: the points on the way from embeddings of zero to the real ones.
    """
    if method not in METHODS:
        raise CutawayError(f"There is no method {method!r}. Known: {', '.join(METHODS)}.")
    check_count(steps, 1, "steps")
    if targets is None:
        targets = range(run.prompt, len(run)) if run.prompt < len(run) else [len(run)]
    targets = [position + len(run) if position < 0 else position for position in targets]
    for position in targets:
        if not 1 <= position <= len(run):
            raise CutawayError(
                f"No cause can be found for token {position}: choose one from 1 (the first has nothing before it) "
                f"to {len(run)} (the one that would come next)."
            )
    found = [Target(position, *_chosen(run, position)) for position in targets]
    if method == "gradient":
        parts, gap = gradient_x_input(run, found), None
    else:
        rows = [integrated(run, target, steps) for target in found]
        parts, gap = torch.stack([row for row, _ in rows]), array(torch.stack([gap for _, gap in rows]))
    norms = parts.float().norm(dim=-1)  # [target, token]
    total = norms.sum(-1)
    share, signed = array(norms / total.clamp(min=1e-30)[:, None]), array(parts.float().sum(-1))
    return Saliency(cast("Method", method), tuple(found), share, signed, array(total), gap)


def _chosen(run: Run, position: int) -> tuple[Token, float]:
    id = run.next(position - 1)  # noqa: A001
    return run.token(id), float(run.logits([position - 1])[0].softmax(-1)[id])


def logit_of(run: Run, target: Target, length: int | None = None) -> Callable[[Tensor], Tensor]:
    """A function from embeddings [batch, token, width] to the target's logit. [batch]"""
    ids = torch.tensor([run.ids[:length]], device=run.lm.device)

    def logit(embeddings: Tensor) -> Tensor:
        hidden = _read(run, ids.expand(len(embeddings), -1), embeddings)
        return hidden[:, target.position - 1] @ run.lm.model.output_matrix.detach()[target.token.id]

    return logit


def _read(run: Run, ids: Tensor, embeddings: Tensor) -> Tensor:
    trace = Fused((), {**run.trace.replace, "token_embedding": embeddings})
    return run.lm.model.read(ids, trace=trace)


def _embeddings(run: Run, length: int | None = None) -> Tensor:
    return run["token_embedding"][:length].clone()  # [token, width]


def gradient_x_input(run: Run, targets: Sequence[Target]) -> Tensor:
    """The gradient of each target's logit at the token embeddings, times these. [target, token, width]"""
    if not run.trace.replace:
        return from_what_was_kept(run, targets)
    with torch.inference_mode(False), torch.enable_grad():
        ids = torch.tensor([run.ids], device=run.lm.device)
        embeddings = _embeddings(run)[None].requires_grad_()
        hidden = _read(run, ids, embeddings)[0]  # [token, width]
        at = [target.position - 1 for target in targets]
        logits = (hidden[at] * run.lm.model.output_matrix.detach()[[target.token.id for target in targets]]).sum(
            -1
        )  # [target]
        gradients = [torch.autograd.grad(logit, embeddings, retain_graph=True)[0][0] for logit in logits]
        return (torch.stack(gradients) * embeddings).detach()


def from_what_was_kept(run: Run, targets: Sequence[Target]) -> Tensor:
    """The same without a second forward pass, and without anything that comes after the last target."""
    at = sorted({target.position - 1 for target in targets})
    rows = torch.tensor(at, device=run.lm.device)
    with torch.inference_mode(False), torch.enable_grad():
        last = run[f"blocks.{run.lm.config.layers - 1}.residual"][rows].requires_grad_()
        hidden = run.lm.model.final_norm(last)[[at.index(target.position - 1) for target in targets]]
        logits = (hidden * run.lm.model.output_matrix.detach()[[target.token.id for target in targets]]).sum(
            -1
        )  # [target]
        gradients = torch.stack([torch.autograd.grad(logit, last, retain_graph=True)[0] for logit in logits])
    parts = down_the_stack(run, rows, gradients) * _embeddings(run, at[-1] + 1)
    return functional.pad(parts, (0, 0, 0, len(run) - parts.shape[1])).detach()


def integrated(run: Run, target: Target, steps: int) -> tuple[Tensor, Tensor]:
    """Integrated gradients from embeddings of zero: their parts [token, width], and how far these miss the sum."""
    with torch.inference_mode(False), torch.enable_grad():
        logit = logit_of(run, target)
        embeddings = _embeddings(run)
        points, widths = np.polynomial.legendre.leggauss(steps)
        alphas = torch.tensor((points + 1) / 2).to(embeddings)
        sizes = torch.tensor(widths / 2).to(embeddings)
        mean = torch.zeros_like(embeddings)
        for piece in torch.arange(steps).split(max(1, AT_ONCE // len(run))):
            inputs = (alphas[piece, None, None] * embeddings).requires_grad_()
            [gradient] = torch.autograd.grad(logit(inputs).sum(), inputs)
            mean += (sizes[piece, None, None] * gradient).sum(0)
        parts = mean * embeddings
        ends = logit(torch.stack([torch.zeros_like(embeddings), embeddings])).detach()
        return parts.detach(), (parts.sum() - (ends[1] - ends[0])).detach()
