"""The shape of a model from the file that states it: config.json of Hugging Face, hparams.json of OpenAI. No torch."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from cutaway.checkpoint.files import read_json
from cutaway.errors import CutawayError
from cutaway.models.architecture import architecture
from cutaway.models.gpt2.shape import Config

CONFIG = "config.json"
HPARAMS = "hparams.json"
OPENAI_FIELDS = {"n_vocab": "vocabulary", "n_ctx": "context", "n_embd": "width", "n_head": "heads", "n_layer": "layers"}


def read_huggingface(folder: Path) -> Config:
    """The shape in `config.json`, read by the architecture that it names."""
    path = folder / CONFIG
    given = read_json(path)
    kind = given.get("model_type", "gpt2" if "n_embd" in given else None)
    try:
        known = architecture(str(kind))
        shape: Config = known.read_shape(given)
        return known.shape_with(shape, stored_names(folder)) if hasattr(known, "shape_with") else shape
    except CutawayError as error:
        raise CutawayError(f"{path}: {error}") from None
    except KeyError as error:  # of a model from outside, which need not check as ours do
        raise CutawayError(f"{path} lacks {error}, which a model of the type {kind!r} has.") from None
    except (TypeError, ValueError) as error:
        raise CutawayError(f"{path} is not that of a model of the type {kind!r}: {error}.") from None


def stored_names(folder: Path) -> Collection[str]:
    """The names of the tensors in a folder."""
    from cutaway.checkpoint.huggingface import find_weights, read_tensors  # with all of torch

    return read_tensors(find_weights(folder)).readers


def read_openai(folder: Path) -> Config:
    """The shape in `hparams.json`."""
    path = folder / HPARAMS
    given = read_json(path)
    for field in OPENAI_FIELDS:
        if type(given.get(field)) is not int:
            raise CutawayError(f"{path} should give {field} as a whole number, and gives {given.get(field)!r}.")
    try:
        return Config(**{ours: given[field] for field, ours in OPENAI_FIELDS.items()})
    except CutawayError as error:
        raise CutawayError(f"{path}: {error}") from None
