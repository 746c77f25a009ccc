"""From a model's name to the folder it is in. Needs no torch, so that a verb can complain at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from cutaway.checkpoint import hub
from cutaway.errors import CutawayError, nearest

BUILTIN = Path(__file__).parents[1] / "data" / "builtin"


def locate(name: str | Path, progress: Callable[[str, int, int], None] | None = None) -> Path:
    """The folder a name stands for: "builtin", the folder itself, or a model on the hub, fetched if it is not here."""
    name = str(name)
    if name == "builtin":
        return BUILTIN
    if Path(name).is_dir():
        return Path(name)
    if Path(name).exists():
        raise CutawayError(f"{name} is a file. A model is a folder with config.json and weights in it.")
    if not re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)?", name):
        raise CutawayError(
            f"There is no folder {name}. Give a folder with a checkpoint, 'builtin', or a name like 'gpt2'."
        )
    try:
        return hub.find(name) or hub.pull(name, progress=progress)
    except CutawayError as error:
        raise CutawayError(f"{error}{nearest(name, ['builtin'])} The model that ships is called builtin.") from None
