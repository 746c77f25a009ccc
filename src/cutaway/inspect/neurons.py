"""The neurons of the MLPs: which ones fire, at which tokens, and which next tokens they speak for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cutaway.checks import check_count
from cutaway.inspect.numbers import Array, Line, Table, Token, ViewResult, array
from cutaway.inspect.runs import Run
from cutaway.parts.trace import within

WRITES = 5


@dataclass(frozen=True)
class Neuron(ViewResult):
    """One neuron over the whole text."""

    layer: int
    neuron: int
    activations: Line
    """[token]"""
    at: int
    """The token that excites it most."""
    writes: tuple[tuple[Token, float], ...]
    """The next tokens whose logits it raises most (by how much for each 1 of activation, before the norm's scale)."""
    told = ("peak",)

    @property
    def peak(self) -> float:
        return float(self.activations[self.at])


@dataclass(frozen=True)
class Neurons(ViewResult):
    """The strongest neurons of some layers, at one token or anywhere, and how many fire at all."""

    position: int | None
    layers: tuple[int, ...]
    active: Table
    """The share of a layer's neurons that are above 0. [layer, token]"""
    neurons: tuple[Neuron, ...]


@torch.no_grad()
def neurons(run: Run, layers: Sequence[int] | None = None, top: int = 10, position: int | None = None) -> Neurons:
    """The neurons of these layers (of all) with the highest activation: at one token, or anywhere in the text."""
    check_count(top, 1, "neurons")
    chosen = run.layers(layers)
    position = None if position is None else run.position(position)
    active, candidates = list[Tensor](), list[tuple[float, int, int, Tensor]]()
    for layer in chosen:
        values = run.activations(layer).float()  # [token, neuron]: of a long text only one layer is at hand at a time
        active.append((values > 0).float().mean(-1))
        best = (values.amax(0) if position is None else values[position]).topk(min(top, values.shape[1]))
        over = values[:, best.indices].T  # [neuron, token]
        candidates += [
            (value, layer, neuron, line)
            for value, neuron, line in zip(best.values.tolist(), best.indices.tolist(), over, strict=True)
        ]
    strongest = sorted(candidates, key=lambda one: (-one[0], one[1:3]))[:top]
    return Neurons(
        position,
        tuple(chosen),
        array(torch.stack(active)),
        tuple(describe(run, [one[1:] for one in strongest])),
    )


@torch.no_grad()
def neuron(run: Run, layer: int, index: int) -> Neuron:
    """One neuron by its layer and its number."""
    layer, index = run.layer(layer), within("neuron", index, run.lm.config.mlp_width)
    return describe(run, [(layer, index, run.activations(layer)[:, index].float())])[0]


@torch.no_grad()
def describe(run: Run, which: Sequence[tuple[int, int, Tensor]]) -> list[Neuron]:
    """These neurons (layer, number, activations [token]), in this order."""
    model = run.lm.model
    matrix = model.output_matrix[: len(run.lm.tokenizer)].float()
    added = torch.stack([run.block(layer).mlp.projection.weight[:, number].float() for layer, number, _ in which])
    direction = (added - added.mean(-1, keepdim=True)) * model.final_norm.weight.float()  # [neuron, width]
    best = (direction @ matrix.T).topk(min(WRITES, len(matrix)))  # [neuron, WRITES]
    return [
        Neuron(
            layer,
            number,
            array(values),
            int(values.argmax()),
            tuple((run.token(one), logit) for one, logit in zip(ids, logits, strict=True)),
        )
        for (layer, number, values), ids, logits in zip(which, best.indices.tolist(), best.values.tolist(), strict=True)
    ]


@torch.no_grad()
def activations(run: Run, layers: Sequence[int]) -> Array:
    """All the neurons of these layers, layer after layer, over the text. [neuron, token]"""
    return array(torch.cat([run.activations(layer).float().T for layer in layers]))
