"""What the explorer remembers between two questions: the models awake, and the last few texts carried through."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cutaway.errors import CutawayError
from cutaway.serve.models import Models
from cutaway.serve.worker import Worker

if TYPE_CHECKING:
    from cutaway.inspect.runs import Run
    from cutaway.language_model import LanguageModel

MEMORY = 1 << 30
"""Bytes of runs that are remembered; the one looked at longest ago is forgotten first."""
RUNS = 24
"""No more runs than this, however small."""


class Forgotten(CutawayError):
    """The run is no longer remembered: make it again (POST /api/traces) and ask once more."""


class TooLong(CutawayError):
    """The text has more tokens than the model has positions."""

    def __init__(self, tokens: int, context: int):
        super().__init__(
            f"The text is {tokens:,} tokens long and this model's context is {context:,}. "
            f"Shorten it by {tokens - context:,}, or choose a model with a longer context.",
            "too_long",
            tokens=tokens,
            context=context,
        )


class Explorer:
    """Models, runs and the one thread they live in, and another for the weights. Knows nothing of HTTP."""

    def __init__(
        self,
        folders: Sequence[str] = (),
        device: str | None = None,
        dtype: str | None = None,
        tokenizers: Mapping[str, str] | None = None,
    ):
        self.worker = Worker()
        self.drawing = Worker()  # weights are looked at without running a model: they do not wait for one
        self.models = Models(folders, device, dtype, lambda lm: self.worker.watch(lm.model), tokenizers)
        self.runs: OrderedDict[str, Run] = OrderedDict()
        self.lock = threading.Lock()

    def tokens(self, lm: LanguageModel, text: str, more: Sequence[int]) -> list[int]:
        """The text's ids and the tokens picked after it; the end token stands for nothing at all, as in training."""
        ids = [*lm.ids(text), *lm.ids(list(more))] or [lm.config.end]
        context = getattr(lm.config, "context", len(ids))  # a model without positions reads any text
        if len(ids) > context:
            raise TooLong(len(ids), context)
        return ids

    def trace(
        self, model: str, text: str, more: Sequence[int] = (), changes: Sequence[dict[str, Any]] = ()
    ) -> tuple[str, Run]:
        """Carry a text through a model, once: the same question again gives the same run and the same id."""
        lm = self.models.get(model)
        ids = self.tokens(lm, text, more)
        name = json.dumps([model, ids, list(changes)], sort_keys=True)
        key = hashlib.sha256(name.encode()).hexdigest()[:16]
        with self.lock:
            found = self.runs.get(key)
        if found is None:
            from cutaway.inspect.runs import common, run

            with self.lock:
                before = max(self.runs.values(), key=lambda one: common(one, lm, ids), default=None)
            self.worker.expect(1, lm.model)
            found = run(lm, ids, changes=read_changes(changes), after=before)
        self.remember(key, found)
        return key, found

    def remember(self, key: str, run: Run) -> None:
        with self.lock:
            self.runs[key] = run
            self.runs.move_to_end(key)
            while len(self.runs) > 1 and (
                len(self.runs) > RUNS or sum(one.nbytes for one in self.runs.values()) > MEMORY
            ):
                self.runs.popitem(last=False)

    def run(self, key: str) -> Run:
        """A run made before, by its id."""
        with self.lock:
            if key not in self.runs:
                raise Forgotten("This run is no longer remembered. Ask for it again.")
            self.runs.move_to_end(key)
            return self.runs[key]

    def close(self) -> None:
        self.models.close()
        self.worker.close()
        self.drawing.close()


def read_changes(changes: Sequence[dict[str, Any]]) -> list[Any]:
    if not changes:
        return []
    from cutaway.inspect.change import from_dict

    return [from_dict(change) for change in changes]
