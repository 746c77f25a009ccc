"""What tells one set of weights from another: for files that were made with them and are read again later."""

from __future__ import annotations

import hashlib

import torch
from torch import nn

SAMPLED = 64


@torch.no_grad()
def fingerprint(model: nn.Module) -> str:
    """A digest of every parameter's name, shape and some of its numbers, spread over all of it."""
    digest = hashlib.sha256()
    for name, parameter in model.named_parameters():
        flat = parameter.detach().flatten()
        some = flat[:: max(1, len(flat) // SAMPLED)].float().cpu().numpy()
        digest.update(f"{name} {tuple(parameter.shape)}".encode() + some.tobytes())
    return digest.hexdigest()[:16]
