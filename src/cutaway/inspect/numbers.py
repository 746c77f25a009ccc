"""How results become JSON: arrays as lists of six significant digits, tokens with their bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from torch import Tensor

    from cutaway.text.tokenizer import Tokenizer

Array = npt.NDArray[np.float32]
DIGITS = 6


@dataclass(frozen=True)
class Token:
    """An entry of the vocabulary: its id and its bytes."""

    id: int
    bytes: bytes
    gpt2: int | None = None
    """The id it has in GPT-2's vocabulary, where this one is a part of that."""

    @property
    def text(self) -> str | None:
        """The token as text, or None where its bytes are only part of a character."""
        try:
            return self.bytes.decode()
        except UnicodeDecodeError:
            return None

    def to_dict(self) -> dict[str, Any]:
        found = {"id": self.id, "text": self.text, "bytes": self.bytes.hex(" ")}
        return found if self.gpt2 is None else {**found, "gpt2": self.gpt2}


def token(tokenizer: Tokenizer, id: int) -> Token:  # noqa: A002
    """An entry of the vocabulary; some models have more scores than their tokenizer has tokens: those have no bytes."""
    if id >= len(tokenizer):
        return Token(id, b"")
    return Token(id, tokenizer.token_bytes(id), tokenizer.gpt2_ids[id] if tokenizer.gpt2_ids else None)


def array(tensor: Tensor) -> Array:
    """A tensor's numbers as an array of its own, whatever they were stored as."""
    found = looked_at(tensor)
    return found if found.base is None else found.copy()


def looked_at(tensor: Tensor) -> Array:
    """A tensor's numbers to look at and not to keep: where they can be, the very ones, not copied."""
    found: Array = tensor.detach().float().cpu().numpy()
    return found


def rounded(value: Any) -> Any:
    """Numbers to six significant digits, arrays as nested lists; what is not finite becomes None, as JSON wants it."""
    if isinstance(value, Mapping):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    if isinstance(value, np.ndarray):
        return _round(value.astype(np.float64)) if value.dtype.kind == "f" else value.tolist()
    if isinstance(value, float):
        return _round(np.array(value))
    return value


def _round(value: npt.NDArray[np.float64]) -> Any:
    finite = np.isfinite(value)
    size = np.abs(np.where(finite & (value != 0), value, 1.0))
    places = DIGITS - 1 - np.floor(np.log10(size))
    # A power of ten is exact up to 22; dividing by one rounds once, so that 0.1 is written 0.1.
    places = np.clip(places, -300, 300)
    up, down = 10.0 ** np.maximum(places, 0), 10.0 ** np.maximum(-places, 0)
    near = np.where(finite, np.round(np.where(finite, value, 0.0) / down * up) / up * down, 0.0)
    if finite.all():
        return near.tolist()
    spaced = near.astype(object)
    spaced[~finite] = None
    return spaced.tolist()
