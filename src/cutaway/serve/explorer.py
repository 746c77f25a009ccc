"""What the explorer remembers between two questions: the models awake, and the last few texts carried through."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cutaway.errors import CutawayError
from cutaway.models.architecture import context_of, start_of
from cutaway.serve.learning.sessions import Sessions
from cutaway.serve.models import Models
from cutaway.serve.recent import Recent
from cutaway.serve.tour import TourFile
from cutaway.serve.worker import Worker

if TYPE_CHECKING:
    from cutaway.inspect.runs import Run
    from cutaway.inspect.view import View
    from cutaway.language_model import LanguageModel
    from cutaway.tasks.answer import TextClassifier

MEMORY = 1 << 30
"""Bytes of runs that are remembered; the one looked at longest ago is forgotten first."""
ANSWERS = 128
"""So many answers are at hand that are dear to make: all heads of a long text, matrices drawn, tasks answered."""
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
        tour: TourFile | None = None,
    ):
        self.tour = tour
        self.presenting = False  # whether a remote can control the page (stage.py)
        self.worker = Worker()
        self.drawing = Worker()  # weights are looked at without running a model: they do not wait for one
        self.models = Models(folders, device, dtype, self._watch, tokenizers)
        self.learning = Sessions()
        self.runs: OrderedDict[str, Run] = OrderedDict()
        self.answers: Recent[tuple[Any, ...], Any] = Recent(ANSWERS)
        self.lock = threading.Lock()

    def _watch(self, lm: LanguageModel | TextClassifier) -> None:
        model: Any = lm.model
        self.worker.watch(getattr(model, "gpt", model))  # a classifier is a model with a head

    def tokens(self, lm: LanguageModel, text: str, more: Sequence[int]) -> list[int]:
        """The text's ids and the tokens picked after it; the end token stands for nothing at all, as in training."""
        ids = [*lm.ids(text), *lm.ids(list(more))] or [lm.config.end]
        if start_of(lm.config) is None and len(ids) > (context := context_of(lm.config)):
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

            if start_of(lm.config) is not None:
                found = carry_pair(lm, ids, changes)
                self.remember(key, found)
                return key, found
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

    def forget(self, model: str) -> None:
        """Another model has this name now: what the one before said is not remembered."""
        with self.lock:
            for key in [key for key, one in self.runs.items() if one.lm.name == model]:
                del self.runs[key]
            self.answers.clear()

    def run(self, key: str) -> Run:
        """A run of one text made before, by its id."""
        found = self.made(key)
        if start_of(found.lm.config) is not None:
            raise CutawayError(
                f"This shows models of one text, and {found.lm.name} reads one and writes another. Open the page "
                "Translator, or choose another model.",
                "no_single",
                view="",
                model=found.lm.name,
            )
        return found

    def made(self, key: str) -> Run:
        """A run made before, of one text or of two."""
        with self.lock:
            if key not in self.runs:
                raise Forgotten("This run is no longer remembered. Ask for it again.")
            self.runs.move_to_end(key)
            return self.runs[key]

    def changed(self, key: str, changes: Sequence[dict[str, Any]]) -> tuple[str, Run]:
        """The run with these changes, under a name of its own; without any it is the run itself."""
        from cutaway.inspect.runs import run

        before = self.run(key)
        if not changes:
            return key, before
        name = hashlib.sha256(json.dumps([key, list(changes)], sort_keys=True).encode()).hexdigest()[:16]
        with self.lock:
            found = self.runs.get(name)
        found = found or run(before.lm, before.ids, changes=read_changes(changes))
        self.remember(name, found)
        return name, found

    def once(self, asked: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """An answer that is dear to make: the one at hand, or made now."""
        with self.lock:
            if asked in self.answers:
                return self.answers.keep(asked, self.answers[asked])
        found = make()
        with self.lock:
            return self.answers.keep(asked, found)

    def view(self, view: View, key: str, given: dict[str, Any]) -> dict[str, Any]:
        """What a view says of a run."""
        run = self.made(key)
        view.check(run.lm)
        if view.passes:
            self.worker.expect(view.passes(run, given), run.lm.model)
        if view.name == "change":
            return self._change(key, run, **given)

        def make() -> dict[str, Any]:
            found: dict[str, Any] = view.compute(run, given).to_dict()
            return found

        return self.once((key, view.name, json.dumps(given)), make) if view.remember else make()

    def _change(self, key: str, before: Run, changes: list[dict[str, Any]], position: int, k: int) -> dict[str, Any]:
        """The changed run gets a name, so that it can be asked about as well."""
        from cutaway.inspect.change import changed

        name, after = self.changed(key, changes)
        return replace(changed(before, after, position, k), id=name).to_dict()

    def close(self) -> None:
        self.learning.close()
        self.models.close()
        self.worker.close()
        self.drawing.close()


def carry_pair(lm: LanguageModel, ids: list[int], changes: Sequence[dict[str, Any]]) -> Run:
    """Source and target, as far as there is one."""
    from cutaway.inspect.pairs import pair_run

    if changes:
        raise CutawayError(
            f"Inside {lm.name} nothing can be changed: it reads one text and writes another.", "no_single"
        )
    return pair_run(lm, ids)


def read_changes(changes: Sequence[dict[str, Any]]) -> list[Any]:
    if not changes:
        return []
    from cutaway.inspect.change import from_dict

    return [from_dict(change) for change in changes]
