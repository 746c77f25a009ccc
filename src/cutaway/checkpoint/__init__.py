"""Checkpoints in and out: one room for each kind of file, and the doors to the folders people have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cutaway.checkpoint.opened import open_checkpoint

if TYPE_CHECKING:
    import torch

    from cutaway.models.gpt2.model import GPT
    from cutaway.models.gpt2.shape import Config
    from cutaway.text.tokenizer import Tokenizer


def read_model(folder: Path, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> GPT:
    """The model in a folder or a file of any kind, ready to run (in float32 unless told otherwise).

    A LoRA adapter's folder gives its base model, with the adapter merged.
    """
    return open_checkpoint(folder).read_model(device, dtype)


def read_config(folder: Path) -> Config:
    """The shape of the model in a folder or a file, without its weights."""
    return open_checkpoint(folder).config


def write_model(
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

    huggingface.write_model(model, tokenizer, Path(folder), dtype, shard_bytes, recommended or {})
