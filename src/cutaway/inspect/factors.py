"""What fires together: neurons in groups (k-means), and activations as a few factors, non-negative or principal."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutaway.errors import CutawayError
from cutaway.inspect.neurons import activations
from cutaway.inspect.numbers import Array, Line, ViewResult
from cutaway.inspect.runs import Run

FEWEST, MOST = 2, 20
EXAMPLES = 8
METHODS = ("nmf", "pca")


@dataclass(frozen=True)
class Group(ViewResult):
    """Neurons that do alike on this text."""

    mean: Line
    """Their mean activation. [token]"""
    by_layer: tuple[int, ...]
    """How many of them each layer has."""
    examples: tuple[tuple[int, int], ...]
    """The strongest of them: layer and number."""
    told = ("size",)

    @property
    def size(self) -> int:
        return sum(self.by_layer)


@dataclass(frozen=True)
class Groups(ViewResult):
    """All the neurons of some layers, in groups; the most active group first."""

    layers: tuple[int, ...]
    groups: tuple[Group, ...]


def groups(run: Run, count: int = 8, layers: Sequence[int] | None = None, seed: int = 0) -> Groups:
    """Sort the neurons of these layers (of all) into groups by what they do on this text."""
    chosen, values = run.layers(layers), activations(run, run.layers(layers))
    if not 1 <= count <= len(values):
        raise CutawayError(f"The number of groups must be between 1 and {len(values):,}, not {count}.")
    model = _sklearn("cluster").KMeans(n_clusters=count, n_init=1, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer different neurons than groups: some are then empty
        member = model.fit_predict(values)
    found = [_group(values, np.flatnonzero(member == number), run, chosen) for number in range(count)]
    found = sorted((group for group in found if group.size), key=lambda group: -float(np.abs(group.mean).max()))
    return Groups(tuple(chosen), tuple(found))


def _group(values: Array, rows: np.ndarray[Any, Any], run: Run, layers: list[int]) -> Group:
    width = run.lm.config.mlp_width
    strongest = rows[np.argsort(-values[rows].max(axis=1), kind="stable")][:EXAMPLES] if len(rows) else rows
    return Group(
        values[rows].mean(axis=0) if len(rows) else np.zeros(len(run), np.float32),
        tuple(np.bincount(rows // width, minlength=len(layers)).tolist()),
        tuple((layers[row // width], int(row % width)) for row in strongest.tolist()),
    )


@dataclass(frozen=True)
class Factor(ViewResult):
    """A pattern of firing: how strong it is at each token, and the neurons that take part."""

    tokens: Line
    """0 or more; 1 at the token that excites it most. [token]"""
    share: float
    """Its share of all that the factors make together."""
    by_layer: Line
    """Where it lives: the share of each layer. [layer]"""
    neurons: tuple[tuple[int, int, float], ...]
    """The strongest neurons: layer, number, and activation where the factor is strongest."""


@dataclass(frozen=True)
class Factors(ViewResult):
    """The activations of some layers as a sum of a few factors, the strongest first."""

    method: str
    layers: tuple[int, ...]
    unexplained: float
    """The share of the activations' sum of squares that the factors leave."""
    factors: tuple[Factor, ...]
    told = ("count",)

    @property
    def count(self) -> int:
        return len(self.factors)


def factors(
    run: Run, count: int = 8, layers: Sequence[int] | None = None, seed: int = 0, method: str = "nmf"
) -> Factors:
    """Take the activations of these layers (of all) apart into so many factors.

    "nmf": the positive ones, into non-negative factors. "pca": all of them, less each neuron's mean over the text, into
    principal components, whose tokens and neurons have a sign.
    """
    if method not in METHODS:
        raise CutawayError(f"There is no method {method!r:.80}. Known: {', '.join(METHODS)}.")
    most = min(MOST, len(run))
    if not FEWEST <= count <= most:
        raise CutawayError(
            f"The number of factors must be between {FEWEST} and {MOST} and no more than the tokens of the text "
            f"({len(run)}), not {count}."
        )
    chosen = run.layers(layers)
    if method == "pca":
        return principal(run, count, chosen)
    values = np.maximum(activations(run, chosen), 0)  # [neuron, token]
    model = _sklearn("decomposition").NMF(count, init="nndsvda", random_state=seed, max_iter=200, tol=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not converged to the last digit: the picture is the same
        weights = model.fit_transform(values)  # [neuron, factor]
    tokens = model.components_  # [factor, token]
    highest = np.maximum(tokens.max(axis=1), 1e-30)
    weights, tokens = weights * highest, tokens / highest[:, None]
    unexplained = float(np.square(values - weights @ tokens).sum() / max(float(np.square(values).sum()), 1e-30))
    strength = weights.sum(axis=0) * tokens.sum(axis=1)
    share = strength / max(strength.sum(), 1e-30)
    order = np.argsort(-strength, kind="stable")
    return Factors(
        "nmf",
        tuple(chosen),
        unexplained,
        tuple(_factor(weights[:, i], tokens[i], float(share[i]), run, chosen) for i in order),
    )


def principal(run: Run, count: int, layers: list[int]) -> Factors:
    """The first principal components of the activations; `share` is the part of the variance that each explains."""
    values = activations(run, layers).astype(np.float64)
    values -= values.mean(axis=1, keepdims=True)
    neurons, sizes, tokens = np.linalg.svd(values, full_matrices=False)
    variance = np.square(sizes) / max(float(np.square(sizes).sum()), 1e-30)
    found = []
    for i in range(count):
        largest = tokens[i][np.abs(tokens[i]).argmax()] or 1.0  # which of two opposite directions: the strongest is +1
        weights, along = (
            (neurons[:, i] * sizes[i] * largest).astype(np.float32),
            (tokens[i] / largest).astype(np.float32),
        )
        found.append(_factor(weights, along, float(variance[i]), run, layers))
    return Factors("pca", tuple(layers), float(1 - variance[:count].sum()), tuple(found))


def _factor(weights: Array, tokens: Array, share: float, run: Run, layers: list[int]) -> Factor:
    width = run.lm.config.mlp_width
    by_layer = np.abs(weights).reshape(len(layers), width).sum(axis=1)
    strongest = np.argsort(-np.abs(weights), kind="stable")[:EXAMPLES].tolist()
    return Factor(
        tokens,
        share,
        by_layer / max(float(by_layer.sum()), 1e-30),
        tuple((layers[row // width], row % width, float(weights[row])) for row in strongest),
    )


def _sklearn(part: str) -> Any:
    try:
        return importlib.import_module(f"sklearn.{part}")
    except ImportError:
        raise CutawayError(
            "Groups and factors need scikit-learn, which is not installed. Install it: pip install 'cutaway[inspect]'.",
            "no_sklearn",
        ) from None
