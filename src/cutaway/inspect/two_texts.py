"""What the decoder of a model of two texts looks at: the weight of each token of the source for each of the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from cutaway.errors import CutawayError
from cutaway.inspect.numbers import Table, Token, ViewResult, token
from cutaway.models.architecture import architecture, places, start_of
from cutaway.parts.trace import within

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel

RECURRENT, CROSS = "decoder.attention.weights", ".cross.weights"


@dataclass(frozen=True)
class Alignment(ViewResult):
    """Which tokens of the source were looked at while each token of the target was written."""

    source: tuple[Token, ...]
    """As the encoder reads it, with the token that ends it, if one does."""
    target: tuple[Token, ...]
    layer: int | None
    """The block of the decoder; None for a model with one attention."""
    head: int | None
    """None is the mean over all heads."""
    weights: Table
    """[target token, source token]: each row sums to one."""


def alignment(lm: LanguageModel, source: str, target: str, layer: int = -1, head: int | None = None) -> Alignment:
    """The attention to the source while the target is written: of one block (the last), all its heads or one.

    The row of a token is what was looked at when it was still to come.
    """
    start = start_of(lm.config)
    if start is None:
        title = architecture(lm.config.kind).title
        raise CutawayError(f"{lm.name} is a {title}, which reads one text: there are no two texts to be aligned.")
    names = [name for name in places(lm.config) if name == RECURRENT or name.endswith(CROSS)]
    if not names:
        raise CutawayError(
            f"{lm.name} has no attention: its decoder knows the encoder's last hidden state, and looks at no token."
        )
    ids = lm.pair(source, target)
    begins = ids.index(start)
    if begins + 1 == len(ids):
        raise CutawayError("There is no target: give the text whose tokens are to be aligned with the source's.")
    single = names == [RECURRENT]
    name = names[0 if single else within("layer", layer, len(names))]
    weights: torch.Tensor = lm.trace(ids, keep=name)[name].float()
    if single:
        layer, head = -1, None
    else:
        weights = weights.mean(dim=0) if head is None else weights[within("head", head, len(weights))]
    return Alignment(
        tuple(token(lm.tokenizer, one) for one in ids[:begins]),
        tuple(token(lm.tokenizer, one) for one in ids[begins + 1 :]),
        None if single else names.index(name),
        head,
        weights[:-1].numpy(),
    )
