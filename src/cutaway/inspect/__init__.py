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
    from cutaway.inspect.circuit import edges, paths
    from cutaway.inspect.metric import KL, LogitDifference, Loss, Metric, Probability, Rank
    from cutaway.inspect.runs import Run, run, written
    from cutaway.inspect.steering import Add, Apply, Direction, steering_vector
    from cutaway.inspect.two_texts import Alignment, alignment

_HOME = {
    "Alignment": "two_texts", "alignment": "two_texts",
    "Add": "steering", "Apply": "steering", "Direction": "steering", "KL": "metric", "Loss": "metric", "Rank": "metric",
    "edges": "circuit", "paths": "circuit", "steering_vector": "steering",
    "AblateHead": "change", "AblateNeuron": "change", "Change": "change", "LogitDifference": "metric",
    "Metric": "metric", "Patch": "change", "Probability": "metric", "Run": "runs", "Steer": "change",
    "Toward": "change", "changed": "change", "explain": "arithmetic", "run": "runs", "written": "runs",
}  # fmt: skip
__all__ = [
    "KL", "AblateHead", "AblateNeuron", "Add", "Alignment", "Apply", "Change", "Direction", "LogitDifference", "Loss",
    "Metric", "Patch", "Probability", "Rank", "Run", "Steer", "Toward", "alignment", "changed", "edges", "explain",
    "paths", "run", "steering_vector", "written",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Import a name when it is first used: a table of parameters needs no torch."""
    if name in _HOME:
        return getattr(importlib.import_module(f"cutaway.inspect.{_HOME[name]}"), name)
    raise AttributeError(f"module 'cutaway.inspect' has no attribute {name!r}")
