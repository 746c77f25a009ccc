"""WordPiece, the tokens of BERT's family, which Chinese GPT-2 models share: `vocab.txt`, one token a line.

A text is cut into words, signs and single Chinese characters; a word becomes the longest pieces there are, those inside
it marked with `##`. Unlike GPT-2's tokens these forget where spaces were, and what no piece spells is `[UNK]`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from cutaway.atomic import replacing
from cutaway.errors import CutawayError
from cutaway.text.bpe_python import TokenTable
from cutaway.text.tokenizer import StreamDecoder, Tokenizer

VOCAB, CONFIG, DOCUMENT = "vocab.txt", "tokenizer_config.json", "tokenizer.json"
INSIDE = "##"
SPECIALS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
CLOSING = ".,!?;:)]}%"
LEAST = 64
"""A vocabulary has room for so many tokens besides the special ones."""


class WordPiece(Tokenizer):
    """A vocabulary of words and their pieces, and the settings of `BertTokenizer` that decide how a text is cut."""

    def __init__(self, tokens: dict[str, int], settings: dict[str, Any], source: str = VOCAB):
        import tokenizers
        from tokenizers import models, normalizers, pre_tokenizers

        ids = sorted(tokens.values())
        if not ids or ids != list(range(len(ids))):
            raise CutawayError(f"{source} should have one token on each line, and does not. The file is damaged.")
        self._tokens, self._settings, self._source = tokens, settings, source
        self._spellings = sorted(tokens, key=tokens.__getitem__)
        names = {role: _text(settings.get(role, usual)) for role, usual in SPECIALS.items()}
        eos = _text(settings.get("eos_token"))
        added = [_text(entry) for entry in (settings.get("added_tokens_decoder") or {}).values()]
        self._specials = {name: tokens[name] for name in [*names.values(), eos, *added] if name in tokens}
        unknown = names["unk_token"]
        if unknown not in tokens:
            raise CutawayError(f"{source} has no {unknown}, the token for unknown text.")
        self._end = next((name for name in (eos, names["sep_token"]) if name in tokens), None)
        self._roles = names
        lower = settings.get("do_lower_case", True) is not False
        engine = tokenizers.Tokenizer(models.WordPiece(tokens, unk_token=unknown, max_input_chars_per_word=100))
        engine.normalizer = normalizers.BertNormalizer(
            handle_chinese_chars=settings.get("tokenize_chinese_chars", True) is not False,
            strip_accents=settings.get("strip_accents"),
            lowercase=lower,
        )
        engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        engine.add_special_tokens(list(self._specials))
        self._with_specials = engine
        self._ordinary = tokenizers.Tokenizer.from_str(engine.to_str())
        self._ordinary.encode_special_tokens = True  # as text, that is

    def __reduce__(self) -> Any:
        return WordPiece, (self._tokens, self._settings, self._source)

    def encode(self, text: str | bytes, special: bool = False) -> list[int]:
        """The ids of a text; spaces are not among them, and what no token spells is `[UNK]`."""
        if isinstance(text, bytes):
            text = text.decode("utf-8", "replace")
        text = text.encode("utf-8", "replace").decode()  # a half character is none
        engine = self._with_specials if special else self._ordinary
        ids: list[int] = engine.encode(text, add_special_tokens=False).ids
        return ids

    def encode_batch(self, texts: Sequence[str], special: bool = False) -> list[list[int]]:
        """`encode` for each of many texts, on all cores."""
        engine = self._with_specials if special else self._ordinary
        whole = [text.encode("utf-8", "replace").decode() for text in texts]
        return [one.ids for one in engine.encode_batch_fast(whole, add_special_tokens=False)]

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """The ids of a text, and where in it each token begins and ends, in characters."""
        found = self._ordinary.encode(text, add_special_tokens=False)
        return found.ids, found.offsets

    def special(self, role: str) -> int:
        """The id of `[CLS]`, `[SEP]`, `[MASK]`, `[PAD]` or `[UNK]`, whatever this vocabulary calls it."""
        name = self._roles[f"{role}_token"]
        if name not in self._tokens:
            raise CutawayError(f"{self._source} has no {name}, which this needs.")
        return self._tokens[name]

    def frame(self, first: Sequence[int], second: Sequence[int] | None = None) -> list[int]:
        """What BERT reads: `[CLS] first [SEP]`, or `[CLS] first [SEP] second [SEP]`."""
        start, end = self.special("cls"), self.special("sep")
        return [start, *first, end] if second is None else [start, *first, end, *second, end]

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        size: int,
        specials: Sequence[str] = (),
        progress: Callable[[int], None] | None = None,
        lower: bool = True,
    ) -> WordPiece:
        """A new vocabulary of at most `size` tokens, learned from texts, which are read one at a time and not kept.

        With `lower`, capitals and accents are taken away, as in BERT's uncased models.
        """
        from tokenizers import trainers

        named = dict.fromkeys((*SPECIALS.values(), *specials))
        if size < len(named) + LEAST:
            raise CutawayError(f"A vocabulary of {size:,} tokens is too small: give {len(named) + LEAST:,} or more.")
        settings = {"do_lower_case": lower}
        engine = cls({name: at for at, name in enumerate(named)}, settings)._ordinary
        trainer = trainers.WordPieceTrainer(
            vocab_size=size, special_tokens=list(named), limit_alphabet=min(1_000, size // 4), show_progress=False
        )
        engine.train_from_iterator(_told([texts] if isinstance(texts, str) else texts, progress), trainer)
        notes = {str(at): {"content": name, "special": True} for at, name in enumerate(named)}
        return cls(engine.get_vocab(with_added_tokens=True), {**settings, "added_tokens_decoder": notes})

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes of these tokens, with a space wherever two words would run together."""
        stream = self.stream()
        return "".join(stream.add(i) for i in (ids.tolist() if hasattr(ids, "tolist") else ids)).encode()

    def token_bytes(self, id: int) -> bytes:  # noqa: A002
        return self.spelling(id).removeprefix(INSIDE).encode()

    def spelling(self, token: int) -> str:
        """One token as `vocab.txt` has it."""
        if not 0 <= token < len(self._spellings):
            raise self._unknown(token)
        return self._spellings[token]

    def stream(self) -> StreamDecoder:
        return WordPieceStream(self)

    def save(self, folder: str | Path) -> None:
        """Write the files that `load`, and `AutoTokenizer` in `transformers`, read the same tokenizer from."""
        text = "".join(f"{token}\n" for token in self._spellings)
        stale = re.compile(r"tokenizer\.json|vocab\.json|merges\.txt")  # another tokenizer's would be read instead
        with replacing(Path(folder), last=CONFIG, stale=stale, size=len(text)) as new:
            (new / VOCAB).write_text(text, encoding="utf-8", newline="\n")
            settings = {"tokenizer_class": "BertTokenizer", **self._settings}
            (new / CONFIG).write_text(json.dumps(settings, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")

    def with_specials(self, names: Iterable[str]) -> WordPiece:
        added = [name for name in dict.fromkeys(names) if name not in self._tokens]
        tokens = self._tokens | {name: len(self) + i for i, name in enumerate(added)}
        known = self._settings.get("added_tokens_decoder") or {}
        notes = {str(tokens[name]): {"content": name, "special": True} for name in added}
        return WordPiece(tokens, {**self._settings, "added_tokens_decoder": {**known, **notes}}, self._source)

    def table(self) -> TokenTable | None:
        return None

    def __len__(self) -> int:
        return len(self._spellings)

    @property
    def end(self) -> int:
        """The id of `[SEP]`, after which a text of such a model ends."""
        if self._end is None:
            raise CutawayError(f"{self._source} has no [SEP], which would end a text.")
        return self._tokens[self._end]

    @property
    def specials(self) -> dict[str, int]:
        return dict(self._specials)

    @property
    def vocabulary(self) -> dict[str, int]:
        return {token: i for i, token in enumerate(self._spellings)}

    @property
    def merges(self) -> list[tuple[str, str]]:
        return []

    @property
    def words(self) -> dict[str, int]:
        return {}

    @property
    def cuts_as_gpt2(self) -> bool:
        return False


class WordPieceStream(StreamDecoder):
    """Tokens to text one at a time; every token is whole characters, so nothing ever waits."""

    def __init__(self, tokenizer: WordPiece):
        self._pieces, self._last = tokenizer, ""

    def add(self, id: int) -> str:  # noqa: A002
        token = self._pieces.spelling(id)
        inside = token.startswith(INSIDE) and token not in self._pieces._specials
        piece = token.removeprefix(INSIDE) if inside else token
        before = self._last in self._pieces._specials or _spaced(self._last[-1:]) or self._last[-1:] in CLOSING
        apart = not inside and before and (token in self._pieces._specials or _spaced(piece[:1]))
        space = " " if apart and self._last else ""
        self._last = piece
        return space + piece

    def finish(self) -> str:
        self._last = ""
        return ""


def holds_wordpiece(folder: Path) -> bool:
    """Whether the tokenizer in a folder is WordPiece: a vocab.txt and no files of another, or so its document says."""
    others = ("vocab.json", "merges.txt", "encoder.json", "vocab.bpe")
    if (folder / VOCAB).is_file() and not any((folder / name).is_file() for name in others):
        return True
    path = folder / DOCUMENT
    if not path.is_file() or b'"WordPiece"' not in path.read_bytes():
        return False
    model = _object(path).get("model")
    return isinstance(model, dict) and model.get("type") == "WordPiece"


def read_wordpiece(folder: Path) -> WordPiece:
    """The tokenizer in a folder with `vocab.txt`, or with `tokenizer.json` alone."""
    settings: dict[str, Any] = {}
    document = _object(folder / DOCUMENT) if (folder / DOCUMENT).is_file() else {}
    if document:
        settings |= _settings_of(document, folder / DOCUMENT)
    for name in ("special_tokens_map.json", CONFIG):
        if (folder / name).is_file():
            settings |= {key: one for key, one in _object(folder / name).items() if one is not None}
    path = folder / VOCAB
    if not path.is_file():
        path = folder / DOCUMENT
        vocabulary = document["model"].get("vocab")
        if not isinstance(vocabulary, dict) or not all(type(one) is int for one in vocabulary.values()):
            raise CutawayError(f"{path} should have a table of tokens and their numbers, and has none.")
        added = {_text(one): one["id"] for one in document.get("added_tokens") or () if isinstance(one, dict)}
        return WordPiece({**vocabulary, **added}, settings, str(path))
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise CutawayError(f"{path} cannot be read as UTF-8 text: {error}.") from None
    tokens = [line.rstrip("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]
    if len(set(tokens)) != len(tokens):
        twice = next(token for i, token in enumerate(tokens) if token in tokens[:i])
        raise CutawayError(f"{path} has {twice!r} on two lines, so it is not clear which number it has.")
    return WordPiece({token: i for i, token in enumerate(tokens)}, settings, str(path))


def _object(path: Path) -> dict[str, Any]:
    """What a JSON file holds; nothing, if it holds something else than an object."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CutawayError(f"{path} cannot be read: {error}.") from None
    return found if isinstance(found, dict) else {}


def _settings_of(document: dict[str, Any], path: Path) -> dict[str, Any]:
    """The settings that a `tokenizer.json` states in its own way; refused, if it cuts texts by another rule."""
    normalizer, cutter = document.get("normalizer") or {}, document.get("pre_tokenizer") or {}
    if normalizer.get("type") != "BertNormalizer" or cutter.get("type") != "BertPreTokenizer":
        raise CutawayError(
            f"{path} is not a byte-level BPE, nor WordPiece by BERT's rules: it cuts texts by another rule than BERT's."
        )
    names = {
        "lowercase": "do_lower_case",
        "strip_accents": "strip_accents",
        "handle_chinese_chars": "tokenize_chinese_chars",
    }
    found = {ours: normalizer[theirs] for theirs, ours in names.items() if normalizer.get(theirs) is not None}
    notes = {str(one["id"]): one for one in document.get("added_tokens") or () if isinstance(one, dict) and "id" in one}
    return found | ({"added_tokens_decoder": notes} if notes else {})


def _told(texts: Iterable[str], progress: Callable[[int], None] | None) -> Iterator[str]:
    """The texts, and after each how many characters there have been."""
    done = 0
    for text in texts:
        yield text.encode("utf-8", "replace").decode()
        done += len(text)
        if progress:
            progress(done)


def _text(entry: Any) -> str:
    """A special token's text, as the settings give it: the text itself, or an object that has it."""
    found = entry.get("content") if isinstance(entry, dict) else entry
    return found if isinstance(found, str) else ""


def _spaced(character: str) -> bool:
    """Whether words of this character are written with spaces between: letters and digits, but not Chinese ones."""
    ideographic = "\u2e80" <= character <= "\u9fff" or "\uf900" <= character <= "\uffef" or character >= "\U00020000"
    return character.isalnum() and not ideographic
