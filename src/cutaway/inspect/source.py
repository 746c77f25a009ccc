"""The texts that changes take values from, each read once: a sweep asks for the same one at every cell."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from cutaway.inspect.run import Run, run
from cutaway.parts.trace import Trace
from cutaway.parts.versions import versions

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel

REMEMBERED = 4
"""So many texts of a model are at hand; the one asked for longest ago goes first."""

_traces: WeakKeyDictionary[LanguageModel, tuple[object, OrderedDict[tuple[int, ...], Trace]]] = WeakKeyDictionary()
"""For each model: its weights' versions, and what the texts made. No trace holds the model, so that it can go."""


def source_run(lm: LanguageModel, text: str) -> Run:
    """The run over a text that values are taken from, at hand if it was read before by the same weights."""
    ids, now = tuple(lm.ids(text)), versions(lm.model)
    known, traces = _traces.get(lm, (None, OrderedDict()))
    if known != now:
        traces = OrderedDict()
    if ids not in traces:
        traces[ids] = run(lm, ids).trace
    traces.move_to_end(ids)
    while len(traces) > REMEMBERED:
        traces.popitem(last=False)
    _traces[lm] = now, traces
    return Run(lm, ids, len(ids), (), traces[ids])
