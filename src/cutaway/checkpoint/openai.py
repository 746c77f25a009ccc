"""OpenAI's own release of GPT-2: a TensorFlow checkpoint, with `hparams.json` beside it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from cutaway.checkpoint import names, tensorflow_file
from cutaway.checkpoint.files import Lazy, check
from cutaway.checkpoint.shape import HPARAMS
from cutaway.errors import CutawayError
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config

LEAVES = {"w": "weight", "g": "weight", "b": "bias"}
NAME = re.compile(r"model/(?:h(\d+)/)?((?:[a-z]\w*/)*[a-z]\w*)/([wgb])")


def read_model(
    folder: Path, config: Config, device: torch.device | str | None = None, dtype: torch.dtype | None = None
) -> GPT:
    """The model of this shape in a folder of OpenAI's files."""
    prefix = find_index(folder)
    stored = tensorflow_file.read_tensorflow(prefix)
    readers: dict[str, Callable[[], Tensor]] = {name: partial(_matrix, stored, name) for name in stored}
    renamed = Lazy({rename(name): reader for name, reader in readers.items()})
    return names.build(config, renamed, str(prefix) + ".index", device, dtype)


def find_index(folder: Path) -> Path:
    """The checkpoint in the folder, without `.index`: the one that `checkpoint` names, or the only one there is."""
    if (folder / "checkpoint").is_file():
        text = check(folder / "checkpoint").read_bytes()[:10_000].decode(errors="replace")
        latest = re.search(r'^model_checkpoint_path: "(?:[^"\n]*/)?([^"/\n]+)"', text, re.MULTILINE)
        if latest and (folder / f"{latest[1]}.index").is_file():
            return folder / latest[1]
    indexes = sorted(folder.glob("*.index"))
    if not indexes:
        raise CutawayError(f"{folder} has {HPARAMS} but no weights: model.ckpt.index is missing.")
    if len(indexes) > 1:
        listed = ", ".join(path.name for path in indexes)
        raise CutawayError(f"{folder} holds several checkpoints ({listed}) and no file `checkpoint` that says which.")
    return indexes[0].with_suffix("")


def rename(name: str) -> str:
    """Hugging Face's name for OpenAI's: model/h0/attn/c_attn/w -> h.0.attn.c_attn.weight. Others stay as they are."""
    if name in ("model/wte", "model/wpe"):
        return name.removeprefix("model/") + ".weight"
    match = NAME.fullmatch(name)
    if not match:
        return name
    block, path, leaf = match.groups()
    return (f"h.{block}." if block else "") + f"{path.replace('/', '.')}.{LEAVES[leaf]}"


def _matrix(stored: Lazy, name: str) -> Tensor:
    """A tensor without the leading 1 that OpenAI's matrices have (they are one-dimensional convolutions)."""
    tensor = stored[name]
    return tensor.squeeze(0) if name.endswith("/w") and tensor.dim() == 3 else tensor
