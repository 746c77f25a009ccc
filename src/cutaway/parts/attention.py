"""Attention of any query to any key, for models other than GPT-2: step by step where someone watches, else fused."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from cutaway.parts.trace import UNWATCHED, Watch


def attend(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, dropout: float = 0.0, watch: Watch = UNWATCHED
) -> Tensor:
    """[batch, head, query, head_width] from queries, keys and values; `mask` is True where a query may attend."""
    if not watch.watching:
        return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, dropout_p=dropout)
    scores = watch("scores", queries @ keys.mT / math.sqrt(queries.shape[-1]))  # [batch, head, query, key]
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    masked = watch("masked", scores)  # [batch, head, query, key]
    weights = watch("weights", masked.softmax(dim=-1))  # [batch, head, query, key]; each row sums to 1
    return watch("heads", F.dropout(weights, dropout) @ values)  # [batch, head, query, head_width]
