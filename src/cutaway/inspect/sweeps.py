"""A sweep over a data set of pairs: the mean effect of each cell, and how sure it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from cutaway.errors import CutawayError
from cutaway.inspect.metric import Metric
from cutaway.inspect.numbers import Table, ViewResult, array
from cutaway.inspect.resume import UNITS
from cutaway.inspect.roles import CONFIDENT
from cutaway.inspect.sweep import Progress, Sweep, sweep

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel, Prompt


@dataclass(frozen=True, eq=False)
class Sweeps(ViewResult):
    """The same sweep over several pairs of texts."""

    what: str
    how: str
    exact: bool
    layers: tuple[int, ...]
    units: tuple[int, ...]
    each: Tensor
    """By how much each cell moved the metric. [pair, layer, token or unit]"""
    gaps: Tensor
    """Of each pair, how far the metric is from the base run to the other. [pair]"""
    hidden = ("each", "gaps")
    told = ("pairs", "axes", "mean=mean_table", "margin=margin_table", "recovered=recovered_table")

    @property
    def pairs(self) -> int:
        return len(self.each)

    @property
    def axes(self) -> tuple[str, str]:
        return "layer", UNITS.get(self.what, "token")

    @property
    def mean(self) -> Tensor:
        """The mean effect. [layer, token or unit]"""
        return self.each.mean(0)

    @property
    def margin(self) -> Tensor:
        """The mean is within this of the true one with 95 % confidence; the pairs are the sample."""
        return CONFIDENT * self.each.std(0) / len(self.each) ** 0.5

    @property
    def recovered(self) -> Tensor:
        """The mean effect as a share of the mean difference between the two texts. [layer, token or unit]"""
        return self.mean / self.gaps.mean()

    @property
    def mean_table(self) -> Table:
        return array(self.mean)

    @property
    def margin_table(self) -> Table:
        return array(self.margin)

    @property
    def recovered_table(self) -> Table:
        return array(self.recovered)

    def strongest(self, count: int = 10) -> list[tuple[int, int]]:
        """The cells whose mean effect is largest, in either direction: layer, and token, head or neuron."""
        order = self.mean.abs().flatten().argsort(descending=True, stable=True)
        places = (divmod(at, self.mean.shape[1]) for at in order[:count].tolist())
        return [(self.layers[row], self.units[column]) for row, column in places]

    def certain(self) -> list[tuple[int, int]]:
        """The cells whose interval does not hold 0, the strongest first."""
        sure = self.mean.abs() > self.margin
        row = {layer: at for at, layer in enumerate(self.layers)}
        column = {unit: at for at, unit in enumerate(self.units)}
        return [one for one in self.strongest(self.mean.numel()) if bool(sure[row[one[0]], column[one[1]]])]


def sweeps(
    lm: LanguageModel,
    pairs: Iterable[tuple[Prompt, Prompt]],
    what: str = "head",
    *,
    metric: Metric | Callable[[Tensor], Any] | Sequence[Metric | Callable[[Tensor], Any]],
    how: str = "patch",
    progress: Progress | None = None,
    **given: Any,
) -> Sweeps:
    """The same sweep over pairs of a clean and a corrupted text; the metric is one for all, or a list of one for each.

    The two texts of a pair are of one length. So are all pairs, for pieces at a token, unless `units` names some,
    which may count from the end (-1); heads and neurons do not care. `progress` is told of pairs; what it raises ends
    the sweep. What cannot be swept in one of the pairs is refused, with its number.
    """
    texts = list(pairs)
    if how not in ("patch", "resample"):
        raise CutawayError(f"A data set of pairs is swept by patch or resample, not by {how!r:.80}.")
    if len(texts) < 2:
        raise CutawayError(f"There must be 2 pairs or more, for a mean and its interval, not {len(texts)}.")
    metrics: list[Any] = list(metric) if isinstance(metric, list | tuple) else [metric] * len(texts)
    if len(metrics) != len(texts):
        raise CutawayError(
            f"There are {len(texts)} pairs and {len(metrics)} metrics: give one for each, or one for all."
        )
    found = list[Sweep]()
    for at, (pair, one) in enumerate(zip(texts, metrics, strict=True)):
        try:
            clean, corrupted = pair
        except (TypeError, ValueError):
            raise CutawayError(f"Pair {at} is not a clean and a corrupted text: {pair!r:.80}.") from None
        try:
            found.append(sweep(lm, clean, corrupted, what, metric=one, how=how, **given))
        except CutawayError as error:
            raise CutawayError(f"Pair {at}: {error}") from None
        if found[-1].values.shape != found[0].values.shape:
            raise CutawayError(
                f"Pair {at} has {len(found[-1].units)} tokens and the first pair {len(found[0].units)}: {what} is "
                "swept token by token, over texts of one length. Sweep heads or neurons instead, or name `units`."
            )
        if progress:
            progress(at + 1, len(texts))
    first = found[0]
    gaps = torch.tensor([(one.clean - (one.corrupted or 0.0)) * (1 if how == "patch" else -1) for one in found])
    each = torch.stack([one.effect for one in found])
    same = all(one.units == first.units for one in found)  # else they are counted from the end, of texts unequally long
    return Sweeps(what, how, first.exact, first.layers, first.units if same else tuple(given["units"]), each, gaps)
