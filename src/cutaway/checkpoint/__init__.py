"""Checkpoints in and out: one room for each kind of file, and the doors to the folders people have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cutaway.checkpoint.locate import file_kind, is_adapter
from cutaway.errors import CutawayError

if TYPE_CHECKING:
    import torch

    from cutaway.models.gpt2.model import GPT
    from cutaway.models.gpt2.shape import Config
    from cutaway.text.tokenizer import Tokenizer


def read(folder: Path, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> GPT:
    """The model in a folder or a file of any kind, ready to run (in float32 unless told otherwise).

    A LoRA adapter's folder gives its base model, with the adapter merged.
    """
    folder = Path(folder)
    match file_kind(folder):
        case "packed":
            from cutaway.runtime.native import pack
            from cutaway.runtime.native import packed_file as stored

            return pack.unpack(stored.read(folder)).to(device, dtype)
        case "gguf":
            from cutaway.checkpoint import gguf_file

            return gguf_file.read(folder, device, dtype)
        case "nanogpt":
            from cutaway.checkpoint import nanogpt

            return nanogpt.read(folder, device, dtype)
    from cutaway.checkpoint import adapter, huggingface, openai

    if is_adapter(folder):
        return adapter.read(folder, device, dtype)
    return (huggingface if _is_huggingface(folder) else openai).read(folder, device, dtype)


def read_config(folder: Path) -> Config:
    """The shape of the model in a folder or a file, without its weights."""
    folder = Path(folder)
    match file_kind(folder):
        case "packed":
            from cutaway.runtime.native import packed_file as stored

            return stored.read_config(folder)
        case "gguf":
            from cutaway.checkpoint import gguf_file

            return gguf_file.read_config(folder)
        case "nanogpt":
            from cutaway.checkpoint import nanogpt

            return nanogpt.read_config(folder)
    from cutaway.checkpoint import shape

    if is_adapter(folder):
        from cutaway.checkpoint import adapter

        return adapter.read_config(folder)
    return (shape.read_huggingface if _is_huggingface(folder) else shape.read_openai)(folder)


def write(
    model: GPT,
    tokenizer: Tokenizer | None,
    folder: Path,
    dtype: torch.dtype | None = None,
    shard_bytes: int = 5_000_000_000,
    recommended: Mapping[str, Any] | None = None,
) -> None:
    """Write a Hugging Face folder: shape, weights (as they are, or as `dtype`) and, if given one, the tokenizer.

    Weights beyond `shard_bytes` go into several files. `recommended` are the settings to write texts with. A checkpoint
    that is already there is replaced whole or not at all; other files in the folder are left alone.
    """
    from cutaway.checkpoint import huggingface

    huggingface.write(model, tokenizer, Path(folder), dtype, shard_bytes, recommended or {})


def _is_huggingface(folder: Path) -> bool:
    """Whether the folder is of Hugging Face's kind, or else of OpenAI's; anything else is refused."""
    if folder.is_file():
        raise CutawayError(f"{folder} is a file. A model is a folder: give the one the file is in.")
    if not folder.is_dir():
        raise CutawayError(f"There is no folder {folder}.")
    kinds = [name for name in ("config.json", "hparams.json") if (folder / name).exists()]
    if kinds:
        return kinds[0] == "config.json"
    inside = sorted(path.name for path in folder.iterdir())
    holds = f"It holds {', '.join(inside[:5])}{', ...' if inside[5:] else ''}." if inside else "It is empty."
    raise CutawayError(
        f"{folder} is not a model: it has neither config.json (Hugging Face) nor hparams.json (OpenAI). {holds}",
        "not_a_model",
        name=str(folder),
    )
