"""What excites it: where in a corpus each neuron, head or direction is strongest, and how strong it usually is.

The record of a corpus is one file. While it is made it holds what is needed to go on; at the end only what is looked
up: for each unit its strongest places, its quantiles, and the texts around those places. What the model does there is
computed again when it is looked at.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from torch import Tensor

from cutaway.atomic import written_beside
from cutaway.checkpoint.locate import DATA
from cutaway.errors import CutawayError
from cutaway.home import cutaway_home
from cutaway.inspect.numbers import Array, Line, Token, ViewResult, token
from cutaway.inspect.runs import Run
from cutaway.inspect.steering import Direction
from cutaway.parts.trace import within
from cutaway.runtime.fingerprint import fingerprint

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel, Prompt

FORMAT = "cutaway contexts"
PLACES = {"neuron": "blocks.*.mlp.activation", "head": "blocks.*.attention.heads"}
QUANTILES = (0.01, 0.1, 0.5, 0.9, 0.99, 0.999)
WINDOW = 96
"""A text is looked at in pieces of so many tokens."""
AT_ONCE = 16
"""So many pieces go through the model side by side; the record is written after every `SAVED` of these."""
SAVED = 32
RATIO = 1.05
"""Quantiles are read from a histogram whose bins are each so many times as wide as the one before: to about 2.5 %."""
SMALLEST, BINS = 1e-4, 330


@dataclass(frozen=True)
class Context(ViewResult):
    """A place in the corpus at which a unit is strong."""

    tokens: tuple[Token, ...]
    at: int
    """The token at which it is strongest."""
    value: float
    activations: Line
    """[token]"""


@dataclass(frozen=True)
class Excited(ViewResult):
    """Where in a corpus one neuron, head or direction is strongest."""

    what: str
    layer: int
    unit: int
    corpus: str | None
    """What the corpus is called; None where none has been recorded for this model."""
    tokens: int
    """How many tokens were looked at."""
    quantiles: tuple[tuple[float, float], ...]
    """Share of the tokens, and the value that so many are not above (to about 2.5 %)."""
    contexts: tuple[Context, ...]
    """The strongest first, each from another piece of text."""


@dataclass
class Record:
    """The strongest places of every unit in what has been read, and how often each strength occurred."""

    about: dict[str, Any]
    tokens: Array
    """All tokens read, one piece after another."""
    starts: Array
    """Where each piece begins, and at last where all end. [piece + 1]"""
    values: Array
    """[layer, unit, place]; the strongest first"""
    places: Array
    """Which of the tokens. [layer, unit, place]; -1 where there is none"""
    counts: Array | None
    """How many tokens fell into each bin. [layer, unit, bin]; None in a finished record"""
    quantiles: Array | None
    """[layer, unit, quantile]"""

    @property
    def finished(self) -> bool:
        return self.counts is None

    def save(self, path: Path) -> None:
        arrays = {name: getattr(self, name) for name in ("tokens", "starts", "values", "places", "counts", "quantiles")}
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_beside(path) as beside:
            told = {"format": FORMAT, "about": json.dumps(self.about)}
            save_file({name: one for name, one in arrays.items() if one is not None}, beside, told)

    @staticmethod
    def load(path: str | Path) -> Record:
        try:
            with safe_open(path, "np") as opened:
                told = opened.metadata() or {}
                if told.get("format") != FORMAT:
                    raise CutawayError(f"{path} is no record of what excites a model.")
                found = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        except FileNotFoundError:
            raise CutawayError(f"There is no file {path}.") from None
        except SafetensorError as error:
            raise CutawayError(f"{path} cannot be read: {error}") from None
        return Record(json.loads(told["about"]), **{"counts": None, "quantiles": None, **found})


@torch.inference_mode(False)
@torch.no_grad()
def record(
    lm: LanguageModel,
    texts: Iterable[Prompt],
    path: str | Path,
    what: str | Direction = "neuron",
    *,
    corpus: str = "",
    top: int = 5,
    tokens: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> Record:
    """Read texts (up to so many tokens of them), and write down where every neuron or head is strongest.

    A neuron's strength is its activation, a head's the length of what it found, a direction's the dot product with it.
    `progress` is told how many tokens were read; what it raises ends the recording, and the same call goes on with it.
    """
    path, name = Path(path), what if isinstance(what, str) else "direction"
    if isinstance(what, str) and what not in PLACES:
        raise CutawayError(
            f"What excites a {what!r:.40} cannot be recorded: choose {' or '.join(PLACES)}, or a direction."
        )
    if top < 1:
        raise CutawayError(f"The number of places to keep must be 1 or more, not {top}.")
    about = {
        "model": fingerprint(lm.model), "name": lm.name, "what": name, "corpus": corpus, "top": top, "limit": tokens,
        "place": what.name if isinstance(what, Direction) else PLACES[name], "pieces": 0, "read": 0, "window": WINDOW,
    }  # fmt: skip
    found = started(path, about, lm, what)
    if found.finished:
        return found
    limit = tokens if tokens is not None else 1 << 62
    pieces = islice(pieces_of(lm, texts), found.about["pieces"], None)
    rounds = 0
    while found.about["read"] < limit and (some := list(islice(pieces, AT_ONCE))):
        read_pieces(lm, what, found, some)
        found.about["pieces"] += len(some)
        rounds += 1
        if rounds % SAVED == 0:
            found.save(path)
        if progress:
            try:
                progress(int(found.about["read"]))
            except BaseException:
                found.save(path)
                raise
    if not found.about["read"]:
        raise CutawayError("There is no text to record.")
    finish(found)
    found.save(path)
    return found


def pieces_of(lm: LanguageModel, texts: Iterable[Prompt]) -> Iterator[list[int]]:
    """The texts in pieces that are looked at one by one."""
    size = min(WINDOW, lm.config.context)
    for text in texts:
        ids = lm.ids(text)
        yield from (ids[first : first + size] for first in range(0, len(ids), size))


def started(path: Path, about: dict[str, Any], lm: LanguageModel, what: str | Direction) -> Record:
    """An empty record, or the one that is to be gone on with."""
    if path.exists():
        found = Record.load(path)
        for key in ("model", "what", "place", "corpus", "top", "limit", "window"):
            if found.about.get(key) != about[key]:
                raise CutawayError(
                    f"{path} was recorded with another {key} ({found.about.get(key)!s:.60}, not {about[key]!s:.60}). "
                    "Choose another file, or delete this one."
                )
        return found
    layers = 1 if isinstance(what, Direction) else lm.config.layers
    units = {"neuron": lm.config.mlp_width, "head": lm.config.heads}.get(str(about["what"]), 1)
    shape = (layers, units, int(about["top"]))
    return Record(
        about, np.zeros(0, np.uint32), np.zeros(1, np.int64), np.full(shape, -np.inf, np.float32),
        np.full(shape, -1, np.int64), np.zeros((layers, units, BINS * 2), np.int32), None,
    )  # fmt: skip


def read_pieces(lm: LanguageModel, what: str | Direction, found: Record, pieces: list[list[int]]) -> None:
    """Some pieces more: the strongest places of each unit, and the histogram."""
    assert found.counts is not None
    traces = lm.traces(pieces, keep=found.about["place"])
    first = np.cumsum([found.starts[-1], *map(len, pieces)])  # where each piece begins among all tokens
    for layer in range(len(found.values)):
        rows = [strength(list(trace.kept.values())[layer], what) for trace in traces]  # each [token, unit]
        best = [one.max(0) for one in rows]
        values = np.concatenate((found.values[layer], np.stack([one.values.numpy() for one in best], 1)), 1)
        where = np.stack([start + one.indices.numpy() for start, one in zip(first, best, strict=False)], 1)
        places = np.concatenate((found.places[layer], where), 1)
        order = np.argsort(-values, axis=1, kind="stable")[:, : found.values.shape[2]]
        found.values[layer] = np.take_along_axis(values, order, 1)
        found.places[layer] = np.take_along_axis(places, order, 1)
        whole = torch.cat(rows)  # [token, unit]
        bins = bin_of(whole) + torch.arange(whole.shape[1]) * (2 * BINS)
        found.counts[layer] += (
            torch.bincount(bins.flatten(), minlength=whole.shape[1] * 2 * BINS).view(whole.shape[1], -1).int().numpy()
        )
    found.tokens = np.concatenate((found.tokens, np.concatenate([np.array(one, np.uint32) for one in pieces])))
    found.starts = np.concatenate((found.starts, first[1:]))
    found.about["read"] = int(found.starts[-1])


def strength(value: Tensor, what: str | Direction) -> Tensor:
    """How strong each unit is at each token. [token, unit]"""
    if isinstance(what, Direction):
        return (value.float() @ what.vector.float())[:, None]
    return value.float() if what == "neuron" else value.float().norm(dim=-1).T


def bin_of(values: Tensor) -> Tensor:
    """The bin of each value: those below zero first, the largest in size at the very beginning."""
    size = torch.log(values.abs().clamp(min=SMALLEST) / SMALLEST) / float(np.log(RATIO))
    size = size.long().clamp(max=BINS - 1)
    return torch.where(values < 0, BINS - 1 - size, BINS + size)


def finish(found: Record) -> None:
    """Quantiles in place of the histogram, and only the pieces that a place is in."""
    assert found.counts is not None
    size = SMALLEST * RATIO ** (np.arange(BINS) + 0.5)
    middle = np.concatenate((-size[::-1], size))
    below = np.cumsum(found.counts, axis=2)
    wanted = np.array(QUANTILES) * below[..., -1:]  # [layer, unit, quantile]
    reached = np.stack([(below < one[..., None]).sum(-1) for one in np.moveaxis(wanted, -1, 0)], -1)
    found.quantiles = middle[np.minimum(reached, len(middle) - 1)].astype(np.float16)
    piece = np.searchsorted(found.starts, found.places, "right") - 1
    used = np.unique(piece[found.places >= 0])
    lengths = (found.starts[1:] - found.starts[:-1])[used]
    moved = np.concatenate(([0], np.cumsum(lengths)))
    shift = np.zeros(len(found.starts), np.int64)
    shift[used] = moved[:-1] - found.starts[used]
    found.places = np.where(found.places >= 0, found.places + shift[piece], -1).astype(np.int32)
    kept = [found.tokens[found.starts[one] : found.starts[one + 1]] for one in used]
    tokens = np.concatenate(kept)
    found.tokens = tokens.astype(np.uint16) if tokens.max() < 1 << 16 else tokens
    found.starts, found.counts = moved.astype(np.int32), None


def find_record(lm: LanguageModel, what: str = "neuron") -> Record | None:
    """What was recorded for these weights: on this machine, or what ships. Of a model that ships, a record that was
    made with other weights is refused: it would show what excites another one.
    """
    made_by = fingerprint(lm.model)
    own, other = recorded_at(lm, what), None
    for path in (own, *sorted((DATA / "contexts").glob("*.safetensors"))):
        if path.exists():
            found = Record.load(path)
            if found.about["what"] != what or not found.finished:
                continue
            if found.about["model"] == made_by:
                return found
            other = path if found.about["name"] == lm.name else other
    if other is not None:
        raise CutawayError(
            f"{other} was recorded with other weights than those of {lm.name}. Record it again: make contexts.",
            "other_weights",
            model=lm.name,
        )
    return None


def recorded_at(lm: LanguageModel, what: str = "neuron") -> Path:
    """Where the record of a model is on this machine, unless it is put elsewhere."""
    return cutaway_home() / "contexts" / f"{fingerprint(lm.model)}-{what}.safetensors"


@torch.no_grad()
def contexts(run: Run, layer: int, unit: int, what: str = "neuron", file: str | Path | None = None) -> Excited:
    """Where one unit was strongest in the corpus that was recorded, with what it does there."""
    lm = run.lm
    if what not in PLACES:
        raise CutawayError(f"What excites a {what!r:.40} is not recorded: choose {' or '.join(PLACES)}.")
    layer = within("layer", layer, lm.config.layers)
    unit = within(what, unit, lm.config.mlp_width if what == "neuron" else lm.config.heads)
    found = Record.load(file) if file else find_record(lm, what)
    if found is None:
        return Excited(what, layer, unit, None, 0, (), ())
    if found.about["model"] != fingerprint(lm.model) or found.about["what"] != what or not found.finished:
        raise CutawayError(f"{file} is not a finished record of the {what}s of {lm.name}.")
    assert found.quantiles is not None
    name = PLACES[what].replace("*", str(layer))
    shown = []
    for place, value in zip(found.places[layer, unit].tolist(), found.values[layer, unit].tolist(), strict=True):
        if place < 0:
            continue
        piece = int(np.searchsorted(found.starts, place, "right")) - 1
        first, end = int(found.starts[piece]), int(found.starts[piece + 1])
        ids = found.tokens[first:end].astype(int).tolist()
        strong = strength(lm.trace(ids, keep=name)[name], what)[:, unit]
        words = tuple(token(lm.tokenizer, one) for one in ids)
        shown.append(Context(words, place - first, float(value), strong.cpu().numpy()))
    usual = tuple(zip(QUANTILES, found.quantiles[layer, unit].astype(float).tolist(), strict=True))
    return Excited(what, layer, unit, found.about["corpus"] or "", int(found.about["read"]), usual, tuple(shown))


def texts_of(path: str | Path) -> Iterator[str]:
    """The texts of a file: the `text` of JSON lines, or what stands between end tokens or blank lines."""
    path = Path(path)
    try:
        with path.open(encoding="utf-8") as file:
            if path.suffix == ".jsonl":
                yield from (str(json.loads(line)["text"]) for line in file if line.strip())
                return
            lines: list[str] = []
            for line in file:
                if line.strip() in ("", "<|endoftext|>"):
                    if lines:
                        yield "".join(lines).strip()
                    lines = []
                else:
                    lines.append(line)
            if lines:
                yield "".join(lines).strip()
    except OSError as error:
        raise CutawayError(f"{path} cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, ValueError, KeyError, TypeError):
        raise CutawayError(f"{path} is neither a text in UTF-8 nor JSON lines with a `text`.") from None
