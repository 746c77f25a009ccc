"""In from GGUF, llama.cpp's one file: what it says of itself, its vocabulary, and its tensors, each when asked for.

The header is read here, because the `gguf` package's reader believes every count in it: a damaged file would keep it
busy for ever. The arithmetic of quantised weights is the package's own.
"""

from __future__ import annotations

import math
import mmap
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cutaway.checkpoint import names
from cutaway.checkpoint.files import Lazy, check, shown
from cutaway.checkpoint.gguf import PARTS, library
from cutaway.errors import CutawayError
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.text.vocabulary import NoVocabulary, Vocabulary

MAGIC = b"GGUF"
VERSIONS = (2, 3)
SCALARS = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}  # struct's letter for each kind of number
STRING, ARRAY = 8, 9
ENTRIES = 1_000_000
"""More settings, tensors or dimensions than any file has: a count beyond is damage."""
BLOCK = re.compile(r"blk\.(\d+)\.(\w+)\.(weight|bias)")
WHOLE = {
    "token_embd.weight": "wte.weight",
    "position_embd.weight": "wpe.weight",
    "output_norm.weight": "ln_f.weight",
    "output_norm.bias": "ln_f.bias",
    "output.weight": "lm_head.weight",
}
SIZES = {
    "context_length": "context",
    "embedding_length": "width",
    "block_count": "layers",
    "attention.head_count": "heads",
    "feed_forward_length": "mlp_width",
}
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED = 1, 2, 3, 4, 5  # what a token may be


@dataclass(frozen=True)
class Stored:
    """One tensor of the file: its shape, how its numbers are stored, and where."""

    shape: tuple[int, ...]
    kind: Any  # gguf.GGMLQuantizationType
    start: int
    size: int


@dataclass(frozen=True)
class GGUF:
    """A file's settings and where its tensors lie."""

    path: Path
    data: mmap.mmap
    settings: dict[str, Any]
    tensors: dict[str, Stored]

    def tensor(self, name: str) -> Tensor:
        """The numbers of one tensor, as float32 or float16."""
        stored, types = self.tensors[name], library().GGMLQuantizationType
        raw = np.frombuffer(self.data, np.uint8, stored.size, stored.start)
        if stored.kind in (types.F32, types.F16):
            values = raw.view(np.float32 if stored.kind == types.F32 else np.float16)
        else:
            rows = raw.reshape(*stored.shape[:-1], -1)
            try:
                values = library().quants.dequantize(rows, stored.kind)
            except NotImplementedError:
                raise CutawayError(
                    f"{self.path}: {shown(name)} is stored as {stored.kind.name}, which the gguf package cannot "
                    "unpack. Use a file with f32, f16, bf16, q8_0, q4_0 or the k-quants."
                ) from None
        return torch.from_numpy(values.reshape(stored.shape).copy())

    def same(self, one: str, other: str) -> bool:
        """Whether two tensors are stored alike, bit for bit."""
        a, b = self.tensors[one], self.tensors[other]
        if (a.kind, a.shape) != (b.kind, b.shape):
            return False
        left, right = (np.frombuffer(self.data, np.uint8, each.size, each.start) for each in (a, b))
        return bool(np.array_equal(left, right))


class Damaged(Exception):
    """The file ends early, or says what cannot be."""


class Reader:
    """Numbers and texts one after the other, never beyond the end of the file."""

    def __init__(self, data: mmap.mmap):
        self.data, self.at = data, len(MAGIC)

    def number(self, letter: str) -> Any:
        end = self.at + struct.calcsize("<" + letter)
        if end > len(self.data):
            raise Damaged("it is cut off")
        (value,) = struct.unpack_from("<" + letter, self.data, self.at)
        self.at = end
        return value

    def count(self, letter: str = "Q", limit: int = ENTRIES) -> int:
        value = self.number(letter)
        if value > limit:
            raise Damaged(f"it claims to hold {value:,} of something")
        return int(value)

    def text(self) -> str:
        size = self.count(limit=len(self.data) - self.at)
        self.at += size
        return bytes(self.data[self.at - size : self.at]).decode("utf-8", "surrogateescape")

    def value(self, kind: int, nested: bool = False) -> Any:
        if kind in SCALARS:
            return self.number(SCALARS[kind])
        if kind == STRING:
            return self.text()
        if kind != ARRAY or nested:
            raise Damaged(f"a value of the unknown kind {kind}")
        item, count = self.number("I"), self.count()
        return [self.value(item, nested=True) for _ in range(count)]


def open_gguf(path: Path) -> GGUF:
    """The file's settings and tensors; nothing of its weights is read yet."""
    gguf = library()
    if check(path).stat().st_size < 24:
        raise CutawayError(f"{path} is too short for a GGUF file.")
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if data[:4] != MAGIC:
        raise CutawayError(f"{path} is not a GGUF file: it does not begin with GGUF.")
    reader = Reader(data)
    try:
        version = reader.number("I")
        if version not in VERSIONS:
            raise CutawayError(
                f"{path} has version {version} of GGUF (or the byte order of another kind of machine), and versions "
                "2 and 3 are supported. llama.cpp's own converter writes such a file."
            )
        tensors, settings = reader.count(), reader.count()
        stated = {reader.text(): reader.value(reader.number("I")) for _ in range(settings)}
        found = {reader.text(): described(reader, gguf) for _ in range(tensors)}
        alignment = stated.get("general.alignment", 32)
        if type(alignment) is not int or alignment < 1:
            raise Damaged(f"an alignment of {alignment!r}")
        start = -(-reader.at // alignment) * alignment
        placed = {name: Stored(each.shape, each.kind, start + each.start, each.size) for name, each in found.items()}
        for name, each in placed.items():
            if each.start + each.size > len(data):
                raise Damaged(f"{shown(name)} lies beyond its end")
    except Damaged as error:
        raise CutawayError(f"{path} is damaged or truncated: {error}. Download it again.") from None
    return GGUF(path, data, stated, placed)


def described(reader: Reader, gguf: Any) -> Stored:
    """What the header says of one tensor; where it starts is counted from the end of the header."""
    dimensions = reader.count("I", limit=4)
    shape = tuple(reader.number("Q") for _ in range(dimensions))[::-1]
    number, start = reader.number("I"), reader.number("Q")
    try:
        kind = gguf.GGMLQuantizationType(number)
        block, size = gguf.GGML_QUANT_SIZES[kind]
    except (ValueError, KeyError):
        raise Damaged(f"weights of the unknown kind {number}") from None
    count = math.prod(shape)
    if not count or shape[-1] % block:
        raise Damaged(f"a tensor of the shape {list(shape)}")
    return Stored(shape, kind, start, count // block * size)


def config_of(file: GGUF) -> Config:
    """The shape of the GPT-2 in a GGUF file."""
    kind = file.settings.get("general.architecture")
    if kind != "gpt2":
        raise CutawayError(f"{file.path} holds a model of the kind {shown(str(kind))!r}, and only 'gpt2' is supported.")
    shape: dict[str, Any] = {}
    for theirs, ours in SIZES.items():
        value = file.settings.get(f"gpt2.{theirs}")
        if type(value) is not int or value < 1:
            raise CutawayError(f"{file.path} should give gpt2.{theirs} as a whole number, and gives {value!r}.")
        shape[ours] = value
    if "token_embd.weight" not in file.tensors:
        raise CutawayError(f"{file.path} has no token_embd.weight: it holds a vocabulary and no model.")
    tied = "output.weight" not in file.tensors or file.same("output.weight", "token_embd.weight")
    vocabulary = file.tensors["token_embd.weight"].shape[0]
    end = file.settings.get("tokenizer.ggml.eos_token_id")
    epsilon = file.settings.get("gpt2.attention.layer_norm_epsilon", 1e-5)
    try:
        return Config(
            vocabulary=vocabulary,
            tied=tied,
            norm_epsilon=float(str(np.float32(epsilon))),  # 1e-05 again, not the nearest float32 to it
            end_token=end if type(end) is int and 0 <= end < vocabulary else None,
            **shape,
        )
    except (CutawayError, TypeError, ValueError) as error:
        raise CutawayError(f"{file.path}: {error}") from None


def read_model(
    file: GGUF, config: Config, device: torch.device | str | None = None, dtype: torch.dtype | None = None
) -> GPT:
    """The model of this shape in a GGUF file; quantised weights become the numbers they stand for."""
    readers: dict[str, Callable[[], Tensor]] = {}
    for name in file.tensors:
        if config.tied and name == "output.weight":
            continue
        readers[renamed(name)] = partial(stored_as_published, file, name)
    return names.build(config, Lazy(readers), str(file.path), device, dtype)


def renamed(name: str) -> str:
    """GPT-2's own name for llama.cpp's: blk.0.attn_qkv.weight -> h.0.attn.c_attn.weight. Others stay as they are."""
    match = BLOCK.fullmatch(name)
    if match and match[2] in PARTS:
        return f"h.{match[1]}.{PARTS[match[2]]}.{match[3]}"
    return WHOLE.get(name, name)


def stored_as_published(file: GGUF, name: str) -> Tensor:
    """A tensor in the layout of GPT-2's own files, whose matrices stand [input, output]."""
    tensor = file.tensor(name)
    return tensor.T if BLOCK.fullmatch(name) and tensor.ndim == 2 else tensor


def vocabulary_of(file: GGUF) -> Vocabulary:
    """The tokens and merges in a GGUF file."""
    path, settings = file.path, file.settings
    kind, cut = settings.get("tokenizer.ggml.model"), settings.get("tokenizer.ggml.pre", "gpt-2")
    if kind is None:
        raise NoVocabulary(f"{path} holds no tokenizer. Name the one to use: tokenizer=, or --tokenizer.")
    if kind != "gpt2" or cut not in ("gpt-2", "gpt2", "default"):
        raise CutawayError(
            f"{path} holds a tokenizer of the kind {shown(str(kind))!r} that splits by the rule {shown(str(cut))!r}: "
            "only GPT-2's byte-level BPE is read. Name the tokenizer to use instead: tokenizer=, or --tokenizer."
        )
    tokens, merges = settings.get("tokenizer.ggml.tokens", []), settings.get("tokenizer.ggml.merges", [])
    kinds = settings.get("tokenizer.ggml.token_type") or [NORMAL] * len(tokens)
    if not texts(tokens) or not texts(merges) or not isinstance(kinds, list) or len(kinds) != len(tokens):
        raise CutawayError(f"{path} has no list of tokens with their kinds and merges. The file is damaged.")
    while tokens and kinds[len(tokens) - 1] == UNUSED:  # rows that only make the matrix rounder
        tokens.pop()
    pairs = [tuple(merge.split(" ")) for merge in merges]
    known = set(tokens)
    ordinary = {token: i for i, token in enumerate(tokens) if kinds[i] == NORMAL}
    specials = {token: i for i, token in enumerate(tokens) if kinds[i] in (UNKNOWN, CONTROL, UNUSED)}
    words = {token: i for i, token in enumerate(tokens) if kinds[i] == USER_DEFINED}
    end = settings.get("tokenizer.ggml.eos_token_id")
    name = tokens[end] if type(end) is int and 0 <= end < len(tokens) else None
    merges = [pair for pair in pairs if len(pair) == 2 and {*pair, "".join(pair)} <= known]
    if len(merges) != len(pairs) and pairs != [("[PAD]", "[PAD]")]:
        raise CutawayError(f"{path} has merges of tokens that are not in its vocabulary. The file is damaged.")
    if name in ordinary:  # some converters mark <|endoftext|> as a token like any other
        specials[name] = ordinary.pop(name)
    found = Vocabulary(ordinary, merges, specials, name if name in specials else None, words, source=str(path))
    return replace(found, scheme=found.document()) if words else found


def texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
