"""A model's tensors under the names that files have for them, in both directions (see models/gpt2/tensors.py)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from cutaway.checkpoint.files import shown
from cutaway.errors import CutawayError, nearest
from cutaway.models.architecture import TensorSpec, architecture
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config

STORED = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def specs(config: Config) -> Iterable[TensorSpec]:
    """The table of such a model's tensors, made as it is read: a lie about the number of layers costs nothing."""
    return architecture(config.kind).tensors(config)


def file_name(config: Config, stored: str) -> str:
    """The name that Hugging Face's files have for a tensor: the model's own prefix stands before all but the output."""
    kind: Any = architecture(config.kind)
    if hasattr(kind, "file_name"):
        return str(kind.file_name(config, stored))
    return stored if stored in kind.copies else kind.prefix + stored


def plain_name(kind: Any, name: str) -> str:
    """The other way round: a name in a file as the table has it."""
    return str(kind.plain_name(name)) if hasattr(kind, "plain_name") else name.removeprefix(kind.prefix)


def stored_tensors(model: GPT) -> Iterator[tuple[str, Tensor]]:
    """The model's weights with the names and layouts Hugging Face's GPT2LMHeadModel saves; views, not copies."""
    check_table(model)
    for entry in specs(model.config):
        weight = model.get_parameter(entry.name).detach()
        yield file_name(model.config, entry.stored), weight.T if entry.transposed else weight


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
    model: Any = empty_model(config)
    names = tied_names(model)
    for entry in specs(config):
        name = found[entry.stored]
        weight = _fitting(tensors[name], name, entry.shape, source)
        weight = weight.T if entry.transposed else weight
        copy = torch.empty(weight.shape, dtype=dtype, device=device or "cpu").copy_(weight)
        if not finite(copy):
            raise CutawayError(_not_finite(weight, copy, name, source))
        parameter = nn.Parameter(copy)
        for tied in names.get(entry.name, [entry.name]):
            module, _, leaf = tied.rpartition(".")
            setattr(model.get_submodule(module), leaf, parameter)
    check_table(model)
    for copy_name, original in architecture(config.kind).copies.items():
        if copy_name not in found or any(entry.stored == copy_name for entry in specs(config)):
            continue
        output, tokens = tensors[found[copy_name]], tensors[found[original]]
        if output.dtype != tokens.dtype or not torch.equal(output, tokens):
            raise CutawayError(
                f"{source}: {copy_name} differs from {found[original]}, though the configuration says that they "
                "are one. If the model has an output matrix of its own, set tie_word_embeddings to false."
            )
    return model.eval()


def empty_model(config: Config) -> nn.Module:
    """A model whose weights are still to come: no memory is filled for them, unless the model makes constants too."""
    kind = architecture(config.kind)
    try:
        with torch.device("meta"), _Undrawn():
            model = kind.build(config)
    except (RuntimeError, NotImplementedError):  # it reads a number that it has made, and there are none on meta
        return kind.build(config)
    constants = (one for module in model.modules() for one in (*vars(module).values(), *module.buffers(recurse=False)))
    return kind.build(config) if any(isinstance(one, Tensor) for one in constants) else model


def tied_names(model: nn.Module) -> dict[str, list[str]]:
    """For each parameter's name, all the names that the same parameter has."""
    same: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        same.setdefault(id(parameter), []).append(name)
    return {name: names for names in same.values() for name in names}


def check_table(model: Any) -> None:
    """Refuse a model whose table of tensors is not that of its parameters: what is left out would be lost."""
    kind, table, title = architecture(model.config.kind), list(specs(model.config)), model.config.kind
    names, known = tied_names(model), dict(model.named_parameters(remove_duplicate=False))
    listed = {tied for entry in table for tied in names.get(entry.name, ())}
    problem, hint = "", ""
    if lost := sorted(set(known) - listed):
        problem = f"lacks {lost[0]}, a weight that the model has"
    elif strange := [entry.name for entry in table if entry.name not in known]:
        problem, hint = f"has {strange[0]}, which the model has not", nearest(strange[0], known)
    elif len({entry.stored for entry in table}) < len(table):
        twice = next(one.stored for at, one in enumerate(table) if one.stored in {two.stored for two in table[:at]})
        problem = f"stores two tensors under the name {twice}"
    elif wrong := [entry for entry in table if tuple(known[entry.name].shape) != entry.ours]:
        has = " x ".join(map(str, known[wrong[0].name].shape))
        problem = f"says that {wrong[0].name} is {' x '.join(map(str, wrong[0].ours))}, and it is {has}"
    if problem:
        raise CutawayError(f"The table of tensors of {title} {problem}.{hint} See {type(kind).__name__}.tensors.")


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
    kind, found = architecture(config.kind), dict[str, str]()
    for name in tensors:
        plain = plain_name(kind, name)
        if kind.ignores(plain):
            continue
        if plain in found:
            raise CutawayError(
                f"{source} holds both {' and '.join(sorted((shown(found[plain]), shown(name)), key=len))}: "
                "it is not clear which is meant."
            )
        found[plain] = name
    known = set(kind.copies)
    for entry in specs(config):
        if entry.stored not in found:  # before the next one is looked at: a lie about the number of layers ends here
            hint = " If the model's output is its token embedding, set tie_word_embeddings to true."
            raise CutawayError(
                f"{source} lacks {entry.stored} {list(entry.shape)}, which the configuration asks for "
                f"({config.layers:,} layers of width {config.width:,})." + (hint if entry.stored in kind.copies else "")
            )
        known.add(entry.stored)
    unknown = [shown(name) for plain, name in found.items() if plain not in known]
    if unknown:
        more = f" and {len(unknown) - 3:,} more" if len(unknown) > 3 else ""
        raise CutawayError(
            f"{source} holds {', '.join(unknown[:3])}{more}, which a {kind.title} of {config.layers:,} layers "
            "does not have: is the configuration that of another model?"
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
