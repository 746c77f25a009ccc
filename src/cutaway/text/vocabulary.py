"""What a vocabulary is, and the files it is kept in.

Tokens are bytes. The files spell each byte as one visible character, as GPT-2's do: `Ġthe` is a space and `the`.
"""

from __future__ import annotations

import errno
import json
import re
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from cutaway.atomic import written_beside
from cutaway.errors import CutawayError

END = "<|endoftext|>"

_VISIBLE = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
_HIDDEN = [byte for byte in range(256) if byte not in _VISIBLE]
ALPHABET = {**{byte: chr(byte) for byte in _VISIBLE}, **{byte: chr(256 + i) for i, byte in enumerate(_HIDDEN)}}
"""The character each byte is spelled with, in the order of GPT-2's first 256 tokens."""
_BYTES = {**dict.fromkeys(_HIDDEN, "\uffff"), **{ord(spelt): chr(byte) for byte, spelt in ALPHABET.items()}}

_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
_ADDED = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
_PLAIN_MODEL = {
    "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": "",
    "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
}  # fmt: skip
_PAIRS_OF_FILES = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))
_LOOKS_SPECIAL = re.compile(r"<[!-~]+>")


def spell(data: bytes) -> str:
    """The bytes in the characters that a vocabulary's files spell them with."""
    return data.decode("latin-1").translate(ALPHABET)


def unspell(token: str) -> bytes:
    """The bytes a token's spelling stands for; UnicodeEncodeError when it is no such spelling."""
    return token.translate(_BYTES).encode("latin-1")


@dataclass(frozen=True)
class Vocabulary:
    """Tokens, merges and special tokens, checked: the ids run from 0 without a hole, every merge makes a token."""

    tokens: dict[str, int]
    """The spelling of every ordinary token, and its id."""
    merges: list[tuple[str, str]]
    """Which two neighbours become one token, in the order in which it is done."""
    specials: dict[str, int]
    """The text of every token that ordinary text never becomes, and its id."""
    end: str | None = None
    """Which of the special tokens ends a text."""
    words: dict[str, int] = field(default_factory=dict)
    """Texts that a `tokenizer.json` makes one token wherever they stand, without merges."""
    scheme: dict[str, Any] | None = None
    """The whole `tokenizer.json`, when it asks for more than what GPT-2 does."""
    source: str = "the vocabulary"
    """The file it was read from, for messages."""

    def __post_init__(self) -> None:
        _check_ids({**self.tokens, **self.specials, **self.words}, self.source)
        unknown = {*chain.from_iterable(self.merges), *self.made} - self.tokens.keys()
        if unknown:
            first, second = next(pair for pair in self.merges if not unknown.isdisjoint((*pair, "".join(pair))))
            token = next(token for token in (first, second, first + second) if token in unknown)
            raise CutawayError(
                f"{self.source}: the merge {first!r} + {second!r} needs {token!r}, which is not in the vocabulary. "
                "The vocabulary and the merges must come from the same tokenizer."
            )

    @cached_property
    def made(self) -> list[str]:
        """The token that each merge makes."""
        return list(map("".join, self.merges))

    @property
    def complete(self) -> bool:
        """Whether every byte is a token, so that any text can be encoded."""
        return all(letter in self.tokens for letter in ALPHABET.values())

    def __len__(self) -> int:
        return len({*self.tokens, *self.specials, *self.words})

    def table(self) -> list[bytes]:
        """The bytes of every token, by id."""
        table = [b""] * len(self)
        token = ""
        try:
            for token, i in self.tokens.items():
                table[i] = unspell(token)
            for token, i in [*self.specials.items(), *self.words.items()]:
                table[i] = token.encode()
        except UnicodeEncodeError:
            raise _not_byte_level(self.source, f"its token {token!r} is not spelled in GPT-2's alphabet") from None
        return table

    def spellings(self) -> dict[str, int]:
        """Every token, special ones too, by its spelling, in the order of the ids: what `vocab.json` holds."""
        every = {**self.tokens, **self.specials, **self.words}
        return dict(sorted(every.items(), key=lambda item: item[1]))

    def add(self, names: Iterable[str]) -> Vocabulary:
        """The same with these special tokens more, where it does not have them; their ids follow the last one."""
        specials, size = dict(self.specials), len(self)
        for name in names:
            if not name or name in self.tokens or name in self.words:
                raise CutawayError(
                    f"{name!r} cannot be a special token: "
                    + ("it is in the vocabulary as an ordinary one. " if name else "it is empty. ")
                    + "Choose a name that no text has, such as '<|separator|>'."
                )
            if name not in specials:
                specials[name], size = size, size + 1
        end = self.end or (END if END in specials else None)
        return replace(self, specials=specials, end=end)

    def document(self) -> dict[str, Any]:
        """What `tokenizer.json` holds."""
        if self.scheme is not None:
            known = {entry["content"] for entry in self.scheme["added_tokens"]}
            new = [{"id": i, "content": name, **_ADDED} for name, i in self.specials.items() if name not in known]
            return {**self.scheme, "added_tokens": [*self.scheme["added_tokens"], *new]}
        added = sorted({**self.specials, **self.words}.items(), key=lambda item: item[1])
        return {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [
                {"id": i, "content": name, **_ADDED, "special": name in self.specials} for name, i in added
            ],
            "normalizer": None,
            "pre_tokenizer": _BYTE_LEVEL,
            "post_processor": {**_BYTE_LEVEL, "trim_offsets": False},
            "decoder": _BYTE_LEVEL,
            "model": {
                "type": "BPE",
                **_PLAIN_MODEL,
                "vocab": self.spellings(),
                "merges": [f"{first} {second}" for first, second in self.merges],
            },
        }

    @property
    def cuts_as_gpt2(self) -> bool:
        """Whether a text falls into words by GPT-2's rule, but for the words that are tokens of their own."""
        return self.scheme is None or (_cuts_as_gpt2(self.scheme) and not _strips(self.scheme))

    def settings(self) -> dict[str, Any]:
        """What `tokenizer_config.json` holds: which class `transformers` reads the files with."""
        plain = self.scheme is None and self.end == END
        settings: dict[str, Any] = {
            "tokenizer_class": "GPT2Tokenizer" if plain else "PreTrainedTokenizerFast",
            "clean_up_tokenization_spaces": False,
        }
        before = (self.scheme or {}).get("pre_tokenizer")
        settings["add_prefix_space"] = isinstance(before, dict) and before.get("add_prefix_space") is True
        if self.end is not None:
            settings |= {"bos_token": self.end, "eos_token": self.end, "unk_token": self.end}
        entries = self.document()["added_tokens"]
        settings["added_tokens_decoder"] = {
            str(entry["id"]): {key: value for key, value in entry.items() if key != "id"} for entry in entries
        }
        return settings


class NoVocabulary(CutawayError):
    """The folder holds no vocabulary at all: published weights often come without one."""


def read_vocabulary(folder: Path) -> Vocabulary:
    """The vocabulary in a folder: tokenizer.json, or vocab.json + merges.txt, or OpenAI's encoder.json + vocab.bpe."""
    if not folder.is_dir():
        problem = "is a file: name the folder it is in" if folder.exists() else "does not exist"
        raise CutawayError(f"The folder {folder} {problem}. GPT-2's own vocabulary is called 'gpt2'.")
    notes: dict[str, Any] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        if (folder / name).is_file():
            notes |= _json(folder / name)
    if (folder / "tokenizer.json").is_file():
        return _from_document(folder / "tokenizer.json", notes)
    there = {name for name in chain.from_iterable(_PAIRS_OF_FILES) if (folder / name).is_file()}
    for vocab, merges in _PAIRS_OF_FILES:
        if {vocab, merges} <= there:
            return _from_pair(folder / vocab, folder / merges, notes)
    for pair in _PAIRS_OF_FILES:
        for one, other in (pair, pair[::-1]):
            if one in there:
                raise CutawayError(f"{folder} holds {one} but not {other}: a vocabulary needs both.")
    raise NoVocabulary(
        f"{folder} holds no vocabulary: there should be a tokenizer.json, or a vocab.json with a merges.txt, or an "
        "encoder.json with a vocab.bpe. If the model was trained on GPT-2's tokens, load it with tokenizer='gpt2' "
        "(--tokenizer gpt2), or put them beside it: cutaway.Tokenizer.load('gpt2').save(folder)."
    )


def write_vocabulary(vocabulary: Vocabulary, folder: Path) -> None:
    """The four files that `transformers` looks for, all of them or none."""
    merges = "".join(f"{first} {second}\n" for first, second in vocabulary.merges)
    texts = {
        "vocab.json": json.dumps(vocabulary.spellings(), ensure_ascii=False),
        "merges.txt": f"#version: 0.2\n{merges}",
        "tokenizer_config.json": json.dumps(vocabulary.settings(), ensure_ascii=False, indent=2),
        "tokenizer.json": json.dumps(vocabulary.document(), ensure_ascii=False),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as beside:  # each takes its place when all are written
            for name, text in texts.items():
                path = beside.enter_context(written_beside(folder / name))
                path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        need = f" (about {sum(map(len, texts.values())):,} bytes are needed)" if full else ""
        raise CutawayError(f"No vocabulary could be written to {folder}: {error.strerror or error}{need}.") from error


def _from_pair(vocab: Path, merges: Path, notes: dict[str, Any]) -> Vocabulary:
    tokens = _tokens(_json(vocab), vocab)
    pairs = _merges(_text(merges), merges)
    names: dict[str, object] = {}
    if (beside := vocab.parent / "added_tokens.json").is_file():
        names |= _json(beside)
    for i, entry in (notes.get("added_tokens_decoder") or {}).items():
        if isinstance(entry, dict) and isinstance(entry.get("content"), str) and str(i).isdecimal():
            names[entry["content"]] = int(i)
    letters = set(ALPHABET.values())
    for token in tokens.keys() - set(map("".join, pairs)):
        if _LOOKS_SPECIAL.fullmatch(token) or not letters.issuperset(token):
            names.setdefault(token, tokens[token])
    specials = {name: tokens.pop(name, i) for name, i in names.items()}
    plain = Vocabulary(tokens, pairs, _tokens(specials, vocab), _end(specials, notes), source=str(vocab))
    if notes.get("add_prefix_space") is not True:
        return plain
    return replace(plain, scheme={**plain.document(), "pre_tokenizer": {**_BYTE_LEVEL, "add_prefix_space": True}})


def _from_document(path: Path, notes: dict[str, Any]) -> Vocabulary:
    document = _json(path)
    model = document.get("model")
    if not isinstance(model, dict):
        raise CutawayError(f"{path} has no model in it: it is not a tokenizer of the `tokenizers` library.")
    kind = model.get("type", "BPE" if "merges" in model else "unknown")
    if kind != "BPE":
        raise _not_byte_level(path, f"its model is {kind}")
    if not _mentions([document.get("pre_tokenizer"), document.get("normalizer")], "ByteLevel"):
        raise _not_byte_level(path, "it does not cut a text into bytes first")
    for option in ("continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"):
        if model.get(option):
            raise _not_byte_level(path, f"it sets {option}")
    prefix, before = notes.get("add_prefix_space"), document.get("pre_tokenizer")
    if isinstance(prefix, bool) and isinstance(before, dict) and before.get("type") == "ByteLevel":
        before["add_prefix_space"] = prefix  # `transformers` lets its own file decide, too
    tokens = _tokens(model.get("vocab"), path)
    merges = _merges(model.get("merges"), path)
    added = document.setdefault("added_tokens", None) or []
    if not isinstance(added, list) or not all(isinstance(e, dict) and isinstance(e.get("content"), str) for e in added):
        raise CutawayError(f"{path}: added_tokens is not a list of tokens. The file is damaged.")
    document["added_tokens"] = added
    groups: dict[bool, dict[str, int]] = {True: {}, False: {}}
    for entry in added:
        name, i = entry["content"], entry.get("id")
        if tokens.get(name, i) != i:
            raise CutawayError(f"{path}: the token {name!r} has two ids, {tokens[name]} and {i}.")
        groups[entry.get("special") is True][name] = i
    made = {*map("".join, merges), *ALPHABET.values()}
    if END in tokens and END not in made:
        groups[True].setdefault(END, tokens[END])
    tokens = {
        name: i for name, i in tokens.items() if name in made or not (name in groups[True] or name in groups[False])
    }
    specials, words = _tokens(groups[True], path), _tokens(groups[False], path)
    scheme = None if _as_gpt2_does(document) else document
    return Vocabulary(tokens, merges, specials, _end(specials, notes), words, scheme, str(path))


def _as_gpt2_does(document: dict[str, Any]) -> bool:
    """Whether a `tokenizer.json` asks for GPT-2's way of cutting and nothing else."""
    plain = all(entry.get("special") is True for entry in document["added_tokens"])
    return plain and _cuts_as_gpt2(document) and not _strips(document)


def _strips(document: dict[str, Any]) -> bool:
    """Whether an added token takes the spaces around it, or wants to stand alone."""
    return any(entry.get(key) for entry in document["added_tokens"] for key in ("lstrip", "rstrip", "single_word"))


def _cuts_as_gpt2(document: dict[str, Any]) -> bool:
    """Whether a `tokenizer.json` cuts what lies between its added tokens by GPT-2's rule."""
    before, model = document.get("pre_tokenizer"), document["model"]
    return (
        isinstance(before, dict)
        and before.get("type") == "ByteLevel"
        and not before.get("add_prefix_space", True)
        and before.get("use_regex", True)
        and not document.get("normalizer")
        and not any(model.get(option) for option in ("dropout", "ignore_merges"))
        and model["vocab"].keys() >= set(ALPHABET.values())
    )


def _end(specials: Iterable[str], notes: dict[str, Any]) -> str | None:
    """`<|endoftext|>`, or what `transformers` was told ends a text."""
    known = set(specials)
    if END in known:
        return END
    eos = notes.get("eos_token")
    name = eos.get("content") if isinstance(eos, dict) else eos
    return name if isinstance(name, str) and name in known else None


def _tokens(value: object, path: Path) -> dict[str, int]:
    """A JSON object of ids by token, with nothing else in it."""
    if not isinstance(value, dict) or not set(map(type, value.values())) <= {int}:
        raise CutawayError(f"{path} should give each token a whole number, its id, and does not. The file is damaged.")
    return dict(value)


def _merges(value: object, path: Path) -> list[tuple[str, str]]:
    """Merges as pairs, from a text with one on each line, or from JSON's list of lines or of pairs."""
    if isinstance(value, str):
        lines: list[Any] = [line for line in value.replace("\r\n", "\n").split("\n") if line]
        value = lines[1:] if lines and lines[0].startswith("#version") else lines
    if not isinstance(value, list):
        raise CutawayError(f"{path} has no list of merges. Cutaway reads byte-level BPE, which needs one.")
    pairs = [tuple(merge.split(" ")) if isinstance(merge, str) else merge for merge in value]
    if not (set(map(type, pairs)) <= {tuple, list} and set(map(len, pairs)) <= {2}):
        wrong = next(i for i, pair in enumerate(pairs) if not isinstance(pair, tuple | list) or len(pair) != 2)
        raise CutawayError(f"{path}: merge {wrong + 1:,}, {value[wrong]!r}, is not two tokens with a space between.")
    if not set(map(type, chain.from_iterable(pairs))) <= {str}:
        raise CutawayError(f"{path}: a merge is not between two texts. The file is damaged.")
    return list(map(tuple, pairs))


def _check_ids(tokens: dict[str, int], source: str) -> None:
    """Refuse ids that are used twice, or that leave some number out."""
    ids = sorted(tokens.values())
    if ids == list(range(len(ids))) and ids:
        return
    for i, times in Counter(ids).items():
        if times > 1:
            names = ", ".join(repr(name) for name, other in tokens.items() if other == i)
            raise CutawayError(f"{source}: the id {i} belongs to {times} tokens ({names}). The file is damaged.")
    if not ids or ids[0] < 0:
        raise CutawayError(f"{source}: " + ("a token has a negative id." if ids else "the vocabulary is empty."))
    missing = next(i for i, other in enumerate(ids) if i != other)
    raise CutawayError(
        f"{source}: no token has the id {missing}, though the ids go up to {ids[-1]:,}. "
        "They must run from 0 without gaps: was the file truncated, or are its added tokens missing?"
    )


def _mentions(value: object, kind: str) -> bool:
    """Whether a step of a `tokenizer.json`, or one of the steps it is made of, is of this kind."""
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            if part.get("type") == kind:
                return True
            left += part.values()
        elif isinstance(part, list):
            left += part
    return False


def _not_byte_level(source: object, problem: str) -> CutawayError:
    return CutawayError(
        f"{source} is not a byte-level BPE, the kind GPT-2 has: {problem}. "
        "Cutaway cannot read it; a model trained on such tokens is not a GPT-2."
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise CutawayError(f"{path} is not UTF-8 text (at byte {error.start:,}). The file is damaged.") from None
    except OSError as error:
        raise CutawayError(f"{path} cannot be read: {error.strerror or error}.") from None


def _json(path: Path) -> dict[str, Any]:
    text = _text(path)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        if text.startswith("version https://git-lfs"):
            raise CutawayError(f"{path} is a Git LFS pointer: run `git lfs pull` in {path.parent}.") from None
        raise CutawayError(f"{path} is not valid JSON: {error}. Was it copied completely?") from None
    if not isinstance(value, dict):
        raise CutawayError(f"{path} should hold a JSON object {{...}}, and holds a {type(value).__name__}.")
    return value
