"""Which tokens caused this one, or this one rather than another: by gradients on the token embeddings, by leaving
tokens out, or by attention; each with its sign, and with what the parts add up to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

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

Method = Literal["gradient", "integrated", "occlusion", "rollout", "values"]
METHODS: tuple[Method, ...] = get_args(Method)
AT_ONCE = 2048
"""How many tokens (rows x length) go through the model side by side."""


@dataclass(frozen=True)
class Target(ViewResult):
    """A token to explain."""

    position: int
    token: Token
    probability: float
    against: Token | None = None
    """The token it is explained against: why this one rather than that."""


@dataclass(frozen=True)
class Saliency(ViewResult):
    """For each target, the share of each token before it, and whether it spoke for the target or against it."""

    method: Method
    targets: tuple[Target, ...]
    span: bool
    """Whether all targets are explained together, in one row."""
    share: Table
    """The published measure, without a sign. [target, token]; a row sums to 1, and is 0 from the target on."""
    signed: Table
    """Gradient x input added up: in logits, and negative where a token speaks against the target. [target, token]"""
    norm: Line
    """The sum of a row before it was made one. [target]"""
    number: Line
    """What is explained: the target's logit, or its lead over the other token's; of a span their sum. [target]"""
    total: Line
    """What the signed parts add up to. [target]"""
    gap: Line | None
    """How far that is from what it should be: for integrated gradients and occlusion the change of the number from a
    text without any embeddings, for values what all heads add directly. None: the method promises no sum. [target]"""


def saliency(
    run: Run,
    targets: Sequence[int] | None = None,
    method: str = "gradient",
    steps: int = 16,
    against: int | str | None = None,
    span: bool = False,
) -> Saliency:
    """How much each token before a target did for its logit, or for its lead over the token `against`.

    Targets are positions of tokens in the text (-1 is the last), or its length, for the likeliest next one. Unless they
    are named, they are the tokens of the continuation, or without one the next token; with `span` they are explained
    together. Methods: gradient (x input, its L2 norm as the share), integrated (gradients, with so many `steps` from
    embeddings of zero), occlusion (each token's embedding left out), rollout (attention followed through the layers,
    which knows of no target and has no sign), values (what each token's values, weighted by attention, add directly).
    """
    if method not in METHODS:
        raise CutawayError(f"There is no method {method!r}. Known: {', '.join(METHODS)}.")
    check_count(steps, 1, "steps")
    if targets is None:
        targets = range(run.prompt, len(run)) if run.prompt < len(run) else [len(run)]
    targets = [position + len(run) if position < 0 else position for position in targets]
    if not targets:
        raise CutawayError("No token to explain is named. Name one or more, or leave them out.")
    for position in targets:
        if not 1 <= position <= len(run):
            raise CutawayError(
                f"No cause can be found for token {position}: choose one from 1 (the first has nothing before it) "
                f"to {len(run)} (the one that would come next)."
            )
    other = None if against is None else run.token(against)
    found = [Target(position, *_chosen(run, position), other) for position in targets]
    check_contrast(found, method)
    gap: Tensor | None = None
    if method == "gradient":
        parts = gradient_x_input(run, found)
    elif method == "integrated":
        rows = [integrated(run, target, steps) for target in found]
        parts, gap = torch.stack([row for row, _ in rows]), torch.stack([gap for _, gap in rows])
    else:
        parts, gap = BY_TOKEN[method](run, found)  # [target, token, 1]
    number = torch.stack([(run.logits([one.position - 1])[0] @ signs(run, one)) for one in found])
    if span:
        parts, number = parts.sum(0, keepdim=True), number.sum(0, keepdim=True)
        gap = None if gap is None else gap.sum(0, keepdim=True)
    norms, signed = parts.float().norm(dim=-1), parts.float().sum(-1)  # [target, token]
    total = norms.sum(-1)
    return Saliency(
        method, tuple(found), span, array(norms / total.clamp(min=1e-30)[:, None]), array(signed),
        array(total), array(number), array(signed.sum(-1)), None if gap is None else array(gap),
    )  # fmt: skip


def check_contrast(targets: Sequence[Target], method: str) -> None:
    """Refuse a comparison that says nothing."""
    if method == "rollout" and targets[0].against is not None:
        raise CutawayError("Attention rollout knows of no target: it cannot tell one token from another.")
    for one in targets:
        if one.against is not None and one.against.id == one.token.id:
            shown = repr(one.token.text) if one.token.text else f"id:{one.token.id}"
            raise CutawayError(f"Token {one.position} is {shown} itself: there is no difference to explain.")


def signs(run: Run, target: Target) -> Tensor:
    """Which logits are explained: +1 for the target's, -1 for the other's. [vocabulary]"""
    chosen = torch.zeros(run.lm.config.vocabulary, device=run.lm.device)
    chosen[target.token.id] = 1.0
    if target.against is not None:
        chosen[target.against.id] = -1.0
    return chosen


def output_rows(run: Run, targets: Sequence[Target]) -> Tensor:
    """The direction in which each target's number grows, at the final norm. [target, width]"""
    matrix = run.lm.model.output_matrix.detach()
    rows = matrix[[target.token.id for target in targets]]
    if targets[0].against is None:
        return rows
    return rows - matrix[[cast("Token", target.against).id for target in targets]]


def _chosen(run: Run, position: int) -> tuple[Token, float]:
    id = run.next(position - 1)  # noqa: A001
    return run.token(id), float(run.logits([position - 1])[0].softmax(-1)[id])


def logit_of(run: Run, target: Target, length: int | None = None) -> Callable[[Tensor], Tensor]:
    """A function from embeddings [batch, token, width] to the target's logit. [batch]"""
    ids = torch.tensor([run.ids[:length]], device=run.lm.device)

    def logit(embeddings: Tensor) -> Tensor:
        hidden = _read(run, ids.expand(len(embeddings), -1), embeddings)
        return hidden[:, target.position - 1] @ output_rows(run, [target])[0]

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
        logits = (hidden[at] * output_rows(run, targets)).sum(-1)  # [target]
        gradients = [torch.autograd.grad(logit, embeddings, retain_graph=True)[0][0] for logit in logits]
        return (torch.stack(gradients) * embeddings).detach()


def from_what_was_kept(run: Run, targets: Sequence[Target]) -> Tensor:
    """The same without a second forward pass, and without anything that comes after the last target."""
    at = sorted({target.position - 1 for target in targets})
    rows = torch.tensor(at, device=run.lm.device)
    with torch.inference_mode(False), torch.enable_grad():
        last = run[f"blocks.{run.lm.config.layers - 1}.residual"][rows].requires_grad_()
        hidden = run.lm.model.final_norm(last)[[at.index(target.position - 1) for target in targets]]
        logits = (hidden * output_rows(run, targets)).sum(-1)  # [target]
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


@torch.inference_mode(False)
@torch.no_grad()
def occlusion(run: Run, targets: Sequence[Target]) -> tuple[Tensor, Tensor]:
    """What each number loses when one token's embedding is left out (zero; its position stays). [target, token, 1]

    And how far these are from adding up to what it loses when all are left out.
    """
    embeddings, ids = _embeddings(run), torch.tensor([run.ids], device=run.lm.device)
    rows, at = output_rows(run, targets), [target.position - 1 for target in targets]
    last = max(at) + 1

    def numbers(some: Tensor) -> Tensor:  # of texts given as embeddings: [text, target]
        hidden = _read(run, ids.expand(len(some), -1), some)
        return (hidden[:, at] * rows).sum(-1).float()

    ends = numbers(torch.stack((embeddings, torch.zeros_like(embeddings))))
    found = []
    for piece in torch.arange(last).split(max(1, AT_ONCE // len(run))):
        without = embeddings.repeat(len(piece), 1, 1)
        without[torch.arange(len(piece)), piece] = 0
        found.append(ends[0] - numbers(without))
    parts = functional.pad(torch.cat(found).T, (0, len(run) - last))  # [target, token]
    parts = parts.masked_fill(torch.arange(len(run)) > torch.tensor(at)[:, None], 0.0)
    return parts[..., None], parts.sum(-1) - (ends[0] - ends[1])


@torch.no_grad()
def rollout(run: Run, targets: Sequence[Target]) -> tuple[Tensor, None]:
    """Attention followed through the layers (Abnar and Zuidema, 2020): half of the mean over the heads, half the token
    itself, multiplied layer by layer. [target, token, 1]; a row adds up to 1.
    """
    reached = torch.eye(len(run), device=run.lm.device)
    for layer in range(run.lm.config.layers):
        weights = run[f"blocks.{layer}.attention.weights"].float().mean(0)
        reached = (weights + torch.eye(len(run)).to(weights)) / 2 @ reached
    return reached[[target.position - 1 for target in targets]][..., None], None


@torch.no_grad()
def by_values(run: Run, targets: Sequence[Target]) -> tuple[Tensor, Tensor]:
    """What each token's values, weighted by attention, add to the number directly, in all heads. [target, token, 1]

    The final norm's scale is held, as in `path.attribution`, whose heads these are token by token.
    """
    model, at = run.lm.model, [target.position - 1 for target in targets]
    last = run[f"blocks.{run.lm.config.layers - 1}.residual"][at].float()
    directions = output_rows(run, targets).float() * model.final_norm.weight.float()
    spread = (last.var(-1, unbiased=False) + run.lm.config.norm_epsilon).sqrt()
    directions = (directions - directions.mean(-1, keepdim=True)) / spread[:, None]  # [target, width]
    parts, whole = torch.zeros(len(targets), len(run), device=run.lm.device), torch.zeros(len(targets))
    for layer in range(run.lm.config.layers):
        scope, projection = f"blocks.{layer}.attention", run.block(layer).attention.projection.weight.float()
        per_head = (directions @ projection).unflatten(-1, (run.lm.config.heads, -1))  # [target, head, head width]
        weighed = torch.einsum("hkd,nhd->nhk", run[f"{scope}.values"].float(), per_head)
        parts += torch.einsum("hnk,nhk->nk", run[f"{scope}.weights"][:, at].float(), weighed)
        whole += torch.einsum("hnd,nhd->n", run[f"{scope}.heads"][:, at].float(), per_head).cpu()
    return parts[..., None], parts.sum(-1).cpu() - whole


BY_TOKEN: dict[str, Callable[[Run, Sequence[Target]], tuple[Tensor, Tensor | None]]] = {
    "occlusion": occlusion, "rollout": rollout, "values": by_values,
}  # fmt: skip
