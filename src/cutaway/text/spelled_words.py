"""Words spelled out, as ELMo reads them: every word is the characters between two marks, so that no word is unknown.

    Let's go  ->  <W> L e t ' s </W>  " "  <W> g o </W>

A word is a run of letters and digits, apostrophes inside it included, or any single other sign; white space belongs to
no word and stands between them as it is. A character is a byte of UTF-8. What is predicted is a word, of a list of its
own, in lower case: one that is not in the list is `<UNK>` there, and only there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from cutaway.atomic import replacing
from cutaway.errors import CutawayError
from cutaway.text.bpe_python import TokenTable
from cutaway.text.tokenizer import Tokenizer

FILE = "words.txt"
PADDING, START, END, WORD, WORD_END = range(5)
MARKS = ("<PAD>", "<S>", "</S>", "<W>", "</W>")
"""The ids below those of the bytes: what fills up, a text's begin and end (words themselves), a word's."""
FIRST_BYTE = len(MARKS)
SIZE = FIRST_BYTE + 256
UNKNOWN = "<UNK>"
LISTED = ("<S>", "</S>", UNKNOWN)
"""What the list of words begins with."""
PIECE = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


class SpelledWords(Tokenizer):
    """Texts as spelled words; `words_of` says which word each is in the list of those that can be predicted."""

    def __init__(self, listed: Sequence[str], source: str = FILE):
        if tuple(listed[: len(LISTED)]) != LISTED or len(set(listed)) != len(listed):
            raise CutawayError(
                f"{source} should have a word on each line, none of them twice, the first of them "
                f"{', '.join(LISTED)}, and does not. The file is damaged."
            )
        self.listed = tuple(listed)
        self._numbers = {word: number for number, word in enumerate(self.listed)}
        self._source = source

    def __reduce__(self) -> Any:
        return SpelledWords, (self.listed, self._source)

    @classmethod
    def learn(cls, texts: Iterable[str], size: int, progress: Callable[[int], None] | None = None) -> SpelledWords:
        """The list of the `size` most frequent words; of equally frequent ones, the first in the alphabet."""
        counts: Counter[str] = Counter()
        done = 0
        for text in texts:
            counts.update(PIECE.findall(text.lower()))
            done += len(text)
            if progress:
                progress(done)
        best = sorted(counts, key=lambda word: (-counts[word], word))
        return cls([*LISTED, *best[: max(0, size - len(LISTED))]])

    @classmethod
    def read(cls, folder: Path) -> SpelledWords:
        """The list in a folder."""
        path = folder / FILE
        try:
            lines = path.read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise CutawayError(f"{path} cannot be read as UTF-8 text: {error}.") from None
        return cls(lines[:-1] if lines[-1] == "" else lines, str(path))

    def save(self, folder: str | Path) -> None:
        """Write the file that `read` reads."""
        text = "".join(f"{word}\n" for word in self.listed)
        with replacing(Path(folder), last=FILE, stale=re.compile(r"(tokenizer|vocab)\.\w+"), size=len(text)) as new:
            (new / FILE).write_text(text, encoding="utf-8", newline="\n")

    def encode(self, text: str | bytes, special: bool = False) -> list[int]:
        """The ids of a text; the names of marks in it are text like any other."""
        if isinstance(text, bytes):
            text = text.decode("utf-8", "surrogateescape")
        ids: list[int] = []
        at = 0
        for piece in PIECE.finditer(text):
            ids += spell(text[at : piece.start()])
            ids += [WORD, *spell(piece[0]), WORD_END]
            at = piece.end()
        return ids + spell(text[at:])

    def encode_batch(self, texts: Sequence[str], special: bool = False) -> list[list[int]]:
        return [self.encode(text, special) for text in texts]

    def frame(self, first: Sequence[int], second: Sequence[int] | None = None) -> list[int]:
        """What the model reads: `<S> text </S>`."""
        if second is not None:
            raise CutawayError("An ELMo reads one text, not two: give it as one.")
        return [START, *first, END]

    def spans(self, ids: Sequence[int]) -> list[tuple[int, int]]:
        """Where each word is among the ids: its first, and the one after its last. White space is in none."""
        found, begun = [], None
        for at, one in enumerate(ids):
            if one in (START, END):
                found.append((at, at + 1))
            elif one == WORD:
                begun = at
            elif one == WORD_END and begun is not None:
                found.append((begun, at + 1))
                begun = None
        return found

    def words_of(self, ids: Sequence[int]) -> list[int]:
        """The number each word has in the list: that of `<UNK>` where it is not there."""
        unknown = self._numbers[UNKNOWN]
        marks = {START: 0, END: 1}
        return [marks.get(ids[a], self._numbers.get(self.word(ids[a:b]).lower(), unknown)) for a, b in self.spans(ids)]

    def read_as(self, ids: Sequence[int]) -> list[tuple[int, bytes]]:
        """Each word that a model reads of these ids: its number in the list, and how it is written."""
        words = [self.word(ids[a:b]).encode() for a, b in self.spans(ids)]
        return list(zip(self.words_of(ids), words, strict=True))

    def word(self, ids: Sequence[int]) -> str:
        """One word as it is written; `<S>` and `</S>` by their names."""
        return MARKS[ids[0]] if ids[0] in (START, END) else self.decode(ids)

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return b"".join(self.token_bytes(one) for one in (ids.tolist() if hasattr(ids, "tolist") else ids))

    def token_bytes(self, id: int) -> bytes:  # noqa: A002
        """The byte that an id is; a mark is none."""
        if not 0 <= id < SIZE:
            raise self._unknown(id)
        return bytes([id - FIRST_BYTE]) if id >= FIRST_BYTE else b""

    def special(self, role: str) -> int:
        """Such a model has no `[MASK]`, nor others of BERT's."""
        raise CutawayError(
            "An ELMo reads spelled words and has no [MASK]: it predicts the next word and the one before."
        )

    def with_specials(self, names: Iterable[str]) -> Tokenizer:
        raise CutawayError("Words are spelled by their characters here: no separators can be added.")

    def table(self) -> TokenTable | None:
        return None

    def __len__(self) -> int:
        return SIZE

    @property
    def end(self) -> int:
        return END

    @property
    def specials(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(MARKS)}

    @property
    def vocabulary(self) -> dict[str, int]:
        return self.specials | {f"<{byte:02x}>": FIRST_BYTE + byte for byte in range(256)}

    @property
    def merges(self) -> list[tuple[str, str]]:
        return []

    @property
    def words(self) -> dict[str, int]:
        return {}

    @property
    def cuts_as_gpt2(self) -> bool:
        return False


def spell(text: str) -> list[int]:
    """The characters of a text: its bytes."""
    return [FIRST_BYTE + byte for byte in text.encode("utf-8", "surrogateescape" if has_escapes(text) else "replace")]


def has_escapes(text: str) -> bool:
    """Whether bytes that are no UTF-8 stand in the text as half characters (and no other half characters do)."""
    return any("\udc80" <= one <= "\udcff" for one in text) and not re.search("[\ud800-\udc7f\udd00-\udfff]", text)
