"""GPT-2's own tensor names and layouts, and ours: one table, read in both directions.

The names are those of Hugging Face's files. Their four matrices per block are stored [input, output] (OpenAI's habit),
where torch's linear layers, and so our model, have [output, input].
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from cutaway.checkpoint.files import shown
from cutaway.errors import CutawayError
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config

PREFIX = "transformer."
BUFFER = re.compile(r"h\.\d+\.attn\.(bias|masked_bias)")  # the causal mask, which some versions saved with the weights
STORED = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


@dataclass(frozen=True)
class Entry:
    """One tensor: its name here and there, and its shape there."""

    ours: str
    theirs: str
    shape: tuple[int, ...]
    transposed: bool = False


def table(config: Config) -> Iterator[Entry]:
    """Every tensor of such a model, in the order of the journey."""
    width, hidden = config.width, config.mlp_width
    yield Entry("token_embedding.weight", "wte.weight", (config.vocabulary, width))
    yield Entry("position_embedding.weight", "wpe.weight", (config.context, width))
    for i in range(config.layers):
        for ours, theirs, inputs, outputs in (
            ("attention_norm", "ln_1", 0, width),
            ("attention.queries_keys_values", "attn.c_attn", width, 3 * width),
            ("attention.projection", "attn.c_proj", width, width),
            ("mlp_norm", "ln_2", 0, width),
            ("mlp.widen", "mlp.c_fc", width, hidden),
            ("mlp.projection", "mlp.c_proj", hidden, width),
        ):
            shape = (inputs, outputs) if inputs else (outputs,)
            yield Entry(f"blocks.{i}.{ours}.weight", f"h.{i}.{theirs}.weight", shape, transposed=bool(inputs))
            yield Entry(f"blocks.{i}.{ours}.bias", f"h.{i}.{theirs}.bias", (outputs,))
    yield Entry("final_norm.weight", "ln_f.weight", (width,))
    yield Entry("final_norm.bias", "ln_f.bias", (width,))
    if not config.tied:
        yield Entry("output.weight", "lm_head.weight", (config.vocabulary, width))


def tensors(model: GPT) -> Iterator[tuple[str, Tensor]]:
    """The model's weights with the names and layouts Hugging Face's GPT2LMHeadModel saves; views, not copies."""
    for entry in table(model.config):
        weight = model.get_parameter(entry.ours).detach()
        prefix = "" if entry.theirs.startswith("lm_head") else PREFIX
        yield prefix + entry.theirs, weight.T if entry.transposed else weight


@torch.no_grad()
def build(
    config: Config,
    tensors: Mapping[str, Tensor],
    source: str,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> GPT:
    """A model, ready to run, of tensors with Hugging Face's names; refused unless each is there, fits and is finite.

    `source` is the file to name in errors. Tensors are asked for one at a time, and copied.
    """
    dtype = dtype or torch.float32
    if not dtype.is_floating_point:
        raise CutawayError(f"A model does not run in {dtype}: choose float32, bfloat16 or float16.")
    found = _find(config, tensors, source)
    with torch.device("meta"), _Undrawn():
        model = GPT(config)
    for entry in table(config):
        name = found[entry.theirs]
        weight = _fitting(tensors[name], name, entry.shape, source)
        weight = weight.T if entry.transposed else weight
        copy = torch.empty(weight.shape, dtype=dtype, device=device or "cpu").copy_(weight)
        if not finite(copy):
            raise CutawayError(_not_finite(weight, copy, name, source))
        module, _, leaf = entry.ours.rpartition(".")
        setattr(model.get_submodule(module), leaf, nn.Parameter(copy))
    if config.tied and "lm_head.weight" in found:
        output, tokens = tensors[found["lm_head.weight"]], tensors[found["wte.weight"]]
        if output.dtype != tokens.dtype or not torch.equal(output, tokens):
            raise CutawayError(
                f"{source}: lm_head.weight differs from {found['wte.weight']}, though the configuration says that they "
                "are one. If the model has an output matrix of its own, set tie_word_embeddings to false."
            )
    return model.eval()


class _Undrawn(TorchFunctionMode):
    """Layers made under this draw no first weights: on the meta device torch imports 800 modules to draw nothing."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        drawing = func in (nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_)
        return kwargs["tensor"] if drawing else func(*args, **kwargs)


def finite(tensor: Tensor) -> bool:
    """Whether a tensor holds numbers only: no NaN, no infinity."""
    return all(bool(bound.isfinite()) for bound in tensor.aminmax())


def _find(config: Config, tensors: Mapping[str, Tensor], source: str) -> dict[str, str]:
    """The name each tensor has in the file, by its name in the table; all that is needed, and nothing else."""
    found: dict[str, str] = {}
    for name in tensors:
        plain = name.removeprefix(PREFIX)
        if BUFFER.fullmatch(plain):
            continue
        if plain in found:
            raise CutawayError(
                f"{source} holds both {shown(plain)} and {PREFIX}{shown(plain)}: it is not clear which is meant."
            )
        found[plain] = name
    known = {"lm_head.weight"}
    for entry in table(config):
        if entry.theirs not in found:  # before the next one is looked at: a lie about the number of layers ends here
            hint = " If the model's output is its token embedding, set tie_word_embeddings to true."
            raise CutawayError(
                f"{source} lacks {entry.theirs} {list(entry.shape)}, which the configuration asks for "
                f"({config.layers:,} layers of width {config.width:,})." + (hint if "lm_head" in entry.theirs else "")
            )
        known.add(entry.theirs)
    unknown = [shown(name) for plain, name in found.items() if plain not in known]
    if unknown:
        more = f" and {len(unknown) - 3:,} more" if len(unknown) > 3 else ""
        raise CutawayError(
            f"{source} holds {', '.join(unknown[:3])}{more}, which a GPT-2 of {config.layers:,} layers does not have: "
            "is the configuration that of another model?"
        )
    return found


def _fitting(tensor: Tensor, name: str, shape: tuple[int, ...], source: str) -> Tensor:
    if tuple(tensor.shape) != shape:
        raise CutawayError(
            f"{source}: {name} has the shape {list(tensor.shape)}, and the configuration asks for {list(shape)}."
        )
    if tensor.dtype not in STORED:
        kind = str(tensor.dtype).removeprefix("torch.")
        raise CutawayError(
            f"{source}: {name} is stored as {kind}. Quantized weights are not supported: "
            "use those in float32, float16 or bfloat16."
        )
    return tensor


def _not_finite(weight: Tensor, copy: Tensor, name: str, source: str) -> str:
    bad = int((~weight.isfinite()).sum())
    if bad:
        return (
            f"{source}: {bad:,} of the {weight.numel():,} values of {name} are NaN or infinite. "
            "The file is damaged, or training went wrong before it was saved."
        )
    kind = str(copy.dtype).removeprefix("torch.")
    return f"{source}: {name} holds values too large for {kind}. Load the model as float32 or bfloat16."
