"""Activation patching over a whole grid: where in the model lies what makes the clean text's answer.

A cell is the corrupted text run with one piece of the clean run put in its place; its value is the metric of that run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from cutaway.decoding.sampling import is_whole
from cutaway.errors import CutawayError, nearest
from cutaway.inspect.metric import Metric, as_metric, number
from cutaway.inspect.numbers import Table, Token, ViewResult, array, token
from cutaway.inspect.resume import NEEDS, PIECES, STREAM, Cell, Pair
from cutaway.inspect.runs import check
from cutaway.inspect.view import check_fits

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel, Prompt

Progress = Callable[[int, int], object]
"""Told how many cells are done, and of how many; what it raises ends the sweep."""

ROWS = 2048
"""So many tokens, of all its cells together, go through the model in one pass."""
SAME = 1e-5
"""Two values of a metric that differ by less than this share of their size differ by rounding."""


@dataclass(frozen=True, eq=False)
class Sweep(ViewResult):
    """The metric of the corrupted run with one piece of the clean run patched in, for every piece."""

    what: str
    """What is patched: the residual stream that enters a block, what its attention or its MLP adds, or one head."""
    metric: str
    values: Tensor
    """[layer, token], or [layer, head]"""
    clean: float
    """The metric of the clean run."""
    corrupted: float
    """The metric of the corrupted run: the value of a cell that changes nothing."""
    clean_tokens: tuple[Token, ...]
    corrupted_tokens: tuple[Token, ...]
    told = ("axes", "values=table", "recovered=recovered_table")

    @property
    def table(self) -> Table:
        return array(self.values)

    @property
    def recovered_table(self) -> Table:
        return array(self.recovered)

    @property
    def recovered(self) -> Tensor:
        """How much of the difference each cell brings back: 0 as corrupted, 1 as clean. [layer, token or head]"""
        return (self.values - self.corrupted) / (self.clean - self.corrupted)

    @property
    def axes(self) -> tuple[str, str]:
        return "layer", "head" if self.what == "head" else "token"

    def strongest(self, count: int = 10) -> list[tuple[int, int]]:
        """The cells that move the metric most, in either direction: layer, and token or head."""
        order = (self.values - self.corrupted).abs().flatten().argsort(descending=True, stable=True)
        return [divmod(at, self.values.shape[1]) for at in order[:count].tolist()]


@torch.inference_mode(False)  # plain tensors, whoever asks
@torch.no_grad()
def sweep(
    lm: LanguageModel,
    clean: Prompt,
    corrupted: Prompt,
    what: str = "residual",
    *,
    metric: Metric | Callable[[Tensor], Any],
    batch: int | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Run the corrupted text with one piece of the clean run patched in at a time, for every layer and piece.

    "residual" is the stream that enters a block (TransformerLens' resid_pre), "attention" and "mlp" what that part of
    it adds, each at one token; "head" is what one head found, at all tokens. A metric is LogitDifference, Probability
    or Own (see metric.py), or a function of the logits [token, vocabulary]. `batch` is how many cells go through the
    model side by side; it does not change the numbers.
    """
    if not isinstance(what, str) or what not in PIECES:
        close = nearest(str(what), PIECES)
        raise CutawayError(f"There is no sweep of {what!r:.80}.{close} Known: {', '.join(PIECES)}.")
    if batch is not None and not (is_whole(batch) and batch >= 1):
        raise CutawayError(f"The batch must be a whole number of 1 or more, not {batch!r:.80}.")
    lm.check_unpacked("A sweep is made")
    check_fits("sweep", lm, (*STREAM, *PIECES[what]), NEEDS)
    ids = lm.ids(clean), lm.ids(corrupted)
    texts = tuple(tuple(token(lm.tokenizer, one) for one in text) for text in ids)
    check_texts(lm, *texts)
    bound = as_metric(lm, metric, len(ids[0]))
    pair = Pair(lm, *ids, what, bound.position)
    measured = Measured(pair, bound)
    if pair.first >= pair.end:
        raise CutawayError(
            f"The metric looks at token {pair.end - 1}, and the two texts are the same up to token {pair.first - 1}: "
            "there is nothing to explain. Name a later position."
        )
    before, after = measured.plain()
    patches = pair.patches()
    cells, total = patches.cells(), lm.config.layers * patches.count
    values = torch.full((lm.config.layers, patches.count), after, dtype=torch.float32)
    done = total - len(cells)  # the others leave everything as it is
    if progress:
        progress(done, total)
    for some in in_batches(cells, batch, pair.end):
        hidden = pair.carry(some, patches)
        for cell, value in zip(some, measured.cells(some, hidden), strict=True):
            values[cell.layer, cell.index] = value
        done += len(some)
        if progress:
            progress(done, total)
    return Sweep(what, bound.describe(lm), values, before, after, *texts)


def in_batches(cells: list[Cell], batch: int | None, end: int) -> Iterator[list[Cell]]:
    """The cells, some at a time; those that begin at the same token stand together."""
    while cells:
        count = batch or max(1, ROWS // (end - cells[0].start))
        yield cells[:count]
        cells = cells[count:]


class Measured:
    """The metric of the two runs, and of patched ones."""

    def __init__(self, pair: Pair, metric: Metric):
        self.pair, self.metric, self.score = pair, metric, pair.lm.model.score
        both = (pair.clean["final_norm"], pair.corrupted["final_norm"])
        at = slice(None) if metric.position is None else metric.position
        self.clean, self.corrupted = (self.score(hidden[at]).float() for hidden in both)

    def plain(self) -> tuple[float, float]:
        """Of the clean and of the corrupted run; refused if they are the same but for rounding."""
        clean = number(self.metric.of(self.clean), " for the clean text")
        corrupted = number(self.metric.of(self.corrupted), " for the corrupted text")
        size = max(self.metric.size(self.clean, clean), self.metric.size(self.corrupted, corrupted))
        rounding = max(SAME, torch.finfo(self.pair.lm.model.token_embedding.weight.dtype).eps)
        if abs(clean - corrupted) <= rounding * size:
            raise CutawayError(
                f"The metric is {clean:.6g} for the clean text and {corrupted:.6g} for the corrupted one: there is no "
                "difference to explain. Choose another metric, or texts that it tells apart."
            )
        return clean, corrupted

    def cells(self, cells: Sequence[Cell], hidden: Tensor) -> list[float]:
        """Of each patched run, from what left the final norm [cell, token, width]."""
        kind = "head" if self.pair.what == "head" else "token"
        names = [f" with {self.pair.what} patched at layer {cell.layer}, {kind} {cell.index}" for cell in cells]
        if self.metric.position is not None:
            scores = self.score(hidden[:, -1]).float()  # [cell, vocabulary]
            return [number(self.metric.of(row), name) for row, name in zip(scores, names, strict=True)]
        same = self.corrupted[: len(self.corrupted) - hidden.shape[1]]  # the tokens before the patch
        whole = (torch.cat((same, self.score(rows).float())) for rows in hidden)
        return [number(self.metric.of(logits), name) for logits, name in zip(whole, names, strict=True)]


def check_texts(lm: LanguageModel, clean: Sequence[Token], corrupted: Sequence[Token]) -> None:
    """Refuse two texts that cannot be compared token by token, or that there is nothing to compare in."""
    for name, text in (("clean", clean), ("corrupted", corrupted)):
        if not text:
            raise CutawayError(f"The {name} text is empty. A sweep compares two texts with the same number of tokens.")
        check(lm, [one.id for one in text])
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
