"""Traces of more texts than memory holds: written to a folder as they are made, read again by memory-mapping.

A file holds some texts (`00000.safetensors`, each tensor named `TEXT/NAME`) and is there whole or not at all, so that
a run that was ended goes on after the last of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, overload

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from cutaway.atomic import written_beside
from cutaway.errors import CutawayError
from cutaway.models.architecture import places
from cutaway.models.gpt2.model import GPT
from cutaway.parts.trace import Trace, matches
from cutaway.runtime.fingerprint import fingerprint
from cutaway.runtime.torch_texts import trace_texts

TEXTS = 64
"""So many texts are in a file, and in memory at once."""


class TraceStore(Sequence[Trace]):
    """The traces in a folder, one for each text: `store[3]["blocks.2.residual"]` is read when it is asked for."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.files = sorted(self.folder.glob("[0-9]*.safetensors"))
        if not self.files:
            raise CutawayError(f"There are no traces in {self.folder}: write some with lm.traces(texts, to=FOLDER).")
        self._heads = [_head(path) for path in self.files]
        self._starts = [head["first"] for head in self._heads]

    def __len__(self) -> int:
        return self._heads[-1]["first"] + self._heads[-1]["count"]

    @overload
    def __getitem__(self, index: int) -> Trace: ...
    @overload
    def __getitem__(self, index: slice) -> list[Trace]: ...

    def __getitem__(self, index: int | slice) -> Trace | list[Trace]:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"There is no text {index}: there are {len(self):,}.")
        index %= len(self)
        file = max(at for at, first in enumerate(self._starts) if first <= index)
        trace = Trace(self.keep)
        trace.single = True
        with safe_open(self.files[file], "pt") as opened:  # memory-mapped: pages come in as they are looked at
            for name in self.names:
                trace.kept[name] = opened.get_tensor(f"{index}/{name}")
        return trace

    def __iter__(self) -> Iterator[Trace]:
        return (self[index] for index in range(len(self)))

    @property
    def keep(self) -> list[str]:
        return list(self._heads[0]["keep"])

    @property
    def names(self) -> list[str]:
        """The intermediates that every trace has."""
        return list(self._heads[0]["names"])


def _head(path: Path) -> dict[str, Any]:
    try:
        with safe_open(path, "pt") as opened:
            found: dict[str, Any] = json.loads((opened.metadata() or {})["cutaway"])
            return found
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise CutawayError(
            f"{path} does not hold traces of texts: {error}. Delete it, or choose another folder."
        ) from None


@torch.inference_mode(False)
def store_traces(
    model: GPT,
    texts: Iterable[list[int]],
    keep: str | Iterable[str],
    folder: str | Path,
    progress: Callable[[int], object] | None = None,
) -> TraceStore:
    """Trace text after text into a folder, and go on with what is there from before.

    The same texts, names and weights must be given again; others are refused.
    """
    patterns = [keep] if isinstance(keep, str) else list(keep)
    Trace(patterns).check(places(model.config))
    names = [name for name in places(model.config) if matches(name, patterns)]
    folder, made_by, first = Path(folder), fingerprint(model), 0
    folder.mkdir(parents=True, exist_ok=True)
    remaining = iter(texts)
    for number in range(1_000_000):
        some = list(islice(remaining, TEXTS))
        if not some:
            break
        path = folder / f"{number:05}.safetensors"
        about = {
            "first": first, "count": len(some), "keep": patterns, "names": names, "model": made_by,
            "texts": hashlib.sha256(json.dumps(some).encode()).hexdigest()[:16],
        }  # fmt: skip
        if path.exists():
            check_same(path, _head(path), about)
        else:
            traces = trace_texts(model, some, patterns)
            tensors = {
                f"{first + at}/{name}": trace[name].contiguous() for at, trace in enumerate(traces) for name in names
            }
            with written_beside(path) as beside:
                save_file(tensors, beside, {"cutaway": json.dumps(about)})
        first += len(some)
        if progress:
            progress(first)
    if not first:
        raise CutawayError("There are no texts to trace.")
    left = [path for path in folder.glob("[0-9]*.safetensors") if int(path.stem) * TEXTS >= first]
    if left:
        raise CutawayError(f"{folder} holds traces of more texts than the {first:,} given. Choose another folder.")
    return TraceStore(folder)


def check_same(path: Path, there: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Refuse to go on with a folder of other texts, other names or another model."""
    for key, words in (("model", "by another model"), ("keep", "for other names"), ("texts", "of other texts")):
        if there.get(key) != wanted[key]:
            raise CutawayError(f"{path} was written {words}. Choose another folder, or delete this one.")
