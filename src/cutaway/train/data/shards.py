"""Data prepared for training: files of any size, tokenised on all cores into memory-mapped arrays, once.

cache/
  digests.json              contents of files already read, by their size and times
  <fingerprint>/            a data set: dataset.json, train.tokens, train.offsets, ..., held.tokens, ...
  unfinished-<method>/      pieces of data sets being made: what an interrupted run goes on with
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from cutaway.atomic import flush
from cutaway.errors import CutawayError
from cutaway.processor import cores
from cutaway.tasks.task import Arrays, Task
from cutaway.train.data import pieces, sources
from cutaway.train.data.blocks import Block
from cutaway.train.data.digests import digests
from cutaway.train.data.merge import file_names, merge
from cutaway.train.data.pieces import Method, Summary
from cutaway.train.data.records import BLOCK, blocks
from cutaway.train.data.workers import no_room, work

if TYPE_CHECKING:
    from cutaway.text.tokenizer import Tokenizer

VERSION = 1
"""Of the way data is read, cut and stored: another one makes other data sets."""
SECTION = 8192
"""Characters in a section of a long text, at most; in little data sections are shorter, so that there are some 200."""
TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# Made by Cutaway from your data. It may be deleted at any time.\n"

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Report:
    """What a data set was made of."""

    documents: int
    """Documents or records in it, held out or not."""
    tokens: int
    bytes: int
    """UTF-8 bytes of their text."""
    dropped: Mapping[str, int]
    """Records left out, by the reason."""
    cut: int
    """Examples that lost tokens because they were too long."""
    cut_tokens: int
    skipped: tuple[str, ...]
    """Files in the given folders that are of no kind that can be read."""
    refused: tuple[str, ...] = ()
    """Why records were left out that are damaged, each a sentence that names its file; the first hundred."""

    def __str__(self) -> str:
        documents = "document" if self.documents == 1 else "documents"
        parts = [f"{self.documents:,} {documents}, {self.tokens:,} tokens"]
        parts[0] += f", {self.bytes:,} bytes" if self.bytes else ""
        parts += [f"left out: {', '.join(f'{count:,} {reason}' for reason, count in self.dropped.items())}"] * bool(
            self.dropped
        )
        parts += [f"cut to fit: {self.cut:,} (by {self.cut_tokens:,} tokens)"] * bool(self.cut)
        parts += [f"not read: {len(self.skipped):,} other files"] * bool(self.skipped)
        return "; ".join(parts)


@dataclass(frozen=True)
class Stored:
    """An array of every example, one after the other on the disk."""

    values: NDArray[Any]
    offsets: NDArray[np.uint64]

    def __getitem__(self, number: int) -> NDArray[Any]:
        return self.values[int(self.offsets[number]) : int(self.offsets[number + 1])]


@dataclass(frozen=True)
class Split:
    """One side of a data set: examples one after the other, on the disk, read as they are needed."""

    fingerprint: str
    """Changes with anything that changes the examples or their order."""
    arrays: Mapping[str, Stored]
    """The `ids` of the examples and the task's other arrays, by name."""
    bytes: int
    """UTF-8 bytes of the text."""
    together: int = 1
    """So many examples in a row belong to one record and stay together."""
    packed: bool = False
    """Whether this is one long text, to be read in windows."""
    ahead: int = 1
    """How many ids at the end of an example or window are only targets (see `Task.ahead`)."""

    @property
    def tokens(self) -> NDArray[Any]:
        """All ids in a row."""
        return self.arrays["ids"].values

    @property
    def offsets(self) -> NDArray[np.uint64]:
        """Where each example begins in `tokens`, and at last where the last one ends."""
        return self.arrays["ids"].offsets

    @property
    def records(self) -> int:
        return len(self) // self.together

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, number: int) -> NDArray[Any]:
        """The ids of one example."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        return self.arrays["ids"][number]

    def example(self, number: int) -> Arrays:
        """All arrays of one example, by name."""
        return {name: stored[number] for name, stored in self.arrays.items()}


@dataclass(frozen=True)
class Dataset:
    """Data ready to train on: `train`, and `held`, which is never trained on."""

    folder: Path
    fingerprint: str
    train: Split
    held: Split
    report: Report

    @classmethod
    def open(cls, folder: Path) -> Dataset | None:
        """The data set in a folder; None if there is none, or not all of it."""
        try:
            about = json.loads((folder / "dataset.json").read_text(encoding="utf-8"))
            if about["version"] != VERSION:
                return None
            if any((folder / name).stat().st_size != size for name, size in about["sizes"].items()):
                return None
            train, held = (_split(folder, side, about) for side in ("train", "held"))
            skipped, refused = (tuple(about["report"].pop(name, ())) for name in ("skipped", "refused"))
            report = Report(**about["report"], skipped=skipped, refused=refused)
            return cls(folder, about["fingerprint"], train, held, report)
        except (OSError, ValueError, KeyError, TypeError):
            return None


def _split(folder: Path, side: str, about: Mapping[str, Any]) -> Split:
    def array(name: str, kind: str) -> NDArray[Any]:
        path = folder / f"{side}.{name}"
        if not path.stat().st_size:
            return np.empty(0, kind)  # nothing cannot be mapped
        return np.memmap(path, kind, mode="r")

    return Split(
        fingerprint=f"{about['fingerprint']}/{side}",
        arrays={
            name: Stored(array(file_names(name)[0], kind), array(file_names(name)[1], "<u8"))
            for name, kind in about["arrays"].items()
        },
        bytes=about[side]["bytes"],
        together=about["together"],
        packed=about["packed"],
        ahead=about["ahead"],
    )


def prepare(
    paths: Sequence[Path | str],
    tokenizer: Tokenizer,
    task: Task,
    cache: Path | str,
    held_out: float | int = 0.01,
    seed: int = 0,
    columns: Mapping[str, str | int] | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """The data in these files and folders, as the task's examples in tokens. See `records` for what can be read.

    What has been prepared before, from the same contents in the same way, is taken from the cache; what was
    interrupted goes on. `held_out` is a share of the documents or their number; they are chosen by contents and seed,
    and equal ones stay together. `progress` hears how many bytes have been read, and of how many. The result does not
    depend on `workers`, the number of processes (as many as there are cores, unless told).
    """
    if isinstance(held_out, bool) or held_out < 0 or (isinstance(held_out, float) and held_out >= 1):
        raise CutawayError(f"held_out is a share from 0 to 1 or a number of documents, not {held_out!r}.")
    if workers is not None and workers < 1:
        raise CutawayError(f"The number of workers must be 1 or more, not {workers}.")
    found = sources.find(paths, task.fields, columns)
    cache = Path(cache)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        if not (cache / sources.CACHE_TAG).exists():
            (cache / sources.CACHE_TAG).write_text(TAG, encoding="utf-8")
    except OSError as error:
        raise no_room(cache, error) from error
    for left in cache.glob("discarded-*"):  # by a run that was ended while it removed them
        shutil.rmtree(left, ignore_errors=True)
    contents = digests(found.files, cache / "digests.json")
    total = sum(path.stat().st_size for path in found.files)
    section = min(SECTION, max(256, total // 200))
    way = [VERSION, task.settings(), task.fields, dict(columns or {}), _tokenizer_digest(tokenizer), section]
    method = _digest(way)
    kinds = [(source.kind, len(source.paths), *source.place) for source in found.read]
    fingerprint = _digest([method, kinds, contents, held_out, seed])
    if ready := Dataset.open(cache / fingerprint):
        return ready
    try:
        with _locked(cache / f"unfinished-{method}.lock"):
            if ready := Dataset.open(cache / fingerprint):  # made by the process that had the lock
                return ready
            job = _Job(cache, found, Method(task, tokenizer, section), method, fingerprint, columns, total)
            made = job.run(held_out, seed, workers, progress)
            if digests(found.files, cache / "digests.json") != contents:
                shutil.rmtree(made, ignore_errors=True)
                raise CutawayError("The data changed while it was being read. Run this again when it is complete.")
            discarded = job.folder.rename(cache / f"discarded-{fingerprint}")  # at once: they are of no use to anyone
            shutil.rmtree(discarded, ignore_errors=True)
    except OSError as error:
        raise no_room(cache, error) from error
    ready = Dataset.open(made)
    if ready is None:
        raise CutawayError(f"The data set in {made} is incomplete: is something else writing there? Run this again.")
    return ready


@dataclass(frozen=True)
class _Job:
    """The making of one data set."""

    cache: Path
    found: sources.Sources
    way: Method
    method: str
    fingerprint: str
    columns: Mapping[str, str | int] | None
    total: int

    @property
    def folder(self) -> Path:
        return self.cache / f"unfinished-{self.method}"

    def run(self, held_out: float | int, seed: int, workers: int | None, progress: Progress | None) -> Path:
        """Tokenise, divide, write; the folder that holds the result."""
        self.folder.mkdir(exist_ok=True)
        for left in self.folder.glob("data-*"):  # half written by a run that was ended
            shutil.rmtree(left, ignore_errors=True)
        if workers is None:
            packed = sum(path.stat().st_size for path in self.found.files if path.suffix.lower() in sources.PACKED)
            music = sum(path.stat().st_size for one in self.found.read if one.kind == "midi" for path in one.paths)
            size = self.total + 3 * packed + 7 * music  # text packs to a quarter or so, and a note to a few bytes
            workers = min(cores(), size // BLOCK + 1)
        if workers > 1 and not (self.folder / "tokenizer").is_dir():
            beside = self.folder / f"tokenizer-{uuid.uuid4().hex[:8]}"
            self.way.tokenizer.save(beside)
            beside.replace(self.folder / "tokenizer")
        paths, summary = self._tokenise(workers, progress)
        if not summary.examples:
            raise self._nothing(summary)
        new = self.folder / f"data-{uuid.uuid4().hex[:8]}"
        new.mkdir()
        sides = merge(paths, summary, new, self.way, held_out, seed)
        report = Report(
            documents=summary.records,
            tokens=sides["train"]["tokens"] + sides["held"]["tokens"],
            bytes=sides["train"]["bytes"] + sides["held"]["bytes"],
            dropped=summary.dropped,
            cut=summary.cut,
            cut_tokens=summary.cut_tokens,
            skipped=tuple(str(path) for path in self.found.skipped),
            refused=tuple(sorted(summary.refused)),  # whoever met them first
        )
        about = {
            "version": VERSION,
            "fingerprint": self.fingerprint,
            "arrays": self.way.kinds,
            "packed": self.way.task.packed,
            "ahead": self.way.task.ahead,
            "together": self.way.task.together,
            **sides,
            "report": asdict(report),
            "made": {
                "from": [str(path) for path in self.found.files],
                "task": self.way.task.settings(),
                "columns": dict(self.columns or {}),
                "held_out": held_out,
                "seed": seed,
            },
            "sizes": {path.name: path.stat().st_size for path in sorted(new.iterdir())},
        }
        (new / "dataset.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
        for path in new.iterdir():
            flush(path)
        final = self.cache / self.fingerprint
        shutil.rmtree(final, ignore_errors=True)  # there is one only if it was not whole
        new.rename(final)
        return final

    def _tokenise(self, workers: int, progress: Progress | None) -> tuple[list[Path], Summary]:
        paths: dict[int, Path] = {}
        summary, consumed = Summary(), 0
        for done in work(self._blocks(), self._name, self.way, self.folder, workers):
            paths[done.number] = done.path
            summary += done.summary
            consumed += done.consumed
            if progress:
                progress(min(consumed, self.total), self.total)
        if progress and consumed != self.total:
            progress(self.total, self.total)
        return [paths[number] for number in sorted(paths)], summary

    def _blocks(self) -> Iterator[Block]:
        for source in self.found.read:
            yield from blocks(source, self.way.task.fields, self.columns, BLOCK)

    def _name(self, block: Block) -> str:
        return pieces.name(block, self.method)

    def _nothing(self, summary: Summary) -> CutawayError:
        files = ", ".join(map(str, self.found.files[:3])) + (", ..." if self.found.files[3:] else "")
        if summary.dropped:
            why = ", ".join(f"{count:,} {reason}" for reason, count in summary.dropped.items())
            if summary.refused:
                return CutawayError(f"Nothing of {files} can be used ({why}). The first: {summary.refused[0]}")
            return CutawayError(f"No record of {files} can be used: {why}. See the task's limit, or give other data.")
        wanted = " and ".join(self.way.task.fields)
        return CutawayError(f"There is nothing in {files}: give data with {wanted}.")


_seen: WeakKeyDictionary[Tokenizer, str] = WeakKeyDictionary()


def _tokenizer_digest(tokenizer: Tokenizer) -> str:
    """What its files hold."""
    if tokenizer not in _seen:
        with tempfile.TemporaryDirectory() as folder:
            tokenizer.save(Path(folder) / "tokenizer")
            files = sorted((Path(folder) / "tokenizer").iterdir())
            _seen[tokenizer] = _digest([[one.name, hashlib.sha256(one.read_bytes()).hexdigest()] for one in files])
    return _seen[tokenizer]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time; the others wait. The lock of a process that is ended is free again."""
    with path.open("ab") as file:
        if sys.platform == "win32":
            import msvcrt
            import time

            while True:
                try:
                    msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
                    break
                except OSError:
                    time.sleep(0.2)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
