"""The three forms that word vectors are passed on in, and how they are told apart.

word2vec's text      a line with how many words and how long, then a line for each: the word and its numbers
word2vec's binary    the same first line, then for each the word, a space, its numbers as float32, a line feed
GloVe's              word2vec's text without the first line
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import numpy as np

from cutaway.atomic import written_beside
from cutaway.errors import CutawayError
from cutaway.words.vectors import WordVectors

FORMS = ("word2vec", "binary", "glove")
LONGEST_WORD = 4_096
MOST = 1 << 34
"""A table is refused that would take more bytes: a wrong first line must not fill the memory."""


def read_vectors(path: str | Path, limit: int | None = None) -> WordVectors:
    """The vectors in a file of any of the three forms; with `limit` only the first so many."""
    path = Path(path)
    if limit is not None and limit < 1:
        raise CutawayError(f"The limit of words must be 1 or more, not {limit}.")
    try:
        with path.open("rb") as file:
            first = file.readline(1 << 20)
            head = header(first)
            if head is None:
                file.seek(0)
                return read_text(path, file, None, limit)
            count, width = head
            if not count or not width or count * width * 4 > MOST:
                raise CutawayError(f"{path} announces {count:,} vectors of {width:,} numbers: that cannot be.")
            begun = file.tell()
            binary = is_binary(file.read(4_096), width)
            file.seek(begun)
            return (read_binary if binary else read_text)(path, file, head, limit)
    except OSError as error:
        raise CutawayError(f"{path} cannot be read: {error.strerror or error}.") from None


def header(line: bytes) -> tuple[int, int] | None:
    """How many vectors and how long, if a first line says so."""
    parts = line.split()
    return (int(parts[0]), int(parts[1])) if len(parts) == 2 and all(one.isdigit() for one in parts) else None


def is_binary(sample: bytes, width: int) -> bool:
    """Whether what follows the first line is binary: its first line is no word with as many numbers."""
    line = sample.split(b"\n")[0].split()
    whole = b"\n" in sample
    try:
        [float(one) for one in (line[-width:] if whole else line[1:-1])]
    except ValueError:
        return True
    return whole and len(line) < width + 1


def read_text(path: Path, file: BinaryIO, head: tuple[int, int] | None, limit: int | None) -> WordVectors:
    """A line for each word. A word may have spaces in it: the last numbers are the vector."""
    words: list[str] = []
    rows: list[np.ndarray] = []
    width = head[1] if head else 0
    for number, line in enumerate(file, 2 if head else 1):
        if limit is not None and len(words) == limit:
            break
        parts = line.rstrip().split(b" ")
        if parts == [b""]:
            continue
        width = width or len(parts) - 1
        if len(parts) < width + 1 or not width:
            raise CutawayError(
                f"{path}, line {number:,}: {len(parts) - 1:,} numbers after the word, and {width:,} are expected. "
                "Is it a file of word vectors?"
            )
        try:
            word = b" ".join(parts[: len(parts) - width]).decode("utf-8")
            rows.append(np.array([float(one) for one in parts[-width:]], np.float32))
        except UnicodeDecodeError:
            raise CutawayError(f"{path}, line {number:,}: the word is not UTF-8.") from None
        except ValueError as error:
            raise CutawayError(f"{path}, line {number:,}: {error}. Is it a file of word vectors?") from None
        words.append(word)
    if not words:
        raise CutawayError(f"{path} holds no word vectors.")
    if head and limit is None and len(words) != head[0]:
        raise CutawayError(f"{path} announces {head[0]:,} vectors and holds {len(words):,}: it is not whole.")
    return WordVectors(words, np.stack(rows), path.stem)


def read_binary(path: Path, file: BinaryIO, head: tuple[int, int], limit: int | None) -> WordVectors:
    """Word, space, numbers; between two of them may be a line feed."""
    count, width = head
    count = min(count, limit or count)
    words: list[str] = []
    rows: list[np.ndarray] = []
    for number in range(count):
        letters = bytearray()
        while (one := file.read(1)) != b" ":
            if not one or len(letters) > LONGEST_WORD:
                raise CutawayError(f"{path} announces {head[0]:,} vectors and ends after {number:,}: it is not whole.")
            letters += one
        data = file.read(4 * width)
        if len(data) < 4 * width:
            raise CutawayError(f"{path} announces {head[0]:,} vectors and ends after {number:,}: it is not whole.")
        try:
            words.append(bytes(letters).lstrip(b"\n").decode("utf-8"))
        except UnicodeDecodeError:
            raise CutawayError(f"{path}: word {number + 1:,} is not UTF-8.") from None
        rows.append(np.frombuffer(data, "<f4"))
    return WordVectors(words, np.stack(rows), path.stem)


def write_vectors(vectors: WordVectors, path: str | Path, form: str = "word2vec") -> None:
    """Write a file that `read_vectors`, and gensim, read the same vectors from."""
    if form not in FORMS:
        raise CutawayError(f"Unknown form {form!r}. Known: {', '.join(FORMS)}.")
    unfit = next((word for word in vectors.words if not word or word.strip() != word or "\n" in word), None)
    if unfit is None and form == "binary":
        unfit = next((word for word in vectors.words if " " in word), None)
    if unfit is not None:
        raise CutawayError(f"The word {unfit!r} cannot be written in this form: white space would end it.")
    with written_beside(Path(path)) as beside, beside.open("wb") as file:
        if form != "glove":
            file.write(f"{len(vectors)} {vectors.width}\n".encode())
        for word, row in zip(vectors.words, vectors.table, strict=True):
            numbers = row.astype("<f4").tobytes() if form == "binary" else " ".join(map(plain, row)).encode()
            file.write(word.encode() + b" " + numbers + b"\n")


def plain(number: np.float32) -> str:
    """As many digits as tell it from every other float32."""
    return np.format_float_positional(number, trim="-")
