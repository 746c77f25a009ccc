"""A model that came without a tokenizer: ids in, ids out. Published weights often come so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from cutaway.errors import CutawayError
from cutaway.text.tokenizer import StreamDecoder, Tokenizer


class NoTokenizer(Tokenizer):
    """Stands where a tokenizer would. What needs text asks for one; a view shows token 17 as `[17]`."""

    def __init__(self, size: int, name: str):
        self.size, self.name = size, name

    def __reduce__(self) -> tuple[Any, ...]:
        return NoTokenizer, (self.size, self.name)

    def __len__(self) -> int:
        return self.size

    def encode(self, text: str | bytes, special: bool = False) -> list[int]:
        return self._missing() if text else []

    def encode_batch(self, texts: Sequence[str], special: bool = False) -> list[list[int]]:
        return [self.encode(text, special) for text in texts]

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return b"" if not list(ids) else self._missing()

    def token_bytes(self, id: int) -> bytes:  # noqa: A002
        return f"[{id}]".encode()

    def stream(self) -> StreamDecoder:
        return Silent(self)

    def save(self, folder: str | Path) -> None:
        """There is nothing to write."""

    def table(self) -> None:
        return None

    def with_specials(self, names: Iterable[str]) -> Tokenizer:
        return self._missing()

    @property
    def end(self) -> int:
        return self._missing()

    @property
    def specials(self) -> dict[str, int]:
        return {}

    @property
    def vocabulary(self) -> dict[str, int]:
        return self._missing()

    @property
    def words(self) -> dict[str, int]:
        return {}

    @property
    def merges(self) -> list[tuple[str, str]]:
        return self._missing()

    @property
    def cuts_as_gpt2(self) -> bool:
        return self._missing()

    @property
    def gpt2_ids(self) -> None:
        return None

    def _missing(self) -> NoReturn:
        raise CutawayError(
            f"{self.name} came without a tokenizer: it takes token ids and gives token ids. For text, name one: "
            "tokenizer='gpt2' (--tokenizer gpt2) if it was trained on GPT-2's tokens, or a folder that holds its own."
        )


class Silent(StreamDecoder):
    """Makes no text of any token."""

    def add(self, id: int) -> str:  # noqa: A002
        return ""
