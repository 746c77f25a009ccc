"""Views of the machine as data: each is a pure function to a small typed result that turns into JSON.

from cutaway import inspect
seen = inspect.run(lm, "The little fox", changes=[inspect.AblateHead(4, 2)])
seen["logits"]                                # every intermediate by its name
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cutaway.inspect.arithmetic import explain
    from cutaway.inspect.change import AblateHead, AblateNeuron, Change, Patch, Steer, Toward, changed
    from cutaway.inspect.metric import LogitDifference, Metric, Probability
    from cutaway.inspect.runs import Run, run, written

_HOME = {
    "AblateHead": "change", "AblateNeuron": "change", "Change": "change", "LogitDifference": "metric",
    "Metric": "metric", "Patch": "change", "Probability": "metric", "Run": "runs", "Steer": "change",
    "Toward": "change", "changed": "change", "explain": "arithmetic", "run": "runs", "written": "runs",
}  # fmt: skip
__all__ = [
    "AblateHead", "AblateNeuron", "Change", "LogitDifference", "Metric", "Patch", "Probability", "Run", "Steer",
    "Toward", "changed", "explain", "run", "written",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Import a name when it is first used: a table of parameters needs no torch."""
    if name in _HOME:
        return getattr(importlib.import_module(f"cutaway.inspect.{_HOME[name]}"), name)
    raise AttributeError(f"module 'cutaway.inspect' has no attribute {name!r}")
