"""From a model's name to the folder it is in. Needs no torch, so that a verb can complain at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from cutaway.errors import CutawayError, nearest

DATA = Path(__file__).parents[1] / "data"
PIANIST = "pianist"
BERT = "bert"
SHIPPED = (
    "builtin", "translator", "summarizer", "classifier", "rnn-plain", "rnn", "transformer", "elmo", BERT, PIANIST,
)  # fmt: skip
"""The models that come with the package: the one that writes, one for each of the verbs that answer, the machines of
the sister articles (translators without attention, with it, and of it alone; words in context), and the pianist."""

PACKED = ".cutaway"
"""How the name of a file of packed weights ends (see runtime/native/packed_file.py)."""
NANOGPT = "ckpt.pt"
ADAPTER = "adapter_config.json"
FILES = {PACKED: "packed", ".gguf": "gguf", ".pt": "nanogpt"}
"""The files that hold a whole model, by how their names end."""


def is_adapter(folder: str | Path) -> bool:
    """Whether a folder holds a LoRA adapter and no model of its own."""
    return (Path(folder) / ADAPTER).is_file() and not (Path(folder) / "config.json").is_file()


def file_kind(path: str | Path) -> str | None:
    """Which kind of file holds a whole model here: "packed", "gguf" or "nanogpt"; None for a folder of several."""
    path = Path(path)
    if path.is_dir():
        return "nanogpt" if (path / NANOGPT).is_file() and not (path / "config.json").exists() else None
    return FILES.get(path.suffix) if path.is_file() else None


def locate(name: str | Path, progress: Callable[[str, int, int], None] | None = None) -> Path:
    """The folder a name stands for: a model that ships, the folder itself, or one on the hub, fetched if not here.

    A file that holds a whole model (packed weights, GGUF, nanoGPT's checkpoint) stands for itself.
    """
    name = str(name)
    if name in SHIPPED:
        return DATA / name
    if Path(name).is_dir() or file_kind(name):
        return Path(name)
    if Path(name).exists():
        raise CutawayError(
            f"The file {name} is in a format that is not supported. A model is a folder with config.json and weights, "
            f"or a file that ends in {', '.join(FILES)}.",
            "a_file",
            name=name,
            kinds=", ".join(FILES),
        )
    if not re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)?", name):
        raise CutawayError(
            f"There is no folder {name}. Give a folder with a checkpoint, 'builtin', or a name like 'gpt2'.",
            "no_folder",
            name=name,
        )
    from cutaway.checkpoint import hub  # with all of Python's network

    try:
        return hub.find_model(name) or hub.pull(name, progress=progress)
    except CutawayError as error:
        message = f"{error}{nearest(name, SHIPPED)} The model that ships is called builtin."
        raise CutawayError(message, error.code, **error.values) from None
