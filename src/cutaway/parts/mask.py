"""Which key each query may attend to."""

from __future__ import annotations

import torch
from torch import Tensor


def causal_mask(queries: int, keys: int, padding: Tensor | None, device: torch.device) -> Tensor:
    """True where a query (row) attends to a key (column): not the future, not padding. [batch or 1, 1, query, key]"""
    key = torch.arange(keys, device=device)
    mask = (key[None, :] <= torch.arange(keys - queries, keys, device=device)[:, None])[None, None]
    if padding is None:
        return mask
    real = key[None] >= padding[:, None]  # [batch, key]
    # A padding token looks at itself, so that its softmax is a number; nobody ever looks at it.
    itself = key[None, :] == torch.arange(keys - queries, keys, device=device)[:, None]
    return mask & real[:, None, None] | itself
