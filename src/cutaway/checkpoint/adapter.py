"""LoRA adapters as files of their own, in PEFT's form: `adapter_config.json` and `adapter_model.safetensors`.

An adapter's folder stands for its base model with the additions merged into the weights. Beside the additions a file
may hold whole tensors that take the place of the base's: embeddings with entries for new tokens, or biases.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cutaway.atomic import replacing
from cutaway.checkpoint.files import read_json, shown
from cutaway.checkpoint.locate import ADAPTER, SHIPPED, locate
from cutaway.errors import CutawayError

if TYPE_CHECKING:
    from torch import Tensor

    from cutaway.models.gpt2.model import GPT
    from cutaway.models.gpt2.shape import Config
    from cutaway.text.tokenizer import Tokenizer


WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")
PREFIX = "base_model.model."
ADDITION = re.compile(r"(?P<module>.+)\.lora_(?P<side>[AB])(\.default)?\.weight")
TOKENIZERS = ("tokenizer.json", "vocab.json", "vocab.txt")
EMBEDDING = "transformer.wte.weight"
UNKNOWN = ("use_dora", "lora_bias", "layer_replication", "trainable_token_indices", "megatron_config")
"""Settings of PEFT's that mean other arithmetic than this; false, or empty, in a plain adapter."""


def base_of(folder: Path) -> Path:
    """The folder of the model that an adapter belongs to: a path from here or from the adapter, or a name."""
    name = settings_of(folder).get("base_model_name_or_path")
    if not isinstance(name, str) or not name:
        raise CutawayError(f"{folder / ADAPTER} does not say whose adapter it is: it has no base_model_name_or_path.")
    if not Path(name).is_dir() and (folder / name).is_dir():
        return folder / name
    try:
        return locate(name)
    except CutawayError as error:
        raise CutawayError(f"{folder} is an adapter for {name}, which is not on this machine: {error}") from None


def settings_of(folder: Path) -> dict[str, Any]:
    """What adapter_config.json says, refused if it is not of plain LoRA."""
    path = folder / ADAPTER
    given = read_json(path)
    if given.get("peft_type") != "LORA":
        raise CutawayError(f"{path}: peft_type is {given.get('peft_type')!r}, and only 'LORA' is supported.")
    for name in UNKNOWN:
        if given.get(name):
            raise CutawayError(f"{path}: {name} is set, and only plain LoRA is supported.")
    return given


def config_with(folder: Path, config: Config) -> Config:
    """The shape of an adapter's base, with the entries the adapter adds."""
    whole = tensors_of(folder)[1]
    return config.but(vocabulary=len(whole[EMBEDDING]), end_token=config.end) if EMBEDDING in whole else config


def tensors_of(folder: Path) -> tuple[dict[str, dict[str, Tensor]], dict[str, Tensor]]:
    """The additions of an adapter, by module and side, and the tensors it holds whole; all named as in transformers."""
    from cutaway.checkpoint import huggingface, names

    source = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    if source is None:
        raise CutawayError(f"{folder} has {ADAPTER} but no weights: none of {', '.join(WEIGHTS)} is there.")
    additions: dict[str, dict[str, Tensor]] = {}
    whole: dict[str, Tensor] = {}
    for key, tensor in huggingface.read_tensors(source).items():
        if not names.finite(tensor):
            raise CutawayError(f"{source}: {shown(key)} has NaN or infinite values.")
        name = key.removeprefix(PREFIX).replace(".base_layer.", ".")
        name = name if name.startswith(("transformer.", "lm_head.", "score.")) else f"transformer.{name}"
        if found := ADDITION.fullmatch(name):
            additions.setdefault(found["module"], {})[found["side"]] = tensor
        else:
            whole[name] = tensor
    if "score.weight" in whole:
        raise CutawayError(
            f"{source} is an adapter for a classifier. Merge it with PEFT, and classify with the result."
        )
    return additions, whole


def merged(model: GPT, folder: Path) -> GPT:
    """The model with an adapter's additions in its weights."""
    import torch

    from cutaway.checkpoint import names
    from cutaway.models.gpt2.model import GPT

    given = settings_of(folder)
    additions, whole = tensors_of(folder)
    weights = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    config = model.config
    if EMBEDDING in whole:
        config = config.but(vocabulary=len(whole[EMBEDDING]), end_token=config.end)
        if config.tied:
            whole.pop("lm_head.weight", None)  # PEFT writes it twice
    ours = {names.file_name(config, entry.stored): entry for entry in names.specs(config)}
    for name, tensor in whole.items():
        entry = ours.get(name)
        if entry is None or tuple(tensor.shape) != entry.shape:
            raise CutawayError(f"{folder}: {shown(name)} {list(tensor.shape)} does not fit the base model.")
        weights[entry.name] = (tensor.T if entry.transposed else tensor).to(weights[entry.name].dtype).contiguous()
    for module, sides in additions.items():
        entry = ours.get(f"{module}.weight")
        down, up = (sides.get(side, torch.empty(0, 0)) for side in "AB")
        if entry is None or not entry.transposed or (down.shape[1], *up.shape) != (*entry.shape, len(down)):
            raise CutawayError(f"{folder}: the adapter of {shown(module)} does not fit the base model.")
        change = up.to(torch.float32) @ down.to(torch.float32) * scale(given, module, len(down), folder)
        weights[entry.name] += change.to(weights[entry.name].dtype)
    with torch.device("meta"):
        made = GPT(config)
    made.load_state_dict(weights, assign=True)
    return made.eval()


def scale(given: Mapping[str, Any], module: str, rank: int, folder: Path) -> float:
    """What an addition is multiplied by: alpha / rank, or alpha / its root in rank-stabilised LoRA."""
    alpha = given.get("lora_alpha", 8)
    for pattern, own in (given.get("alpha_pattern") or {}).items():
        if re.fullmatch(rf"(.*\.)?({pattern})", module):
            alpha = own
    if isinstance(alpha, bool) or not isinstance(alpha, int | float):
        raise CutawayError(f"{folder / ADAPTER}: lora_alpha must be a number, not {alpha!r}.")
    return alpha / (math.sqrt(rank) if given.get("use_rslora") else rank)


@dataclass(frozen=True)
class Adapter:
    """An adapter to be written: thin matrices for the linear layers, each known by its name in our model."""

    additions: Mapping[str, tuple[Tensor, Tensor]]
    """The matrix down to the rank [rank, input], and the one up from it [output, rank]."""
    rank: int
    alpha: float
    base: str
    """The model it is for, by the name it is to be found by."""
    embedding: Tensor | None = None
    """The token embedding, if it has entries that the base has not."""


def write_adapter(adapter: Adapter, config: Config, tokenizer: Tokenizer, folder: Path) -> None:
    """Write an adapter that `cutaway.load` and PEFT both read; one that is there is replaced whole or not at all."""
    import torch

    from cutaway.checkpoint import huggingface, names

    tensors: list[tuple[str, Tensor]] = []
    for entry in names.specs(config):
        module, _, leaf = entry.name.rpartition(".")
        if leaf == "weight" and module in adapter.additions:
            theirs = f"{PREFIX}transformer.{entry.stored.removesuffix('.weight')}"
            pair = zip("AB", adapter.additions[module], strict=True)
            tensors += [(f"{theirs}.lora_{side}.weight", matrix) for side, matrix in pair]
    if adapter.embedding is not None:
        tensors.append((PREFIX + EMBEDDING, adapter.embedding))
    size = sum(tensor.numel() for _, tensor in tensors) * 4
    with replacing(folder, last=ADAPTER, stale=re.compile("adapter_model\\.(safetensors|bin)"), size=size) as new:
        huggingface.write_safetensors(new / WEIGHTS[0], tensors, torch.float32)
        tokenizer.save(new)
        (new / ADAPTER).write_text(json.dumps(describe(adapter), indent=2) + "\n", encoding="utf-8")


def describe(adapter: Adapter) -> dict[str, Any]:
    """`adapter_config.json`."""
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": adapter.base,
        "r": adapter.rank,
        "lora_alpha": adapter.alpha,
        "lora_dropout": 0.0,
        "target_modules": ["c_attn", "c_fc", "c_proj"],
        "fan_in_fan_out": True,  # transformers' GPT-2 stores its matrices [input, output]
        "bias": "none",
        "inference_mode": True,
    }


def base_name(name: str) -> str:
    """A base model's name as other programs find it: a folder by its whole path, or a name on the hub."""
    return str(locate(name).resolve()) if name in SHIPPED or Path(name).exists() else name
