"""`cutaway.load`: from a model's name to a `LanguageModel`, by torch or by the native engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cutaway.checkpoint.locate import locate
from cutaway.checkpoint.opened import Checkpoint, open_checkpoint
from cutaway.errors import CutawayError
from cutaway.language_model import LanguageModel
from cutaway.models.architecture import architecture, count_parameters
from cutaway.models.gpt2.shape import Config
from cutaway.runtime.choice import choose_weights
from cutaway.runtime.native.engine import Engine
from cutaway.runtime.native.library import check_kind, check_native
from cutaway.runtime.native.pack import Packed, unpack
from cutaway.text.no_tokenizer import NoTokenizer
from cutaway.text.tokenizer import Tokenizer
from cutaway.text.vocabulary import NoVocabulary

if TYPE_CHECKING:
    import torch

    from cutaway.models.gpt2.model import GPT

DTYPES = ("float32", "bfloat16", "float16")
"""The number types that torch may be asked to compute in."""


def load(
    name: str | Path | Checkpoint = "builtin",
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    weights: str | None = None,
    tokenizer: str | Path | Tokenizer | None = None,
    engine: str = "auto",
) -> LanguageModel:
    """A model by name: "builtin", a folder with a checkpoint, a file of packed weights, or a model on the hub.

    `engine` says what writes texts: "torch", "native" (compiled kernels, on the processor), or "auto": native for
    packed weights and for float32 on a processor (up to 1 GiB of it), torch for all others. `weights` packs them:
    "float32", "bfloat16", "int8" or "int4". `tokenizer` is used instead of the model's own: "gpt2", a folder, or one
    that is at hand. A model that has none takes ids and gives ids.
    """
    if isinstance(dtype, str) and dtype not in DTYPES:
        raise CutawayError(f"Unknown data type {dtype!r}. Known: {', '.join(DTYPES)}.")
    opened = name if isinstance(name, Checkpoint) else open_checkpoint(locate(name), str(name))
    if opened.weights is not None:
        return load_packed(opened, opened.weights, device, dtype, engine, weights, tokenizer)
    config = opened.config
    if engine == "auto" and not architecture(config.kind).native:
        engine = "torch"
    size, known = 4 * count_parameters(config), None
    native = weights is not None or engine == "native"
    if native:
        check_native(config)
    on_processor = str(device) == "cpu" or (device is None and (native or not has_accelerator()))
    if on_processor and dtype is None and choose_weights(engine, weights, "cpu", float32=True, size=size) == "float32":
        known, packed = find_tokenizer(tokenizer, opened), opened.pack()  # without torch, where the folder is plain
        if packed is not None:
            return assembled(opened, packed, known, "float32")
    numbers = None if dtype is None else number_type(dtype)
    place = find_device("cpu" if device is None and native else device)
    float32 = numbers is None or str(numbers) == "torch.float32"
    kind = choose_weights(engine, weights, place.type, float32, size)
    known = known or find_tokenizer(tokenizer, opened)
    lm = assembled(opened, opened.read_model(place, numbers), known, kind)
    if kind in (None, "float32"):  # packed when the first text is written
        return lm
    assert isinstance(lm.runtime, Engine)  # packed now
    lm.let_go()
    return lm


def load_packed(
    opened: Checkpoint,
    kind: str,
    device: str | torch.device | None,
    dtype: str | torch.dtype | None,
    engine: str,
    weights: str | None,
    tokenizer: str | Path | Tokenizer | None,
) -> LanguageModel:
    """A file that `cutaway convert --to cutaway-int8` wrote; where the native engine is not wanted, torch runs it."""
    packed = opened.pack()
    assert packed is not None
    known = find_tokenizer(tokenizer, opened)
    if weights is not None and check_kind(weights) != kind:
        raise CutawayError(f"{opened.path} holds {kind} weights. Leave out `weights`, or load the original model.")
    place = "cpu" if device is None or str(device) == "cpu" else find_device(device).type
    if engine == "auto" and (place != "cpu" or dtype is not None):
        engine = "torch"
    if choose_weights(engine, None if engine == "torch" else kind, place, dtype is None) is not None:
        return assembled(opened, packed, known, None)
    model = unpack(packed).to(find_device(device or "cpu"), None if dtype is None else number_type(dtype))
    return assembled(opened, model, known, None)


def assembled(opened: Checkpoint, model: GPT | Packed, tokenizer: Tokenizer, weights: str | None) -> LanguageModel:
    """Model and tokenizer, with an end token that there is, and the settings that the model recommends."""
    config = with_known_end(model.config, tokenizer)
    if isinstance(model, Packed):
        lm = LanguageModel(Engine(replace(model, config=config)), tokenizer, opened.name, weights)
    else:
        model.config = config
        lm = LanguageModel(model, tokenizer, opened.name, weights)
    lm.recommended, lm.ngrams = opened.read_recommended(), opened.read_ngrams()
    if lm.reads_both_ways:
        from cutaway.checkpoint.sentence import read_sentence

        lm.sentence = read_sentence(opened.path)
    return lm


def find_tokenizer(given: str | Path | Tokenizer | None, opened: Checkpoint) -> Tokenizer:
    """The tokenizer that is named, or the one that lies with the model, or what stands for none."""
    if isinstance(given, Tokenizer):
        return given
    if given is not None:
        return Tokenizer.load(given if str(given) == "gpt2" else locate(given))
    try:
        return opened.read_tokenizer()
    except NoVocabulary:
        return NoTokenizer(opened.config.vocabulary, opened.name)


def with_known_end(config: Config, tokenizer: Tokenizer) -> Config:
    """The shape with an end token that there is: the last entry of a padded vocabulary is taken for it, and is none."""
    known = config.end < len(tokenizer) and config.end_token is not None if hasattr(config, "end_token") else True
    if known or not hasattr(config, "but"):  # a shape from outside need not have it
        return config
    try:
        return config.but(end_token=tokenizer.end)
    except CutawayError:  # this vocabulary has none
        return config


def number_type(dtype: str | torch.dtype) -> torch.dtype:
    """A number type of torch's, by its name."""
    import torch

    found: torch.dtype = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    return found


def has_accelerator() -> bool:
    """Whether torch might find something better than the processor; asked without importing it, so at worst in vain."""
    return Path("/dev/nvidiactl").exists() or Path("/dev/kfd").exists()


def find_device(device: str | torch.device | None) -> torch.device:
    """The device asked for, or the fastest there is; refused in plain words if this machine has no such thing."""
    import torch

    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise CutawayError(
            f"This machine has no device {str(device)!r} to compute on. Try cpu, or name none."
        ) from None
    return torch.device(device)
