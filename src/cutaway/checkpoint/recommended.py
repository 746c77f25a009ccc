"""The settings a model is recommended to write with: Hugging Face's `generation_config.json`.

Taken from it is how each token is chosen; the rest of the file is for other programs. What it does not say is left to
the usual settings, and what the caller says counts more than either.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cutaway.checkpoint.files import read_json
from cutaway.decoding.sampling import Sampling
from cutaway.errors import CutawayError

FILE = "generation_config.json"
NAMES = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
"""What is taken, under the same name there and in `Sampling`."""


def read_recommended(folder: Path) -> dict[str, Any]:
    """What the folder recommends, as settings of `Sampling`; empty if it recommends nothing."""
    path = folder / FILE
    if not path.is_file():
        return {}
    given = read_json(path)
    if given.get("do_sample") is False:
        return {"top_k": 1}
    found = {name: given[name] for name in NAMES if given.get(name) is not None}
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in found.values()):
        name = next(
            name for name, value in found.items() if isinstance(value, bool) or not isinstance(value, int | float)
        )
        raise CutawayError(f"{path}: {name} should be a number, not {found[name]!r}.")
    if "top_k" in found:
        found["top_k"] = int(found["top_k"]) or None
    try:
        Sampling(**found)
    except CutawayError as error:
        raise CutawayError(f"{path}: {error}") from None
    return found


def to_file(recommended: Mapping[str, Any], end: int) -> dict[str, Any]:
    """What the file holds: which token ends a text, and what is recommended, if anything is."""
    given: dict[str, Any] = {"bos_token_id": end, "eos_token_id": end}
    if recommended.get("top_k") == 1:
        return {**given, "do_sample": False}
    if recommended:
        given["do_sample"] = True
    return {**given, **{name: 0 if value is None else value for name, value in recommended.items()}}
