"""Hugging Face's GPT-2 folders in and out: `config.json`, and weights in one file or several."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from cutaway.atomic import replacing
from cutaway.checkpoint import names, torch_file
from cutaway.checkpoint.files import Lazy, check, plain, read_json, shown
from cutaway.checkpoint.recommended import FILE, to_file
from cutaway.checkpoint.shape import CONFIG
from cutaway.errors import CutawayError
from cutaway.models.architecture import architecture, encoder
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config

if TYPE_CHECKING:
    from cutaway.text.tokenizer import Tokenizer

WEIGHTS = "model.safetensors"
SCORE = "score.weight"
"""The matrix that makes a model a classifier (see tasks/head.py)."""
DTYPES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.float64: "F64"}
OURS = re.compile(r"model(-\d{5}-of-\d{5})?\.safetensors(\.index\.json)?")


def read_model(
    folder: Path, config: Config, device: torch.device | str | None = None, dtype: torch.dtype | None = None
) -> GPT:
    """The model of this shape in a Hugging Face folder."""
    source = find_weights(folder)
    tensors = read_tensors(source)
    if SCORE in tensors:
        raise CutawayError(
            f"{folder} holds a classifier: it assigns classes and generates no text. Use it with cutaway classify "
            f"--model {folder}, or in Python with load_classifier and classify from cutaway.tasks.answer.",
            "a_classifier",
            name=str(folder),
        )
    return names.build(config, tensors, str(source), device, dtype)


def find_weights(folder: Path) -> Path:
    """The file that holds the weights, or says which files do; safetensors before pickles."""
    candidates = [WEIGHTS, f"{WEIGHTS}.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"]
    for name in candidates:
        if (folder / name).exists():
            return folder / name
    raise CutawayError(f"{folder} has {CONFIG} but no weights: none of {', '.join(candidates)} is there.")


def read_tensors(source: Path) -> Lazy:
    """The tensors of a file of weights, or of all files an index names."""
    if source.suffix != ".json":
        return _read_file(source)
    index = read_json(source).get("weight_map")
    if not isinstance(index, dict) or not index:
        raise CutawayError(f"{source} has no weight_map that says which tensor is in which file.")
    files = {name: _read_file(source.with_name(name)) for name in {plain(name, source) for name in index.values()}}
    for tensor, name in index.items():
        if tensor not in files[name]:
            raise CutawayError(f"{source} says that {shown(tensor)} is in {name}, and it is not.")
    return Lazy({tensor: files[name].readers[tensor] for tensor, name in index.items()})


def _read_file(path: Path) -> Lazy:
    if check(path).suffix != ".safetensors":
        return torch_file.read_torch_file(path)
    try:
        file = safe_open(path, framework="pt")
        return Lazy({name: partial(_tensor, file, name, path) for name in file.keys()})  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise CutawayError(
            f"{path} is not a safetensors file, or is truncated or damaged ({error}). Download it again."
        ) from None


def _tensor(file: Any, name: str, path: Path) -> Tensor:
    try:
        return file.get_tensor(name)
    except SafetensorError as error:
        raise CutawayError(f"{path}: {name} cannot be read ({error}).") from None


def write_model(
    model: GPT,
    tokenizer: Tokenizer | None,
    folder: Path,
    dtype: torch.dtype | None,
    shard_bytes: int,
    recommended: Mapping[str, Any],
) -> None:
    """See `cutaway.checkpoint.write_model`."""
    kind = dtype or next(model.parameters()).dtype
    with writing(folder, list(names.stored_tensors(model)), kind, shard_bytes) as new:
        if not encoder(model):
            _write_json(new / FILE, to_file(recommended, model.config.end) | generation(model.config))
        if tokenizer is not None:
            tokenizer.save(new)
        _write_json(new / CONFIG, describe(model.config, kind))


def describe(config: Config, dtype: torch.dtype) -> dict[str, Any]:
    """`config.json` for such a model."""
    return {**architecture(config.kind).write_shape(config), "torch_dtype": str(dtype).removeprefix("torch.")}


def generation(config: Config) -> dict[str, Any]:
    """What a model of this kind adds to `generation_config.json`; most add nothing."""
    added = getattr(architecture(config.kind), "generation", None)
    return {} if added is None else dict(added(config))


@contextmanager
def writing(
    folder: Path, tensors: Sequence[tuple[str, Tensor]], dtype: torch.dtype, shard_bytes: int = 5_000_000_000
) -> Iterator[Path]:
    """A new folder with these tensors in it, to put the rest of the model into; at the end it takes its place."""
    if folder.exists() and not folder.is_dir():
        raise CutawayError(f"{folder} is a file, and a model is written as a folder: choose another name.")
    if dtype not in DTYPES:
        raise CutawayError(f"Weights are not written as {dtype}: choose float32, float16 or bfloat16.")
    shards = list(_shards(tensors, dtype, shard_bytes))
    total = sum(tensor.numel() for _, tensor in tensors) * dtype.itemsize
    with replacing(folder, last=CONFIG, stale=OURS, size=total) as new:
        index: dict[str, str] = {}
        for number, shard in enumerate(shards, 1):
            name = WEIGHTS if len(shards) == 1 else f"model-{number:05d}-of-{len(shards):05d}.safetensors"
            write_safetensors(new / name, shard, dtype)
            index |= {tensor: name for tensor, _ in shard}
        if len(shards) > 1:
            _write_json(new / f"{WEIGHTS}.index.json", {"metadata": {"total_size": total}, "weight_map": index})
        yield new


def _shards(
    tensors: Sequence[tuple[str, Tensor]], dtype: torch.dtype, limit: int
) -> Iterator[list[tuple[str, Tensor]]]:
    """The tensors in order, a new list whenever the next would take one beyond the limit."""
    shard: list[tuple[str, Tensor]] = []
    size = 0
    for name, tensor in tensors:
        more = tensor.numel() * dtype.itemsize
        if shard and size + more > limit:
            yield shard
            shard, size = [], 0
        shard.append((name, tensor))
        size += more
    yield shard


def write_safetensors(path: Path, tensors: list[tuple[str, Tensor]], dtype: torch.dtype) -> None:
    """Written here tensor by tensor, because the library's writer wants a second copy of all weights at once."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, tensor in tensors:
        end = at + tensor.numel() * dtype.itemsize
        header[name] = {"dtype": DTYPES[dtype], "shape": list(tensor.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, tensor in tensors:
            value = tensor.to("cpu", dtype).contiguous()
            if not names.finite(value):
                reason = "values too large for it" if names.finite(tensor) else "NaN or infinite values"
                raise CutawayError(
                    f"{name} cannot be written as {DTYPES[dtype]}: it has {reason}. Nothing was written."
                )
            file.write(value.view(torch.uint8).numpy().data)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
