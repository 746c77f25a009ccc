"""A model on disk, opened: `open_checkpoint(path)` gives its shape, tokenizer, task and weights, whatever kind it is.

Which kind it is is asked here and nowhere else. What says the shape (`config.json`, a file's header) is read once,
everything else when it is asked for, so that nobody waits for torch who does not need it.
"""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cutaway.checkpoint.locate import file_kind, is_adapter
from cutaway.errors import CutawayError
from cutaway.text.tokenizer import READERS, Tokenizer

if TYPE_CHECKING:
    import torch

    from cutaway.checkpoint.gguf_file import GGUF
    from cutaway.checkpoint.nanogpt import Stored
    from cutaway.models.gpt2.model import GPT
    from cutaway.models.gpt2.shape import Config
    from cutaway.runtime.native.ngrams import NGrams
    from cutaway.runtime.native.pack import Packed
    from cutaway.runtime.native.packed_file import PackedFile

TASK = "task.json"


class Checkpoint:
    """A folder or a file that a model is in. The answers here are those of a folder that is none of the known kinds."""

    weights: str | None = None
    """The kind that the weights are packed to, if they are."""

    def __init__(self, path: Path, name: str | None = None):
        self.path, self.name = path, str(path) if name is None else name

    @cached_property
    def config(self) -> Config:
        """The model's shape."""
        raise no_model(self.path)

    def read_model(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> GPT:
        """The model for torch, in float32 unless told otherwise."""
        raise no_model(self.path)

    def pack(self) -> Packed | None:
        """The weights for the native engine, where they can be had without torch: packed, or float32."""
        return None

    def read_tokenizer(self) -> Tokenizer:
        return Tokenizer.from_folder(self.path)

    def read_recommended(self) -> dict[str, Any]:
        """The settings to write with where the caller says nothing else."""
        from cutaway.checkpoint.recommended import read_recommended

        return read_recommended(self.path)

    def read_ngrams(self) -> NGrams | None:
        """What usually follows in such texts as it writes, if a table of that lies with it."""
        from cutaway.runtime.native.ngrams import NGrams, beside

        path = beside(self.path)
        return NGrams.load(path, self.config.vocabulary) if path.is_file() else None

    @property
    def task_file(self) -> Path:
        """The file that says the model's task, if any does."""
        return self.path / TASK

    def read_task(self) -> Any:
        """What that file says; None if there is none."""
        if not self.task_file.exists():
            return None
        try:
            return json.loads(self.task_file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise CutawayError(f"{self.task_file} cannot be read: {error}.") from None


class HuggingFace(Checkpoint):
    @cached_property
    def config(self) -> Config:
        from cutaway.checkpoint.shape import read_huggingface

        return read_huggingface(self.path)

    def read_model(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> GPT:
        from cutaway.checkpoint.huggingface import read_model

        return read_model(self.path, self.config, device, dtype)

    def pack(self) -> Packed | None:
        from cutaway.runtime.native.from_folder import pack_folder

        return pack_folder(self.path, self.config)


class OpenAI(Checkpoint):
    @cached_property
    def config(self) -> Config:
        from cutaway.checkpoint.shape import read_openai

        return read_openai(self.path)

    def read_model(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> GPT:
        from cutaway.checkpoint.openai import read_model

        return read_model(self.path, self.config, device, dtype)


class LoRA(Checkpoint):
    """An adapter's folder, which stands for its base model with the adapter merged."""

    @cached_property
    def base(self) -> Checkpoint:
        from cutaway.checkpoint.adapter import base_of

        return open_checkpoint(base_of(self.path))

    @cached_property
    def config(self) -> Config:
        from cutaway.checkpoint.adapter import config_with

        return config_with(self.path, self.base.config)

    def read_model(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> GPT:
        from cutaway.checkpoint.adapter import merged

        model = merged(self.base.read_model(), self.path)
        return model.to(device or "cpu", dtype) if device or dtype else model

    def read_tokenizer(self) -> Tokenizer:
        """The adapter's own, or else that of its base."""
        from cutaway.checkpoint.adapter import TOKENIZERS

        own = any((self.path / name).is_file() for name in TOKENIZERS)
        return super().read_tokenizer() if own else self.base.read_tokenizer()


class GGUFFile(Checkpoint):
    @cached_property
    def file(self) -> GGUF:
        from cutaway.checkpoint.gguf_file import open_gguf

        return open_gguf(self.path)

    @cached_property
    def config(self) -> Config:
        from cutaway.checkpoint.gguf_file import config_of

        return config_of(self.file)

    def read_model(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> GPT:
        from cutaway.checkpoint.gguf_file import read_model

        return read_model(self.file, self.config, device, dtype)

    def read_tokenizer(self) -> Tokenizer:
        from cutaway.checkpoint.gguf_file import vocabulary_of

        return Tokenizer(vocabulary_of(self.file))


class NanoGPT(Checkpoint):
    @cached_property
    def stored(self) -> Stored:
        from cutaway.checkpoint.nanogpt import open_nanogpt

        return open_nanogpt(self.path)

    @cached_property
    def config(self) -> Config:
        return self.stored.config

    def read_model(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> GPT:
        from cutaway.checkpoint.nanogpt import read_model

        return read_model(self.stored, device, dtype)

    def read_tokenizer(self) -> Tokenizer:
        from cutaway.checkpoint.nanogpt import read_tokenizer

        return read_tokenizer(self.path, lambda: self.config.vocabulary)


class PackedWeights(Checkpoint):
    """A file of packed weights, mapped into memory as it is."""

    @cached_property
    def file(self) -> PackedFile:
        from cutaway.runtime.native.packed_file import open_packed

        return open_packed(self.path)

    @cached_property
    def config(self) -> Config:
        return self.file.config

    @cached_property
    def weights(self) -> str:  # type: ignore[override]
        return self.file.weights

    def read_model(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> GPT:
        from cutaway.runtime.native.pack import unpack

        return unpack(self.pack()).to(device, dtype)

    def pack(self) -> Packed:
        return self.file.read_weights()

    def read_tokenizer(self) -> Tokenizer:
        return self.file.read_tokenizer()

    def read_recommended(self) -> dict[str, Any]:
        return self.file.recommended

    @property
    def task_file(self) -> Path:
        return self.path

    def read_task(self) -> Any:
        return self.file.task


def open_checkpoint(path: str | Path, name: str | None = None) -> Checkpoint:
    """The model in a folder or a file of any kind; `name` is what it is to be called, if not by its path."""
    path = Path(path)
    match file_kind(path):
        case "packed":
            return PackedWeights(path, name)
        case "gguf":
            return GGUFFile(path, name)
        case "nanogpt":
            return NanoGPT(path, name)
    if is_adapter(path):
        return LoRA(path, name)
    if (path / "config.json").exists():
        return HuggingFace(path, name)
    return (OpenAI if (path / "hparams.json").exists() else Checkpoint)(path, name)


def no_model(path: Path) -> CutawayError:
    """What is wrong with a path at which there is no model."""
    if path.is_file():
        return CutawayError(f"{path} is a file. A model is a folder: give the one the file is in.")
    if not path.is_dir():
        return CutawayError(f"There is no folder {path}.")
    inside = sorted(one.name for one in path.iterdir())
    holds = f"It holds {', '.join(inside[:5])}{', ...' if inside[5:] else ''}." if inside else "It is empty."
    return CutawayError(
        f"{path} is not a model: it has neither config.json (Hugging Face) nor hparams.json (OpenAI). {holds}",
        "not_a_model",
        name=str(path),
    )


READERS.append(lambda path: open_checkpoint(path).read_tokenizer())
