"""Learning a vocabulary from text: counting words in bounded pieces, and the merges that shorten them most."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from cutaway.errors import CutawayError
from cutaway.text import bpe
from cutaway.text.vocabulary import ALPHABET, END, Vocabulary

BLOCK = 1 << 20
"""Files are read so many bytes at a time."""
CHUNK = 1 << 16
"""Texts are handed on about so many characters at a time: the library that counts takes 256 pieces at once."""
LONGEST = 256
"""Longer words are counted in parts of so many bytes: a token as long would be of no use, and the time grows with the
square of a word's length."""
RAREST = 2
"""A pair that occurs less often is not worth a token."""

_OPEN: dict[str, Callable[[IO[bytes]], Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


def learn(
    texts: Iterable[str], size: int, specials: Sequence[str] = (END,), progress: Callable[[int], None] | None = None
) -> Vocabulary:
    """The vocabulary of at most `size` tokens that these texts teach, with ids as GPT-2's: bytes, merges, specials."""
    room = size - len(ALPHABET) - len(dict.fromkeys(specials))
    if room < 0:
        raise CutawayError(
            f"A vocabulary of {size:,} tokens is too small for the 256 bytes and {len(specials)} special tokens: "
            f"the smallest size is {size - room:,}."
        )
    merges = _merges(_chunks([texts] if isinstance(texts, str) else texts, specials, progress), room)
    tokens = {letter: i for i, letter in enumerate(ALPHABET.values())}
    for first, second in merges:
        tokens.setdefault(first + second, len(tokens))
    return Vocabulary(tokens, merges, {}, None).add(specials)


def read_texts(files: Sequence[str | Path], progress: Callable[[int, int], None] | None = None) -> Iterator[str]:
    """The text of the files, in pieces that cut no word; `progress` hears the bytes read, and of how many."""
    paths = [Path(file) for file in ([files] if isinstance(files, str | Path) else files)]
    if not paths:
        raise CutawayError("There are no files to train on.")
    for path in paths:
        if not path.is_file():
            raise CutawayError(f"{path} " + ("is not a file." if path.exists() else "does not exist."))
    return _read(paths, progress)


def _read(paths: Sequence[Path], progress: Callable[[int, int], None] | None) -> Iterator[str]:
    done, total = 0, sum(path.stat().st_size for path in paths)
    for path in paths:
        with path.open("rb") as file:
            for text in _texts(file, path):
                yield text
                if progress:
                    progress(done + file.tell(), total)
        done += path.stat().st_size
    if progress:
        progress(total, total)


def _texts(file: IO[bytes], path: Path) -> Iterator[str]:
    """One file's text, block by block, each up to the last place where it may be cut."""
    unpacked = _OPEN[path.suffix](file) if path.suffix in _OPEN else file
    decoder = codecs.getincrementaldecoder("utf-8")()
    rest, at, more = "", 0, True
    while more:
        try:
            block = unpacked.read(BLOCK)
            more = bool(block)
            rest += decoder.decode(block, final=not more)
        except UnicodeDecodeError as error:
            where = at - len(error.object) + len(block) + error.start
            raise CutawayError(
                f"{path} is not UTF-8 text: byte {where:,} does not fit. Convert it, for example with "
                f"`iconv -f latin1 -t utf-8`, or drop what does not fit with `iconv -c -f utf-8 -t utf-8`."
            ) from None
        except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
            raise CutawayError(f"{path} cannot be read: {error}. Is it complete?") from None
        at += len(block)
        cut = _last_border(rest) if more else len(rest)
        if cut == 0 and len(rest) > BLOCK:  # one word as long as that: cut it
            cut = len(rest)
        if cut:
            yield rest[:cut]
            rest = rest[cut:]


def _last_border(text: str) -> int:
    """The last place where the text can be cut without cutting a word; 0 when there is none."""
    for reach in (1_000, len(text)):
        borders = [border.start() for border in bpe.BORDER.finditer(text, max(0, len(text) - reach))]
        if borders:
            return borders[-1]
    return 0


def _chunks(texts: Iterable[str], specials: Sequence[str], progress: Callable[[int], None] | None) -> Iterator[str]:
    """The texts without special tokens, in pieces short enough to hand on many at once."""
    special, read = bpe.any_of(specials), 0
    for text in texts:
        whole = text if text.isascii() else text.encode("utf-8", "ignore").decode()  # half characters teach nothing
        for part in special.split(whole)[::2] if special else [whole]:
            yield from bpe.chunks(part, CHUNK)
        read += len(text)
        if progress:
            progress(read)
    if not read:
        raise CutawayError("There is no text to train on.")


def _merges(pieces: Iterator[str], most: int) -> list[tuple[str, str]]:
    """The merges that shorten these texts most, most useful first."""
    import json

    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.ByteLevel(add_prefix_space=False), pre_tokenizers.FixedLength(LONGEST)]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=len(ALPHABET) + most,
        min_frequency=RAREST,
        initial_alphabet=list(ALPHABET.values()),
        show_progress=False,
    )
    _interruptible(lambda going_on: learner.train_from_iterator(going_on(pieces), trainer))
    return [(first, second) for first, second in json.loads(learner.to_str())["model"]["merges"]]


def _interruptible(work: Callable[[Callable[[Iterator[str]], Iterator[str]]], None]) -> None:
    """Do the work in a thread of its own, so that Ctrl-C ends it: the library does not look for it.

    The work gets a function to put around what it reads, which is where it can be stopped.
    """
    stop = threading.Event()
    failed: list[BaseException] = []

    def going_on(items: Iterator[str]) -> Iterator[str]:
        for item in items:
            if stop.is_set():
                raise KeyboardInterrupt
            yield item

    def run() -> None:
        try:
            work(going_on)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="bpe-training", daemon=True)
    try:  # from before the start: Ctrl-C can come at any line, and would leave the thread reading for ever
        thread.start()
        while thread.is_alive():
            thread.join(0.1)
    except BaseException:
        stop.set()
        raise
    if failed:
        raise failed[0]
