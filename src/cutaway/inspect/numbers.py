"""How results become JSON: every field by its name, arrays as lists of six significant digits, tokens with their bytes.

A result is a frozen dataclass; the OpenAPI document and the browser's types say what its fields say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_type_hints

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from torch import Tensor

    from cutaway.text.tokenizer import Tokenizer

Array = npt.NDArray[np.float32]
DIGITS = 6


@dataclass(frozen=True)
class Axes:
    """How deep the lists are that an array becomes, and whether numbers in it can be missing (null)."""

    count: int
    holes: bool = False


Line = Annotated[Array, Axes(1)]
Table = Annotated[Array, Axes(2)]
Cube = Annotated[Array, Axes(3)]


class ViewResult:
    """The base of results: every field is told under its own name, unless its class says otherwise."""

    told: ClassVar[tuple[str, ...]] = ()
    """Properties that are told as well; "top=pairs" is told as `top` and read from `pairs`, in place of a field."""
    hidden: ClassVar[tuple[str, ...]] = ()
    """Fields that are not told."""
    optional: ClassVar[tuple[str, ...]] = ()
    """What is left out where it is None."""

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        found = {name: plain(getattr(self, attribute)) for name, attribute in told_names(type(self)).items()}
        return {name: value for name, value in found.items() if value is not None or name not in self.optional}


def told_names(kind: type[ViewResult]) -> dict[str, str]:
    """The names in the JSON of a result, and the field or property that each is read from."""
    own = {field.name: field.name for field in fields(kind)}  # type: ignore[arg-type]
    more = {name: attribute or name for name, _, attribute in (one.partition("=") for one in kind.told)}
    return {name: attribute for name, attribute in {**own, **more}.items() if name not in kind.hidden}


def told_types(kind: type[ViewResult]) -> dict[str, Any]:
    """The names in the JSON of a result, and the Python type of each."""
    hints = get_type_hints(kind, include_extras=True)

    def of(attribute: str) -> Any:
        if attribute in hints:
            return hints[attribute]
        return get_type_hints(getattr(kind, attribute).fget, include_extras=True)["return"]

    return {name: of(attribute) for name, attribute in told_names(kind).items()}


def plain(value: Any) -> Any:
    """A value as JSON knows it: results by their names, tuples as lists, numbers rounded."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "detach"):
        return rounded(array(value))
    return rounded(value)


@dataclass(frozen=True)
class Token(ViewResult):
    """An entry of the vocabulary: its id and its bytes."""

    id: int
    bytes: bytes
    gpt2: int | None = None
    """The id it has in GPT-2's vocabulary, where this one is a part of that."""
    told = ("text", "bytes=hex")
    optional = ("gpt2",)

    @property
    def hex(self) -> str:
        return self.bytes.hex(" ")

    @property
    def text(self) -> str | None:
        """The token as text, or None where its bytes are only part of a character."""
        try:
            return self.bytes.decode()
        except UnicodeDecodeError:
            return None


def token(tokenizer: Tokenizer, id: int) -> Token:  # noqa: A002
    """An entry of the vocabulary; some models have more scores than their tokenizer has tokens: those have no bytes."""
    if id >= len(tokenizer):
        return Token(id, b"")
    return Token(id, tokenizer.token_bytes(id), tokenizer.gpt2_ids[id] if tokenizer.gpt2_ids else None)


def tokens_of(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[Token, ...]:
    """What a model reads of these ids, one for each of its vectors: a token is an id, but a spelled word many."""
    if hasattr(tokenizer, "read_as"):
        return tuple(Token(number, word) for number, word in tokenizer.read_as(ids))
    return tuple(token(tokenizer, one) for one in ids)


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
