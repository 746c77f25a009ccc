"""What turns things into tokens and back: texts (text/), piano performances (music/)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class StreamDecoder(Protocol[T_co]):
    """Tokens to a thing one at a time: what `add` and `finish` give, added up, is `decode` of all the tokens."""

    def add(self, token: int, /) -> T_co:
        """What this token completes; the rest of it waits for the next."""

    def finish(self) -> T_co:
        """What is still waiting; after that something new may begin."""


class Codec(Protocol[T]):
    """One vocabulary. Never changes: share it freely."""

    def __len__(self) -> int:
        """How many tokens there are; their ids begin at 0."""

    @property
    def end(self) -> int:
        """The token that ends a thing, and that every one begins after."""

    def encode(self, item: T, /) -> list[int]:
        """The tokens of a thing, the end not among them."""

    def decode(self, ids: Iterable[int], /) -> T:
        """The thing that these tokens are."""

    def stream(self) -> StreamDecoder[T]:
        """A decoder that takes one token at a time."""
