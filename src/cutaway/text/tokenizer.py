"""Text to tokens and back: byte-level BPE, as GPT-2 does it."""

from __future__ import annotations

import codecs
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from cutaway.errors import CutawayError
from cutaway.processor import cores
from cutaway.text import bpe
from cutaway.text.bpe_python import ShortTexts, TokenTable, merge_by_list, merge_by_table
from cutaway.text.vocabulary import ALPHABET, END, Vocabulary, read_vocabulary, write_vocabulary

_GPT2 = Path(__file__).parents[1] / "data" / "gpt2"
_ESCAPED = re.compile("([\udc80-\udcff]+)")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_HALF = re.compile("[\ud800-\udc7f\udd00-\udfff]")
_BATCH = 1 << 15  # characters: below that, starting threads costs more than they bring


class Tokenizer:
    """Cuts a text into the tokens of one vocabulary, and puts tokens together again. Never changes: share it freely."""

    _read: Callable[[], Vocabulary]

    def __init__(self, vocabulary: Vocabulary):
        table = vocabulary.table()
        self._vocabulary = vocabulary
        self._bytes: dict[int, bytes] | TokenTable = dict(enumerate(table))
        self._engine: bpe.Engine | ShortTexts
        if vocabulary.scheme is None and vocabulary.complete:
            ranks = {pair: rank for rank, pair in reversed(list(enumerate(vocabulary.merges)))}
            merged = functools.partial(merge_by_list, ranks, vocabulary.tokens)
            self._engine = ShortTexts(merged, vocabulary.specials, lambda: bpe.engine(vocabulary, table))
        else:
            self._engine = bpe.engine(vocabulary, table)

    @classmethod
    def from_table(cls, table: TokenTable, specials: dict[str, int], read: Callable[[], Vocabulary]) -> Tokenizer:
        """A tokenizer that begins to work at once; `read` gives the vocabulary if ever the whole of it is needed."""
        made = cls.__new__(cls)
        made._read, made._bytes = read, table
        merged = functools.partial(merge_by_table, table)
        made._engine = ShortTexts(merged, specials, lambda: bpe.engine(made._vocabulary, made._vocabulary.table()))
        return made

    def table(self) -> TokenTable | None:
        """What `from_table` takes; None if this vocabulary follows other rules than GPT-2's."""
        if isinstance(self._bytes, TokenTable):
            return self._bytes
        engine = self._engine.full if isinstance(self._engine, ShortTexts) else self._engine
        if not isinstance(engine, bpe.ByRank) or engine.ids is not None:
            return None
        names = [*ALPHABET.values(), *self._vocabulary.made]
        return TokenTable.of(list(self._bytes.values()), {self._vocabulary.tokens[name] for name in names})

    @functools.cached_property
    def _vocabulary(self) -> Vocabulary:
        return self._read()

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[Vocabulary]]:
        return Tokenizer, (self._vocabulary,)

    @classmethod
    def load(cls, source: str | Path = "gpt2") -> Tokenizer:
        """GPT-2's own tokenizer ("gpt2"), or the one in a folder.

        The folder holds tokenizer.json, or vocab.json and merges.txt, or OpenAI's encoder.json and vocab.bpe. A file of
        packed weights and a GGUF file hold their tokenizer too; beside nanoGPT's ckpt.pt there may be a meta.pkl.
        """
        if source == "gpt2":
            return _gpt2()
        for read_model in READERS:
            if (found := read_model(Path(source))) is not None:
                return found
        return cls.from_folder(Path(source))

    @classmethod
    def from_folder(cls, folder: Path) -> Tokenizer:
        """The tokenizer whose files are in a folder: byte-level BPE, WordPiece, Marian's, or ELMo's list of words."""
        if (folder / "source.spm").is_file():
            from cutaway.text import sentencepieces

            return sentencepieces.read_sentencepieces(folder)
        if (folder / "words.txt").is_file():
            from cutaway.text import spelled_words

            return spelled_words.SpelledWords.read(folder)
        if not (folder / "vocab.txt").is_file():
            try:
                return cls(read_vocabulary(folder))
            except CutawayError:
                if not (folder / "tokenizer.json").is_file():
                    raise
        from cutaway.text import wordpiece

        return wordpiece.read_wordpiece(folder) if wordpiece.holds_wordpiece(folder) else cls(read_vocabulary(folder))

    def save(self, folder: str | Path) -> None:
        """Write the files that `load`, and `AutoTokenizer` in `transformers`, read the same tokenizer from."""
        write_vocabulary(self._vocabulary, Path(folder))

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        size: int,
        specials: Sequence[str] = (END,),
        progress: Callable[[int], None] | None = None,
    ) -> Tokenizer:
        """A new vocabulary of at most `size` tokens, learned from texts; `progress` hears how many characters are read.

        The texts are read one at a time and not kept; their words are. A special token in them only divides them.
        """
        from cutaway.text import bpe_training

        return cls(bpe_training.learn(texts, size, specials, progress))

    @classmethod
    def train_files(
        cls,
        files: Sequence[str | Path],
        size: int,
        specials: Sequence[str] = (END,),
        progress: Callable[[int, int], None] | None = None,
    ) -> Tokenizer:
        """`train` on UTF-8 files of any size, .gz, .xz, .bz2 too; `progress` hears the bytes read, and of how many."""
        from cutaway.text import bpe_training

        return cls(bpe_training.learn(bpe_training.read_texts(files, progress), size, specials))

    def with_specials(self, names: Iterable[str]) -> Tokenizer:
        """The same tokenizer with these special tokens more, for a task that needs separators; their ids come last."""
        return Tokenizer(self._vocabulary.add(names))

    def encode(self, text: str | bytes, special: bool = False) -> list[int]:
        """The ids of a text. Any bytes will do: `decode_bytes` gives them back.

        A special token's name in the text is text like any other, unless `special` says that it is the token.
        """
        if isinstance(text, str) and not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:  # half characters, from a command line or from JSON
                text = _mended(text)
        if isinstance(text, bytes):
            try:
                return self._engine.encode(text.decode(), special)
            except UnicodeDecodeError:
                return self._encode_mixed(text, special)
        return self._engine.encode(text, special)

    def _encode_mixed(self, data: bytes, special: bool) -> list[int]:
        """Where the bytes are UTF-8 they are cut as text; what is not goes straight to the merges."""
        parts = _ESCAPED.split(data.decode("utf-8", "surrogateescape"))  # text, bytes, text, ...
        return bpe.joined(
            self._engine.encode_bytes(part.encode("utf-8", "surrogateescape"))
            if i % 2
            else self._engine.encode(part, special)
            for i, part in enumerate(parts)
        )

    def encode_batch(self, texts: Sequence[str], special: bool = False) -> list[list[int]]:
        """`encode` for each of many texts, on all cores."""
        share = max(_BATCH, sum(map(len, texts)) // (4 * cores()))
        groups = list(_groups(texts, share))
        return bpe.joined(bpe.spread(lambda group: [self.encode(text, special) for text in group], groups))

    def decode(self, ids: Iterable[int]) -> str:
        """The text of these tokens; bytes that are no character become U+FFFD."""
        return self.decode_bytes(ids).decode("utf-8", "replace")

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes of these tokens."""
        if hasattr(ids, "tolist"):  # an array's or tensor's own numbers are slow to use one by one
            ids = ids.tolist()
        try:
            return b"".join([self._bytes[i] for i in ids])
        except KeyError as error:
            raise self._unknown(error.args[0]) from None

    def token_bytes(self, id: int) -> bytes:  # noqa: A002
        """The bytes of one token."""
        try:
            return self._bytes[id]
        except KeyError:
            raise self._unknown(id) from None

    def stream(self) -> StreamDecoder:
        """A decoder that takes one token at a time and never gives half a character."""
        return StreamDecoder(self)

    def __len__(self) -> int:
        return len(self._bytes)

    @property
    def end(self) -> int:
        """The id of `<|endoftext|>`, which ends a text; in other people's vocabularies it may have another name."""
        if self._vocabulary.end is None:
            raise CutawayError(f"{self._vocabulary.source} has no {END}. Add one: tokenizer.with_specials([{END!r}]).")
        return self._vocabulary.specials[self._vocabulary.end]

    @property
    def target(self) -> Tokenizer:
        """What cuts the answers of a model that reads one text and writes another: itself, except for Marian's."""
        return self

    @property
    def specials(self) -> dict[str, int]:
        """The special tokens and their ids."""
        return dict(self._vocabulary.specials)

    @property
    def vocabulary(self) -> dict[str, int]:
        """Every token as GPT-2's files spell it (`Ġ` is a space), and its id, in the order of the ids."""
        return self._vocabulary.spellings()

    @property
    def merges(self) -> list[tuple[str, str]]:
        """Which neighbours become one token, first come first served, spelled the same way."""
        return list(self._vocabulary.merges)

    @functools.cached_property
    def gpt2_ids(self) -> list[int] | None:
        """The id that each token has in GPT-2's vocabulary, if this one is a part of it; None if it is none, or all.

        A part has some of GPT-2's tokens in GPT-2's order, and of each that two others are merged into, those two: a
        text made of its tokens is then cut as GPT-2 cuts it.
        """
        return _ids_in(self._vocabulary, _gpt2_vocabulary()) if self.cuts_as_gpt2 else None

    @property
    def cuts_as_gpt2(self) -> bool:
        """Whether texts are cut into words by GPT-2's rule; a tokenizer.json may bring one of its own."""
        return self._vocabulary.cuts_as_gpt2

    @property
    def words(self) -> dict[str, int]:
        """Texts that are one token wherever they stand, without merges, and their ids."""
        return dict(self._vocabulary.words)

    def _unknown(self, token: object) -> CutawayError:
        return CutawayError(
            f"There is no token {token!r}: this vocabulary's ids run from 0 to {len(self) - 1:,}. "
            "Do the model and the tokenizer belong together?"
        )


READERS: list[Callable[[Path], Tokenizer | None]] = []
"""What `Tokenizer.load` asks first: checkpoint/, which knows the files and folders that models lie in, is on it."""


class StreamDecoder:
    """Tokens to text one at a time: what `add` and `finish` give, joined, is `decode` of all the tokens."""

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, id: int) -> str:  # noqa: A002
        """The characters that this token completes; the rest of it waits for the next."""
        return self._decoder.decode(self._tokenizer.token_bytes(id))

    def finish(self) -> str:
        """What is still waiting, as U+FFFD; after that a new text may begin."""
        rest = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return rest


@functools.cache
def _gpt2() -> Tokenizer:
    return Tokenizer(_gpt2_vocabulary())


@functools.cache
def _gpt2_vocabulary() -> Vocabulary:
    return read_vocabulary(_GPT2)


def _ids_in(part: Vocabulary, whole: Vocabulary) -> list[int] | None:
    """The ids of one vocabulary's tokens in another of which it is a part."""
    every = whole.spellings()
    ids = [every.get(name, -1) for name in part.spellings()]
    if len(ids) >= len(every) or -1 in ids or ids != sorted(ids) or set(part.specials) - set(whole.specials):
        return None
    kept = part.tokens.keys()
    return ids if part.merges == [pair for pair in whole.merges if "".join(pair) in kept] else None


def _mended(text: str) -> bytes:
    """The bytes meant by a text with half characters (surrogates) in it.

    Two halves are one character; a half that stands for a byte, as in a command line that is not UTF-8, is that byte;
    any other is U+FFFD.
    """
    whole = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    return _HALF.sub("\ufffd", whole).encode("utf-8", "surrogateescape")


def _groups(texts: Sequence[str], share: int) -> Iterator[Sequence[str]]:
    """The texts in runs of about so many characters each."""
    start = length = 0
    for i, text in enumerate(texts, 1):
        length += len(text)
        if length >= share or i == len(texts):
            yield texts[start:i]
            start, length = i, 0
