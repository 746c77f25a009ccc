"""Cutaway: GPT-2 with the casing off.

import cutaway
lm = cutaway.load()                      # the built-in model; or a folder, or a name on the hub
print(lm.generate("Once upon a time").text)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from cutaway.decoding.sequence import Result
    from cutaway.errors import CutawayError
    from cutaway.language_model import LanguageModel
    from cutaway.loading import load
    from cutaway.models.gpt2.model import GPT
    from cutaway.models.gpt2.shape import SIZES, Config
    from cutaway.parts.trace import Trace
    from cutaway.runtime.scoring import Score
    from cutaway.text.tokenizer import Tokenizer

_HOME = {
    "SIZES": "models.gpt2.shape", "Config": "models.gpt2.shape", "GPT": "models.gpt2.model", "Trace": "parts.trace",
    "Tokenizer": "checkpoint.opened", "Result": "decoding.sequence", "Score": "runtime.scoring",
    "CutawayError": "errors", "LanguageModel": "language_model", "load": "loading",
}  # fmt: skip
__all__ = ["GPT", "SIZES", "Config", "CutawayError", "LanguageModel", "Result", "Score", "Tokenizer", "Trace", "load"]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: `import cutaway` and `cutaway --help` do not wait for torch."""
    if name == "train":
        return importlib.import_module("cutaway.train")
    if name in _HOME:
        return getattr(importlib.import_module(f"cutaway.{_HOME[name]}"), name)
    raise AttributeError(f"module 'cutaway' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
