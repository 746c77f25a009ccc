"""Out to GGUF, the one file that llama.cpp and what is built on it run: weights, shape and vocabulary together."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

import cutaway
from cutaway.atomic import replacing
from cutaway.checkpoint.names import finite
from cutaway.errors import CutawayError, nearest
from cutaway.models.gpt2.model import GPT, Block
from cutaway.models.gpt2.shape import Config

if TYPE_CHECKING:
    import gguf

    from cutaway.text.tokenizer import Tokenizer

KINDS = ("f32", "f16", "q8_0", "q4_0")
"""How the matrices may be stored: 32, 16, 8.5 or 4.5 bits a weight."""
PARTS = {
    "attn_norm": "ln_1",
    "attn_qkv": "attn.c_attn",
    "attn_output": "attn.c_proj",
    "ffn_norm": "ln_2",
    "ffn_up": "mlp.c_fc",
    "ffn_down": "mlp.c_proj",
}
"""llama.cpp's name for each part of a block, and GPT-2's own."""


def write_gguf(
    model: GPT,
    tokenizer: Tokenizer,
    path: Path,
    kind: str = "f16",
    name: str = "gpt2",
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write the model as one GGUF file. `kind` says how the matrices are stored; `progress(done, total)` counts bytes.

    Norms, biases and positions are always float32, and q4_0 keeps the matrices of the vocabulary in q8_0. A matrix
    whose rows are no multiple of 32 long cannot be quantized, and is kept in float16.
    """
    gguf = library()
    path = Path(path)
    refuse(model.config, tokenizer, path, kind)
    writer = gguf.GGUFWriter(None, "gpt2")
    describe(writer, model.config, kind, name)
    add_vocabulary(writer, model.config, tokenizer)

    total = 0
    for label, tensor in named(model):
        stored = storage(label, tensor, kind)
        block, size = gguf.GGML_QUANT_SIZES[stored]  # so many weights take so many bytes
        writer.add_tensor_info(
            label, tensor.shape, np.dtype(np.float32), tensor.numel() // block * size, raw_dtype=stored
        )
        total += tensor.numel() // block * size

    old = re.compile(re.escape(path.name))
    with replacing(path.parent, last=path.name, stale=old, size=total) as folder, closing(writer):
        writer.write_header_to_file(folder / path.name)
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        done = 0
        for label, tensor in named(model):  # one at a time: there is never a second copy of the model
            data = packed(label, tensor, storage(label, tensor, kind))
            append(writer, data)
            done += data.nbytes
            if progress is not None:
                progress(done, total)


def library() -> Any:
    """The `gguf` package, which llama.cpp's authors publish."""
    try:
        import gguf
    except ImportError:
        raise CutawayError("GGUF needs the gguf package: pip install 'cutaway[export]'") from None
    return gguf


def refuse(config: Config, tokenizer: Tokenizer, path: Path, kind: str) -> None:
    """Say no to what llama.cpp's GPT-2 would run wrongly, before anything is written."""
    if kind not in KINDS:
        raise CutawayError(f"GGUF has no kind {kind!r}.{nearest(kind, KINDS)} Choose from: {', '.join(KINDS)}.")
    if path.is_dir():
        raise CutawayError(f"{path} is a folder: name the file to write, such as {path / 'model.gguf'}.")
    if config.relative:
        raise CutawayError(
            "This model has relative attention, which llama.cpp's GPT-2 does not know: a GGUF file cannot carry it. "
            "A folder (--to huggingface) and a packed file (--to cutaway-int8) can."
        )
    if config.activation != "gelu_tanh":
        raise CutawayError(
            f"This model's MLP uses {config.activation}, and llama.cpp always runs GPT-2 with gelu_tanh: "
            "a GGUF file of it would give different results. Export it to ONNX instead."
        )
    if len(tokenizer) > config.vocabulary:
        raise CutawayError(
            f"The tokenizer has {len(tokenizer):,} tokens and the model only {config.vocabulary:,}: "
            "they do not belong together. Export the model with the tokenizer it was trained with."
        )
    if not tokenizer.cuts_as_gpt2:
        raise CutawayError(
            "This model's tokenizer.json splits texts by rules of its own, and llama.cpp would split them by GPT-2's: "
            "a GGUF file of it would give different results. Export it to ONNX instead."
        )


def describe(writer: gguf.GGUFWriter, config: Config, kind: str, name: str) -> None:
    """The shape, and where the file comes from."""
    gguf = library()
    file_type = {"f32": "ALL_F32", "f16": "MOSTLY_F16", "q8_0": "MOSTLY_Q8_0", "q4_0": "MOSTLY_Q4_0"}[kind]
    writer.add_type("model")
    writer.add_name(name)
    writer.add_description(
        f"GPT-2, {config.layers} blocks of width {config.width}, written by Cutaway {cutaway.__version__}"
    )
    writer.add_file_type(gguf.LlamaFileType[file_type])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_context_length(config.context)
    writer.add_embedding_length(config.width)
    writer.add_block_count(config.layers)
    writer.add_head_count(config.heads)
    writer.add_feed_forward_length(config.mlp_width)
    writer.add_layer_norm_eps(config.norm_epsilon)


def add_vocabulary(writer: gguf.GGUFWriter, config: Config, tokenizer: Tokenizer) -> None:
    """Every token in GPT-2's spelling and every merge, so that llama.cpp cuts a text as we do."""
    types = library().TokenType
    tokens = [f"[PAD{row}]" for row in range(config.vocabulary)]  # llama.cpp's spelling of a row that no token uses
    kinds = [types.UNUSED] * config.vocabulary
    for spelling, token in tokenizer.vocabulary.items():
        tokens[token], kinds[token] = spelling, types.NORMAL
    for spelling, token in tokenizer.specials.items():
        tokens[token], kinds[token] = spelling, types.CONTROL
    for spelling, token in tokenizer.words.items():  # found in a text before it is cut, as our tokenizer does
        tokens[token], kinds[token] = spelling, types.USER_DEFINED
    merges = [f"{left} {right}" for left, right in tokenizer.merges]

    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges or ["[PAD] [PAD]"])  # llama.cpp insists on one: these two never meet
    writer.add_bos_token_id(config.end)  # a text from nothing begins with the token that ends one ...
    writer.add_eos_token_id(config.end)
    writer.add_add_bos_token(False)  # ... but a prompt is only what was typed


def named(model: GPT) -> Iterator[tuple[str, Tensor]]:
    """Every tensor under the name llama.cpp knows it by; their layout is ours: [out, in]."""
    yield "token_embd.weight", model.token_embedding.weight
    assert model.position_embedding is not None  # see `refuse`
    yield "position_embd.weight", model.position_embedding.weight
    for layer, block in enumerate(model.blocks):
        assert isinstance(block, Block)
        modules = (
            block.attention_norm,
            block.attention.queries_keys_values,
            block.attention.projection,
            block.mlp_norm,
            block.mlp.widen,
            block.mlp.projection,
        )
        for theirs, ours in zip(PARTS, modules, strict=True):
            for part in ("weight", "bias"):
                tensor = getattr(ours, part).detach()
                if theirs == "attn_qkv" and model.config.scale_by_layer:
                    tensor = scaled_queries(tensor, 1 / (layer + 1))
                yield f"blk.{layer}.{theirs}.{part}", tensor
    yield "output_norm.weight", model.final_norm.weight
    yield "output_norm.bias", model.final_norm.bias
    if model.output is not None:
        yield "output.weight", model.output.weight


def scaled_queries(tensor: Tensor, scale: float) -> Tensor:
    """llama.cpp knows no extra division of the scores: smaller queries give the same scores."""
    queries, rest = tensor.split([len(tensor) // 3, 2 * len(tensor) // 3])
    return torch.cat([queries * scale, rest])


def storage(name: str, tensor: Tensor, kind: str) -> gguf.GGMLQuantizationType:
    """How one tensor is stored: as llama.cpp's own converter does, and q8_0 for the output in a q4_0 file."""
    gguf = library()
    types = gguf.GGMLQuantizationType
    if tensor.ndim == 1 or name == "position_embd.weight":
        return types.F32
    if kind == "q4_0" and name in ("token_embd.weight", "output.weight"):
        kind = "q8_0"  # every logit is a product with these rows: 4 bits cost more here than anywhere else
    stored = types[kind.upper()]
    return types.F16 if tensor.shape[-1] % gguf.GGML_QUANT_SIZES[stored][0] else stored


def packed(name: str, tensor: Tensor, stored: gguf.GGMLQuantizationType) -> np.ndarray[Any, Any]:
    """The bytes of one tensor, by the arithmetic llama.cpp quantizes with."""
    values = tensor.detach().to("cpu", torch.float32).contiguous()
    if not finite(values):
        raise CutawayError(f"{name} holds values that are not numbers (NaN or infinite): this model is broken.")
    with np.errstate(over="ignore"):
        result = library().quants.quantize(values.numpy(), stored)
    if result.dtype == np.float16 and not np.isfinite(result).all():
        raise CutawayError(f"{name} holds values too large for float16. Export it as f32.")
    return result


def append(writer: gguf.GGUFWriter, data: np.ndarray[Any, Any]) -> None:
    try:
        writer.write_tensor_data(data)
    except OSError as error:
        if error.errno is None:  # numpy only says how much it could not write
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        raise
