"""Another head on the same stack: what a task needs that the model does not have yet."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from cutaway.errors import CutawayError
from cutaway.models.architecture import architecture
from cutaway.models.bert.model import Bert


@torch.no_grad()
def with_head(model: nn.Module, head: str, labels: int = 2) -> Bert:
    """The model with this head, and all weights that it has already; what is new has new weights."""
    if not isinstance(model, Bert):
        config: Any = model.config
        title = architecture(config.kind).title
        raise CutawayError(f"This is for a BERT, which reads in both directions, and this model is a {title}.")
    shape = model.config.but(head=head, labels=labels, pooler=model.config.pooler)
    if shape == model.config:
        return model
    weight = model.token_embedding.weight
    with torch.device("meta" if weight.is_meta else "cpu"):
        other = Bert(shape).to(weight.device, weight.dtype)
    if not weight.is_meta:
        kept = model.state_dict()
        fitting = {
            name: one for name, one in other.state_dict().items() if name in kept and kept[name].shape == one.shape
        }
        other.load_state_dict({**other.state_dict(), **{name: kept[name] for name in fitting}})
    return other
