"""Which models the explorer can show: those on this machine, those the hub offers, and the few that are awake."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cutaway.checkpoint import hub
from cutaway.checkpoint.locate import SHIPPED, file_kind, locate
from cutaway.checkpoint.store import PINNED
from cutaway.errors import CutawayError
from cutaway.inspect.parameters import parameters
from cutaway.models.gpt2.shape import SIZES, Config
from cutaway.serve.recent import Recent

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel
    from cutaway.tasks.answer import TextClassifier

AWAKE = 2
"""So many models stay in memory; waking another puts the one used longest ago to sleep."""
TASKS = 5
"""So many more that were trained for tasks: asking one does not put the model being shown to sleep. The contest asks
all the translators that ship, one after the other."""


class NotAwake(CutawayError):
    """The model must be woken (POST /api/models) before it is asked."""


@dataclass
class Waking:
    """How far a model is: being fetched, being read from disk, awake, or failed."""

    name: str
    phase: str = "fetching"
    file: str = ""
    done: int = 0
    total: int = 0
    error: Exception | None = None


class Models:
    """The models by name. Waking one takes a thread of its own, so that the page goes on meanwhile."""

    def __init__(
        self,
        folders: Sequence[str] = (),
        device: str | None = None,
        dtype: str | None = None,
        prepare: Callable[[LanguageModel | TextClassifier], None] = lambda lm: None,
        tokenizers: Mapping[str, str] | None = None,
    ):
        """`tokenizers` names one for each model that is not to be shown with its own."""
        self.tokenizers = dict(tokenizers or {})
        self.folders, self.device, self.dtype, self.prepare = list(folders), device, dtype, prepare
        self.offered: dict[str, str] = {}
        self.awake: Recent[str, LanguageModel] = Recent(AWAKE)
        self.tasks: Recent[str, LanguageModel | TextClassifier] = Recent(TASKS)
        self.waking: dict[str, Waking] = {}
        self.loading: list[tuple[threading.Thread, Waking]] = []
        self.lock = threading.Lock()

    def add(self, lm: LanguageModel) -> None:
        """Put a model that is in memory already among those awake, under its own name."""
        self.prepare(lm)
        with self.lock:
            self.awake.keep(lm.name, lm)

    def offer(self, name: str, folder: str) -> None:
        """Have a folder chosen by a name of its own; what had the name before is put to sleep."""
        with self.lock:
            self.offered[name] = folder
            self.awake.pop(name, None)
            self.waking.pop(name, None)

    def get(self, name: str) -> LanguageModel:
        with self.lock:
            if name not in self.awake:
                raise NotAwake(f"The model {name} is not loaded. Choose it in the model menu.", "asleep", name=name)
            return self.awake.keep(name, self.awake[name])

    def for_task(self, name: str) -> LanguageModel | TextClassifier:
        """A model for a task, read now if it is not in memory; whoever asks waits."""
        with self.lock:
            known = self.tasks.get(name) or self.awake.get(name)
        if known is None:
            from cutaway.loading import load
            from cutaway.tasks import load_task
            from cutaway.tasks.answer import load_classifier

            known = load_classifier(name) if load_task(locate(name)).outputs else load(name)
            self.prepare(known)
        with self.lock:
            return known if name in self.awake else self.tasks.keep(name, known)

    def wake(self, name: str) -> Waking:
        """Begin to fetch and read a model, unless that is under way or done; how far it is."""
        with self.lock:
            if name in self.awake:
                return Waking(name, "awake")
            now = self.waking.get(name)
            if now is None or now.phase in ("failed", "awake"):  # awake it was, and others have taken its room since
                now = self.waking[name] = Waking(name)
                thread = threading.Thread(target=self._wake, args=(now,), daemon=True)
                self.loading = [one for one in self.loading if one[0].is_alive()] + [(thread, now)]
                thread.start()
            return now

    def close(self) -> None:
        """Wait for models that are being read: the process must not end inside torch, which would abort it.

        A download is left: it goes on where it was the next time.
        """
        for thread, now in self.loading:
            while thread.is_alive() and not (now.phase == "fetching" and now.total):
                thread.join(0.05)

    def progress(self, name: str) -> Waking:
        """How far a model is; one that nobody asked for is asleep."""
        with self.lock:
            if name in self.awake:
                return Waking(name, "awake")
            return self.waking.get(name) or Waking(name, "asleep")

    def _wake(self, now: Waking) -> None:
        def report(file: str, done: int, total: int) -> None:
            now.file, now.done, now.total = file, done, total

        try:
            where = self.offered.get(now.name, now.name)
            locate(where, report)
            now.phase = "reading"
            from cutaway.loading import load

            lm = load(where, self.device, self.dtype, tokenizer=self.tokenizers.get(now.name))
            if now.name in self.offered:
                lm.name = now.name
            self.add(lm)
            now.phase = "awake"
        except Exception as error:  # said in the page, whatever it was
            now.error, now.phase = error, "failed"

    def listing(self) -> list[dict[str, Any]]:
        """Every model that can be chosen: here (awake, shipped, given, fetched), then what the hub offers."""
        entries: dict[str, dict[str, Any]] = {}
        for name, lm in list(self.awake.items()):
            entries[name] = entry(name, lm.config, "here")
        given = {name: locate(name) for name in SHIPPED} | {name: name for name in self.folders} | self.offered
        for name, folder in given.items():
            if name not in entries and (config := config_in(Path(folder))):
                entries[name] = entry(name, config, "here")
        short = {pin.name: name for name, pin in PINNED.items()}
        for model in hub.local():
            name = short.get(model.name, model.name)
            if name not in entries and (config := config_in(model.folder)):
                entries[name] = entry(name, config, "here", model.bytes)
        for name, config in SIZES.items():
            if name not in entries:
                entries[name] = entry(name, config, "hub", 4 * parameters(config).total)
        return [{**one, "awake": one["name"] in self.awake} for one in entries.values()]


def config_in(folder: Path) -> Config | None:
    """The shape of the language model in a folder or packed file; None where there is none that could be shown."""
    from cutaway import checkpoint

    described = folder / "config.json"
    if not file_kind(folder) and (not described.is_file() or "SequenceClassification" in described.read_text()):
        return None
    try:
        return checkpoint.read_config(folder)
    except CutawayError:
        return None


def entry(name: str, config: Any, where: str, size: int | None = None) -> dict[str, Any]:
    """A model as the menu shows it."""
    return {"name": name, "where": where, "bytes": size, **shape(config)}


def shape(config: Any) -> dict[str, Any]:
    """The numbers of a model's shape that the pages draw by; not every kind of model has all of them."""
    names = ("layers", "heads", "width", "head_width", "mlp_width", "context", "vocabulary")
    found = {name: getattr(config, name) for name in names if hasattr(config, name)}
    return {**found, "parameters": parameters(config).total}
