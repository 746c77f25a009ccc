"""Patching over a whole grid: where in the model lies what makes the answer.

A cell is one run with one piece of it replaced; its value is the metric of that run. What takes the piece's place says
the manner (`how`): the clean run's piece in the corrupted run (patch), or in the clean run the corrupted one's
(resample), zero, or the mean over some texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from cutaway.decoding.sampling import is_whole
from cutaway.errors import CutawayError, nearest
from cutaway.inspect.estimate import estimate
from cutaway.inspect.metric import Metric, as_metric, number
from cutaway.inspect.numbers import Table, Token, ViewResult, array, token
from cutaway.inspect.resume import NEEDS, PIECES, STREAM, UNITS, Cell, Means, Pair, Source, Zeros, read_pair
from cutaway.inspect.runs import check
from cutaway.inspect.view import check_fits
from cutaway.parts.trace import within

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel, Prompt

Progress = Callable[[int, int], object]
"""Told how many cells are done, and of how many; what it raises ends the sweep."""

HOW = ("patch", "resample", "zero", "mean")
ROWS = 2048
"""So many tokens, of all its cells together, go through the model in one pass."""
SAME = 1e-5
"""Two values of a metric that differ by less than this share of their size differ by rounding."""


@dataclass(frozen=True, eq=False)
class Sweep(ViewResult):
    """The metric of a run with one piece of it replaced, for every piece."""

    what: str
    """What is replaced: the residual stream that enters a block, what its attention or its MLP adds, the output or the
    pattern of one head, or one neuron."""
    how: str
    """By what: patch, resample, zero or mean."""
    exact: bool
    """Whether every cell was run; else they are estimates from one backward pass (attribution patching)."""
    metric: str
    layers: tuple[int, ...]
    units: tuple[int, ...]
    """The tokens, heads or neurons that the columns are."""
    values: Tensor
    """[layer, token], or [layer, head], or [layer, neuron]"""
    clean: float
    """The metric of the clean run."""
    corrupted: float | None
    """The metric of the corrupted run, where there is one."""
    clean_tokens: tuple[Token, ...]
    corrupted_tokens: tuple[Token, ...]
    told = ("axes", "base", "values=table", "recovered=recovered_table")

    @property
    def table(self) -> Table:
        return array(self.values)

    @property
    def recovered_table(self) -> Table | None:
        return None if self.corrupted is None else array(self.recovered)

    @property
    def base(self) -> float:
        """The metric of the run that pieces are put into: the value of a cell that changes nothing."""
        return self.corrupted if self.how == "patch" and self.corrupted is not None else self.clean

    @property
    def effect(self) -> Tensor:
        """By how much each cell moves the metric. [layer, token or unit]"""
        return self.values - self.base

    @property
    def recovered(self) -> Tensor:
        """How much of the difference each cell makes up: 0 as the base run, 1 as the other. [layer, token or unit]"""
        if self.corrupted is None:
            raise CutawayError(
                f"With how={self.how!r} there is one text and no difference to recover: ask for `effect`."
            )
        return self.effect / (self.clean - self.corrupted) * (1 if self.how == "patch" else -1)

    @property
    def axes(self) -> tuple[str, str]:
        return "layer", UNITS.get(self.what, "token")

    def strongest(self, count: int = 10) -> list[tuple[int, int]]:
        """The cells that move the metric most, in either direction: layer, and token, head or neuron."""
        order = self.effect.abs().flatten().argsort(descending=True, stable=True)
        places = (divmod(at, self.values.shape[1]) for at in order[:count].tolist())
        return [(self.layers[row], self.units[column]) for row, column in places]

    def agreement(self, other: Sweep) -> float:
        """The correlation (Pearson's) of two sweeps over the same cells: of an estimate with what it estimates."""
        if (self.what, self.how, self.layers, self.units) != (other.what, other.how, other.layers, other.units):
            raise CutawayError("Two sweeps can be compared if they are of the same pieces, layers and columns.")
        both = torch.stack((self.effect.flatten(), other.effect.flatten())).double()
        if min(both.std(1).tolist()) == 0:
            raise CutawayError("One of the two sweeps has the same value in every cell: there is no correlation.")
        return float(torch.corrcoef(both)[0, 1])


@torch.inference_mode(False)  # plain tensors, whoever asks
def sweep(
    lm: LanguageModel,
    clean: Prompt,
    corrupted: Prompt | None = None,
    what: str = "residual",
    *,
    metric: Metric | Callable[[Tensor], Any],
    how: str = "patch",
    over: Sequence[Prompt] = (),
    layers: Sequence[int] | None = None,
    units: Sequence[int] | None = None,
    exact: bool = True,
    batch: int | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Replace one piece of a run at a time, for every layer and piece, and measure each time.

    "residual" is the stream that enters a block (TransformerLens' resid_pre), "attention" and "mlp" what that part of
    it adds, each at one token; "head" is what one head found, "attention pattern" where it attends, "neuron" one
    activation, each at all tokens. A metric is one of metric.py, or a function of the logits [token, vocabulary].
    `layers` and `units` (tokens, heads or neurons) choose some cells. Without `exact`, all of them are estimated from
    one backward pass. `batch` is how many cells go through the model side by side; it does not change the numbers.
    """
    check_asked(lm, what, how, corrupted, over, batch)
    ids = [lm.ids(clean)] + ([] if corrupted is None else [lm.ids(corrupted)])
    texts = [tuple(token(lm.tokenizer, one) for one in text) for text in ids]
    check_texts(lm, texts)
    bound = as_metric(lm, metric, len(ids[0]))
    rows = chosen("layer", layers, lm.config.layers)
    columns = chosen(UNITS.get(what, "token"), units, count_of(lm, what, len(ids[0])))
    with torch.no_grad():
        runs = read_pair(lm, ids, what)
        pair = Pair(lm, *base_and_source(lm, runs, what, how, over), what, first_difference(ids), bound.position)
        if pair.first >= pair.end:
            raise CutawayError(
                f"The metric looks at token {pair.end - 1}, and the two texts are the same up to token "
                f"{pair.first - 1}: there is nothing to explain. Name a later position."
            )
        measured = Measured(pair, runs, bound)
        numbers = measured.plain()
        start = numbers[-1] if how == "patch" else numbers[0]
        if exact:
            values = every_cell(measured, start, rows, columns, batch, progress)
    if not exact:
        base = ids[1] if how == "patch" else ids[0]
        values = start + estimate(pair, measured.metric, base)[rows][:, columns]
        if progress:
            progress(values.numel(), values.numel())
    if corrupted is None and bool((values == start).all()):
        raise CutawayError(
            f"No cell moves the metric, which is {start:.6g} in all of them: it does not depend on what is replaced "
            "here, or on anything. Choose another metric, or other pieces."
        )
    other = numbers[1] if len(numbers) > 1 else None
    tokens = (texts[0], texts[1] if corrupted is not None else ())
    told = bound.describe(lm)
    return Sweep(what, how, exact, told, tuple(rows), tuple(columns), values, numbers[0], other, *tokens)


def every_cell(
    measured: Measured, base: float, rows: list[int], columns: list[int], batch: int | None, progress: Progress | None
) -> Tensor:
    """The metric of each cell, those that change nothing without a run."""
    pair = measured.pair
    patches = pair.patches()
    row = {layer: at for at, layer in enumerate(rows)}
    column = {unit: at for at, unit in enumerate(columns)}
    cells = [cell for cell in patches.cells() if cell.layer in row and cell.index in column]
    total = len(rows) * len(columns)
    values = torch.full((len(rows), len(columns)), base, dtype=torch.float32)
    done = total - len(cells)  # the others leave everything as it is
    if progress:
        progress(done, total)
    for some in in_batches(cells, batch, pair.end):
        hidden = pair.carry(some, patches)
        for cell, value in zip(some, measured.cells(some, hidden), strict=True):
            values[row[cell.layer], column[cell.index]] = value
        done += len(some)
        if progress:
            progress(done, total)
    return values


def in_batches(cells: list[Cell], batch: int | None, end: int) -> Iterator[list[Cell]]:
    """The cells, so many at a time, or as many as have `ROWS` tokens to compute together."""
    some, rows = list[Cell](), 0
    for cell in cells:
        if some and (len(some) == batch if batch else rows + end - cell.start > ROWS):
            yield some
            some, rows = [], 0
        some, rows = [*some, cell], rows + end - cell.start
    if some:
        yield some


class Measured:
    """The metric of the runs without a patch, and of patched ones."""

    def __init__(self, pair: Pair, runs: Sequence[Any], metric: Metric):
        self.pair, self.score = pair, pair.lm.model.score
        at = slice(None) if metric.position is None else metric.position
        self.runs = [self.score(run["final_norm"][at]).float() for run in runs]
        self.base = self.runs[-1] if pair.base is runs[-1] else self.runs[0]
        self.metric = metric.measured_from(self.runs[0])

    def plain(self) -> list[float]:
        """Of the clean and of the corrupted run; refused if they are the same but for rounding."""
        names = (" for the clean text", " for the corrupted text")
        found = [number(self.metric.of(run), name) for run, name in zip(self.runs, names, strict=False)]
        if len(found) == 1:
            return found
        clean, corrupted = found
        size = max(self.metric.size(run, value) for run, value in zip(self.runs, found, strict=True))
        rounding = max(SAME, torch.finfo(self.pair.lm.model.token_embedding.weight.dtype).eps)
        if abs(clean - corrupted) <= rounding * size:
            raise CutawayError(
                f"The metric is {clean:.6g} for the clean text and {corrupted:.6g} for the corrupted one: there is no "
                "difference to explain. Choose another metric, or texts that it tells apart."
            )
        return found

    def cells(self, cells: Sequence[Cell], hidden: Sequence[Tensor]) -> list[float]:
        """Of each patched run, from what left the final norm, [token, width] each."""
        kind = UNITS.get(self.pair.what, "token")
        names = [f" with {self.pair.what} patched at layer {cell.layer}, {kind} {cell.index}" for cell in cells]
        if self.metric.position is not None:
            scores = self.score(torch.stack([rows[-1] for rows in hidden])).float()  # [cell, vocabulary]
            return [number(self.metric.of(row), name) for row, name in zip(scores, names, strict=True)]
        same = (self.base[: len(self.base) - len(rows)] for rows in hidden)  # the tokens before the patch
        whole = (torch.cat((one, self.score(rows).float())) for one, rows in zip(same, hidden, strict=True))
        return [number(self.metric.of(logits), name) for logits, name in zip(whole, names, strict=True)]


def base_and_source(
    lm: LanguageModel, runs: Sequence[Any], what: str, how: str, over: Sequence[Prompt]
) -> tuple[Any, Source]:
    """The run that pieces are put into, and what they are taken from."""
    if how == "patch":
        return runs[1], runs[0]
    if how == "resample":
        return runs[0], runs[1]
    if how == "zero":
        return runs[0], Zeros(runs[0])
    keep = PIECES[what] or ("residual.0", "blocks.*.residual")
    return runs[0], Means(runs[0], lm.traces(list(over), keep=keep))


def first_difference(ids: Sequence[list[int]]) -> int:
    """The first token that differs: before it the two runs are one."""
    return next((at for at, (one, other) in enumerate(zip(ids[0], ids[-1], strict=True)) if one != other), 0)


def count_of(lm: LanguageModel, what: str, tokens: int) -> int:
    return {"head": lm.config.heads, "neuron": lm.config.mlp_width, "token": tokens}[UNITS.get(what, "token")]


def chosen(kind: str, some: Sequence[int] | None, count: int) -> list[int]:
    """These layers or columns, checked, each once; all, if none are named."""
    if some is None:
        return list(range(count))
    found = list(dict.fromkeys(within(kind, one, count) for one in some))
    if not found:
        raise CutawayError(f"No {kind} is named. Name one or more, or leave them out for all.")
    return found


def check_asked(
    lm: LanguageModel, what: str, how: str, corrupted: Prompt | None, over: Sequence[Prompt], batch: int | None
) -> None:
    """Refuse what cannot be swept, and what does not go together."""
    if not isinstance(what, str) or what not in PIECES:
        close = nearest(str(what), PIECES)
        raise CutawayError(f"There is no sweep of {what!r:.80}.{close} Known: {', '.join(PIECES)}.")
    if not isinstance(how, str) or how not in HOW:
        raise CutawayError(f"Pieces are not replaced by {how!r:.80}.{nearest(str(how), HOW)} Known: {', '.join(HOW)}.")
    if (corrupted is None) == (how in ("patch", "resample")):
        raise CutawayError(
            f"To {how}, a sweep needs a corrupted text beside the clean one; zero and mean need only one text."
            if corrupted is None
            else f"how={how!r} replaces pieces of one text: leave the corrupted text out."
        )
    if bool(over) != (how == "mean"):
        raise CutawayError(
            'how="mean" needs the texts that the mean is taken over: over=[...].'
            if how == "mean"
            else f'`over` is for how="mean", and this is {how!r}: leave it out.'
        )
    if how == "mean" and what == "attention pattern":
        raise CutawayError("An attention pattern has no mean over texts of other lengths: choose zero or resample.")
    if batch is not None and not (is_whole(batch) and batch >= 1):
        raise CutawayError(f"The batch must be a whole number of 1 or more, not {batch!r:.80}.")
    lm.check_unpacked("A sweep is made")
    check_fits("sweep", lm, (*STREAM, *PIECES[what]), NEEDS)


def check_texts(lm: LanguageModel, texts: Sequence[Sequence[Token]]) -> None:
    """Refuse two texts that cannot be compared token by token, or that there is nothing to compare in."""
    for name, text in zip(("clean", "corrupted"), texts, strict=False):
        if not text:
            raise CutawayError(f"The {name} text is empty. A sweep compares two texts with the same number of tokens.")
        check(lm, [one.id for one in text])
    if len(texts) == 1:
        return
    clean, corrupted = texts
    if len(clean) != len(corrupted):
        raise CutawayError(
            f"The two texts must have the same number of tokens: the clean one has {len(clean):,} ({pieces(clean)}), "
            f"the corrupted one {len(corrupted):,} ({pieces(corrupted)}). Replace words by others of as many tokens."
        )
    if list(clean) == list(corrupted):
        raise CutawayError("The clean and the corrupted text are the same: there is no difference to explain.")


def pieces(text: Sequence[Token], most: int = 24) -> str:
    """The tokens of a text, told apart; of a long one the first."""
    shown = "│".join((one.text or one.bytes.hex(" ")).replace(" ", "·") for one in text[:most])
    return shown + ("│…" if len(text) > most else "")
