"""Gradients down the stack, block by block, from what a run has kept on its way up.

A graph of the whole model would need a second forward pass. Of the values that the chain rule asks for, a run has the
stream, keys and values; a block makes its queries and activations again, and none of its three other products.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from cutaway.inspect.runs import Run


def down_the_stack(run: Run, rows: Tensor, gradients: Tensor) -> Tensor:
    """Gradients at the vectors that leave the last block -> at those that enter the first.

    `rows` are the positions in their order, `gradients` [target, row, width] theirs; the others' are zero. What comes
    back is [target, token, width], for the tokens up to the last of the rows.
    """
    everything = torch.arange(int(rows[-1]) + 1, device=rows.device)
    with torch.inference_mode(False), torch.enable_grad():
        for layer in reversed(range(run.lm.config.layers)):
            gradients = through_mlp(run, layer, rows, gradients)
            gradients = through_attention(run, layer, rows, gradients)
            rows = everything
    return gradients


def through_mlp(run: Run, layer: int, rows: Tensor, gradients: Tensor) -> Tensor:
    """After the MLP -> before its norm, where it was added to the stream. [target, row, width]"""
    block = run.block(layer)
    middle = run[f"blocks.{layer}.residual.middle"][rows].requires_grad_()
    activation = block.mlp.activation(block.mlp.widen(block.mlp_norm(middle)))  # [row, neuron]
    wanted = gradients @ block.mlp.projection.weight.detach()  # [target, row, neuron]
    return gradients + torch.stack([_gradient(activation, middle, one) for one in wanted])


def through_attention(run: Run, layer: int, rows: Tensor, gradients: Tensor) -> Tensor:
    """After attention -> before its norm: from the queries of these rows to all they may look at."""
    block, name = run.block(layer), f"blocks.{layer}.attention"
    attention, tokens = block.attention, int(rows[-1]) + 1
    stream = run.before(layer)[:tokens].clone().requires_grad_()
    norm = block.attention_norm(stream)  # [token, width]
    makers = attention.queries_keys_values
    width = norm.shape[-1]
    queries = F.linear(norm.detach()[rows], makers.weight[:width], makers.bias[:width]).detach()
    queries = attention.split(queries[None]).requires_grad_()  # [1, head, row, head width]
    keys = run[f"{name}.keys"][None, :, :tokens].clone().requires_grad_()  # [1, head, token, head width]
    values = run[f"{name}.values"][None, :, :tokens].clone().requires_grad_()
    some = len(rows) < tokens
    mask = torch.arange(tokens, device=rows.device) <= rows[:, None] if some else None  # [row, token]
    merged = attention.attend(queries, keys, values, mask).transpose(1, 2).flatten(-2)[0]  # [row, width]
    found = []
    for one, wanted in zip(gradients, gradients @ attention.projection.weight.detach(), strict=True):
        at_parts = torch.autograd.grad(merged, (queries, keys, values), wanted, retain_graph=True)
        at_queries, at_keys, at_values = (part.transpose(1, 2).flatten(-2)[0] for part in at_parts)
        at_both = torch.cat((at_keys, at_values), -1) @ makers.weight[width:].detach()  # [token, width]
        at_norm = at_both.index_add(0, rows, at_queries @ makers.weight[:width].detach())
        found.append(_gradient(norm, stream, at_norm).index_add(0, rows, one))
    return torch.stack(found)


def _gradient(value: Tensor, by: Tensor, outer: Tensor) -> Tensor:
    return torch.autograd.grad(value, by, outer, retain_graph=True)[0]
