"""Marian's tokens: SentencePiece cuts source and target, each by a model of its own, and one `vocab.json` numbers them.

Spaces are part of the pieces (`▁` stands for one); what is not in the vocabulary is `<unk>`. A code like `>>fra<<` at
the beginning of a source, which tells a model of many languages where to translate, is a token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from cutaway.atomic import replacing
from cutaway.errors import CutawayError
from cutaway.text.bpe_python import TokenTable
from cutaway.text.tokenizer import StreamDecoder, Tokenizer

VOCAB, SOURCE, TARGET, CONFIG = "vocab.json", "source.spm", "target.spm", "tokenizer_config.json"
SPACE = "▁"
UNKNOWN, END, START = "<unk>", "</s>", "<pad>"
CODE = re.compile(r">>[^<]*<<")


class SentencePieces(Tokenizer):
    """A vocabulary of pieces, and the models that cut sources and targets into them."""

    def __init__(
        self, tokens: dict[str, int], models: tuple[bytes, bytes], settings: dict[str, Any], cuts: str = SOURCE
    ):
        ids = sorted(tokens.values())
        if not ids or ids != list(range(len(ids))):
            raise CutawayError(f"{VOCAB} should number its tokens from 0 on without gaps, and does not.")
        for needed in (UNKNOWN, END, START):
            if needed not in tokens:
                raise CutawayError(f"{VOCAB} has no {needed}, which a Marian vocabulary has.")
        self._tokens, self._models, self._settings, self._cuts = tokens, models, settings, cuts
        self._spellings = sorted(tokens, key=tokens.__getitem__)
        self._processor = processor(models[0 if cuts == SOURCE else 1], cuts)

    def __reduce__(self) -> Any:
        return SentencePieces, (self._tokens, self._models, self._settings, self._cuts)

    @cached_property
    def target(self) -> Tokenizer:
        """The same vocabulary, cutting as targets are cut."""
        return SentencePieces(self._tokens, self._models, self._settings, TARGET)

    def encode(self, text: str | bytes, special: bool = False) -> list[int]:
        """The ids of a text; what no token spells is `<unk>`."""
        if isinstance(text, bytes):
            text = text.decode("utf-8", "replace")
        text = text.encode("utf-8", "replace").decode()  # a half character is none
        pieces = []
        if self._cuts == SOURCE and (code := CODE.match(text)):
            pieces, text = [code[0]], text[code.end() :]
        pieces += self._processor.encode(text, out_type=str)
        unknown = self._tokens[UNKNOWN]
        return [self._tokens.get(piece, unknown) for piece in pieces]

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The text of these tokens as bytes; the space before its first word is none of it."""
        stream = self.stream()
        return "".join(stream.add(i) for i in (ids.tolist() if hasattr(ids, "tolist") else ids)).encode()

    def token_bytes(self, id: int) -> bytes:  # noqa: A002
        return self.spelling(id).replace(SPACE, " ").encode()

    def spelling(self, token: int) -> str:
        """One token as `vocab.json` has it."""
        if not 0 <= token < len(self._spellings):
            raise self._unknown(token)
        return self._spellings[token]

    def stream(self) -> StreamDecoder:
        return PieceStream(self)

    def save(self, folder: str | Path) -> None:
        """Write the files that `load`, and `MarianTokenizer` in `transformers`, read the same tokenizer from."""
        text = json.dumps(self._tokens, ensure_ascii=False, indent=2) + "\n"
        size = len(text) + sum(map(len, self._models))
        stale = re.compile(r"tokenizer\.json|merges\.txt|vocab\.txt")  # another tokenizer's would be read instead
        with replacing(Path(folder), last=CONFIG, stale=stale, size=size) as new:
            (new / VOCAB).write_text(text, encoding="utf-8", newline="\n")
            for name, model in zip((SOURCE, TARGET), self._models, strict=True):
                (new / name).write_bytes(model)
            settings = {"tokenizer_class": "MarianTokenizer", **self._settings}
            (new / CONFIG).write_text(json.dumps(settings, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")

    def with_specials(self, names: Iterable[str]) -> Tokenizer:
        if missing := [name for name in names if name not in self._tokens]:
            raise CutawayError(
                f"A Marian vocabulary has {START} and {END}, and {missing[0]} cannot be added to it: leave the task's "
                "separators as the model has them."
            )
        return self

    def table(self) -> TokenTable | None:
        return None

    def __len__(self) -> int:
        return len(self._spellings)

    @property
    def end(self) -> int:
        """The id of `</s>`."""
        return self._tokens[END]

    @property
    def specials(self) -> dict[str, int]:
        return {name: self._tokens[name] for name in (END, UNKNOWN, START)}

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


class PieceStream(StreamDecoder):
    """Pieces to text one at a time; every piece is whole characters, so nothing ever waits."""

    def __init__(self, tokenizer: SentencePieces):
        self._pieces, self._begun = tokenizer, False

    def add(self, id: int) -> str:  # noqa: A002
        text = self._pieces.spelling(id).replace(SPACE, " ")
        text = text if self._begun else text.lstrip(" ")
        self._begun = self._begun or bool(text)
        return text

    def finish(self) -> str:
        self._begun = False
        return ""


def processor(model: bytes, name: str) -> Any:
    """SentencePiece's own program, on the bytes of a model."""
    try:
        import sentencepiece
    except ImportError:
        raise CutawayError(
            "sentencepiece is needed for the tokens of a Marian model: pip install 'cutaway[translate]'."
        ) from None
    try:
        return sentencepiece.SentencePieceProcessor(model_proto=model)
    except RuntimeError as error:
        raise CutawayError(f"{name} is not a SentencePiece model, or is damaged ({str(error).strip()}).") from None


def read_sentencepieces(folder: Path) -> SentencePieces:
    """The tokenizer in a folder with `source.spm`, `target.spm` and `vocab.json`."""
    if (folder / "target_vocab.json").is_file():
        raise CutawayError(f"{folder} has a vocabulary for each language, and only one for both is supported.")
    found: dict[str, Any] = {}
    for name, needed in ((VOCAB, True), (CONFIG, False)):
        try:
            found[name] = json.loads((folder / name).read_text(encoding="utf-8")) if needed or (
                folder / name
            ).is_file() else {}  # fmt: skip
        except (OSError, ValueError, RecursionError) as error:
            raise CutawayError(f"{folder / name} cannot be read: {error}.") from None
        if not isinstance(found[name], dict):
            raise CutawayError(f"{folder / name} should hold a JSON object {{...}}.")
    if not all(isinstance(number, int) for number in found[VOCAB].values()):
        raise CutawayError(f"{folder / VOCAB} should give every token a number, and does not.")
    try:
        models = ((folder / SOURCE).read_bytes(), (folder / TARGET).read_bytes())
    except OSError as error:
        raise CutawayError(f"{folder} lacks one of {SOURCE} and {TARGET}, or it cannot be read: {error}.") from None
    return SentencePieces(found[VOCAB], models, found[CONFIG])
