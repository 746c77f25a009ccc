"""int4 with care: rounding that makes up for itself, on texts like those the model reads (GPTQ, Frantar et al. 2022).

What rounding one weight leaves over is passed on to the weights of the same row not rounded yet. How much of it they
can take over depends on which inputs come together, so the model reads a few texts first, which it writes itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from cutaway.codec import Codec
from cutaway.decoding.generate import generate
from cutaway.decoding.settings import Settings
from cutaway.models.gpt2.model import GPT, Block
from cutaway.runtime.native.engine import Engine
from cutaway.runtime.native.pack import OUTPUT, Packed, pack

TEXTS, LENGTH = 16, 256
"""How many texts the model writes to be calibrated on, and how long they may be."""
FEWEST = 64
"""With fewer tokens than this in all of them nothing is learned of the inputs."""
DAMPING = 0.01
"""Added to the second moments, in shares of their mean: inputs that hardly ever came up are not trusted. Where that
leaves no factor ten times as much is tried, and then a hundred times."""
QUICK = 10_000_000
"""Weights a model may have to be calibrated while it is loaded: a few seconds. `cutaway convert` always does it."""
MATRICES = ("attention.queries_keys_values", "attention.projection", "mlp.widen", "mlp.projection")

Factor = npt.NDArray[np.float32]


def pack_calibrated(model: GPT, codec: Codec[str], progress: Callable[[int, int], None] | None = None) -> Packed:
    """A model's weights as int4, calibrated on what the model itself writes."""
    texts = writing(model, codec)
    enough = sum(map(len, texts)) >= FEWEST
    return pack(model, "int4", progress, factors(model, texts) if enough else None)


def writing(model: GPT, codec: Codec[str]) -> list[list[int]]:
    """Texts of the model's own, each after the end token; int8 writes them several times faster than torch."""
    settings = Settings(max_tokens=min(LENGTH, model.config.context) - 1, seed=1, samples=TEXTS, top_k=None)
    written = generate(Engine(pack(model, "int8")), codec, [[]], settings)
    return [[model.config.end, *each.ids] for each in written]


@torch.inference_mode()
def factors(model: GPT, texts: list[list[int]]) -> Iterator[tuple[str, Factor]]:
    """For each matrix of the blocks and the output, in their order: its name, and how it may make up for its rounding.

    Block by block: of all that is needed for the next matrix, no more than one block's is ever held.
    """
    device = model.token_embedding.weight.device
    streams = []
    for ids in texts:
        stream = model.token_embedding(torch.tensor(ids, device=device))
        if model.position_embedding is not None:
            stream = stream + model.position_embedding(torch.arange(len(ids), device=device))
        streams.append(stream)
    for layer, block in enumerate(model.blocks):
        moments = {name: torch.zeros(()) for name in MATRICES}
        hooks = [block.get_submodule(name).register_forward_pre_hook(adding(moments, name)) for name in MATRICES]
        try:
            streams = [read_block(block, stream) for stream in streams]
        finally:
            for hook in hooks:
                hook.remove()
        for name in MATRICES:
            yield f"blocks.{layer}.{name}.weight", factor(moments.pop(name))
    normed = [model.final_norm(stream).float() for stream in streams]
    yield OUTPUT, factor(torch.stack([one.T @ one for one in normed]).sum(0))


def read_block(block: torch.nn.Module, stream: Tensor) -> Tensor:
    assert isinstance(block, Block)
    return block.forward(stream[None])[0]


def adding(moments: dict[str, Tensor], name: str) -> Callable[..., None]:
    def hook(module: torch.nn.Module, given: tuple[Any, ...]) -> None:
        inputs = given[0].flatten(0, -2).float()  # [token, input]
        moments[name] = moments[name] + inputs.T @ inputs

    return hook


def factor(moments: Tensor) -> Factor:
    """The upper Cholesky factor of the inverse of the second moments [input, input]."""
    size, one = float(moments.diagonal().mean()) or 1.0, torch.eye(len(moments))
    for share in (DAMPING, 10 * DAMPING, 100 * DAMPING):
        lower, failed = torch.linalg.cholesky_ex(moments.cpu() + one * (size * share))
        if not failed:
            upper, failed = torch.linalg.cholesky_ex(torch.cholesky_inverse(lower), upper=True)
        if not failed:
            return upper.contiguous().numpy()
    return one.numpy()  # as if no two inputs came together: plain rounding
