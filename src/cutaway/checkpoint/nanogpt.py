"""In from nanoGPT: `ckpt.pt`, a pickle of weights, settings and the optimizer's state, read without running it.

Its matrices are nn.Linear's, [output, input]; its GELU is the exact one; it may have been trained without biases. Its
tokens are GPT-2's, unless a `meta.pkl` beside it says which character has which number.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cutaway.checkpoint import names, torch_file
from cutaway.checkpoint.files import Lazy
from cutaway.checkpoint.locate import NANOGPT
from cutaway.errors import CutawayError
from cutaway.models.gpt2.config_json import PREFIX
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import SIZES, Config
from cutaway.text.tokenizer import Tokenizer
from cutaway.text.vocabulary import NoVocabulary, Vocabulary

META = "meta.pkl"
COMPILED = "_orig_mod."
"""What torch.compile puts before the names of a model it was saved from."""
FIELDS = {
    "block_size": "context",
    "vocab_size": "vocabulary",
    "n_embd": "width",
    "n_layer": "layers",
    "n_head": "heads",
}
MATRIX = re.compile(r"h\.\d+\.(attn\.c_attn|attn\.c_proj|mlp\.c_fc|mlp\.c_proj)\.weight")
BIASED = re.compile(r"(h\.\d+\..+|ln_f)\.weight")
GPT2_ROWS = 50_304
"""nanoGPT makes GPT-2's 50,257 rows a rounder number; the last 47 stand for nothing."""


@dataclass(frozen=True)
class Stored:
    """A checkpoint: its shape, the weights by their names in the file, and whether its layers have biases."""

    path: Path
    config: Config
    weights: Lazy
    biases: bool


def read_model(stored: Stored, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> GPT:
    """The model in a checkpoint."""
    readers: dict[str, Callable[[], Tensor]] = {}
    for name, reader in stored.weights.readers.items():
        theirs = name.removeprefix(COMPILED).removeprefix(PREFIX)
        readers[theirs] = partial(transposed, reader) if MATRIX.fullmatch(theirs) else reader
        if not stored.biases and BIASED.fullmatch(theirs):  # trained without: adding nothing is the same
            readers[theirs.replace("weight", "bias")] = partial(zeros, reader)
    return names.build(stored.config, Lazy(readers), str(stored.path), device, dtype)


def transposed(reader: Callable[[], Tensor]) -> Tensor:
    """A matrix in the layout of GPT-2's own files, [input, output]."""
    return reader().T


def zeros(reader: Callable[[], Tensor]) -> Tensor:
    """The bias of a layer that has none."""
    return torch.zeros(len(reader()))


def read_tokenizer(path: Path, count: Callable[[], int]) -> Tokenizer:
    """By `meta.pkl` beside the checkpoint, or else GPT-2's, as nanoGPT's own sample.py has it.

    `count` gives the number of tokens, if it is needed.
    """
    meta = file_of(path).with_name(META)
    if meta.is_file():
        return Tokenizer(characters(torch_file.read_plain(meta), meta))
    rows = count()
    if len(gpt2 := Tokenizer.load("gpt2")) <= rows <= GPT2_ROWS:
        return gpt2
    raise NoVocabulary(
        f"{path} has {rows:,} tokens, which are not GPT-2's, and there is no {META} beside it that says what they are. "
        f"nanoGPT wrote one into the folder of the data: copy it to {meta.parent}."
    )


def open_nanogpt(path: Path) -> Stored:
    """A checkpoint, or the one in a folder; of its weights only what is asked for is read."""
    path, shape = file_of(path), dict[str, Any]()

    def weights(whole: Any) -> Any:
        if not isinstance(whole, dict) or not {"model", "model_args"} <= whole.keys():
            raise torch_file.Refused("it has no model with model_args, as nanoGPT's checkpoints have")
        shape.update(whole["model_args"] if isinstance(whole["model_args"], dict) else {})
        return whole["model"]

    stored = torch_file.read_part(path, weights)
    for field in FIELDS:
        if type(shape.get(field)) is not int:
            raise CutawayError(f"{path} should give {field} as a whole number, and gives {shape.get(field)!r}.")
    try:
        config = Config(activation="gelu", **{ours: shape[field] for field, ours in FIELDS.items()})
    except CutawayError as error:
        raise CutawayError(f"{path}: {error}") from None
    gpt2 = SIZES["gpt2"].vocabulary
    if gpt2 <= config.vocabulary <= GPT2_ROWS:
        config = config.but(end_token=gpt2 - 1)
    return Stored(path, config, stored, shape.get("bias", True) is not False)


def file_of(path: Path) -> Path:
    return path / NANOGPT if path.is_dir() else path


def characters(meta: Any, path: Path) -> Vocabulary:
    """A vocabulary in which every character is a token of its own."""
    ids = meta.get("stoi") if isinstance(meta, dict) else None
    if not isinstance(ids, dict) or not all(isinstance(c, str) and c and type(i) is int for c, i in ids.items()):
        raise CutawayError(f"{path} should hold stoi, the number of each character, and does not.")
    plain = Vocabulary({}, [], {}, None, ids, source=str(path))
    return replace(plain, scheme=plain.document())
