"""The loss curve as a picture: a small SVG, written here, light or dark as its reader's screen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 20, 44, 46
POINTS = 600
"""So many points of a curve at most: more would not be seen."""

STYLE = """
text { font: 13px system-ui, sans-serif; fill: #444 } .title { font-size: 15px; font-weight: 600; fill: #222 }
.grid { stroke: #ddd } .raw { stroke: #2a6f97; opacity: .25 } .train { stroke: #2a6f97; stroke-width: 2 }
.held { stroke: #d1495b; stroke-width: 2 } circle { fill: #d1495b } path { fill: none }
@media (prefers-color-scheme: dark) { text { fill: #bbb } .title { fill: #eee } .grid { stroke: #444 }
.raw, .train { stroke: #61b0d6 } .held { stroke: #f0808c } circle { fill: #f0808c } }
"""

STEP = f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">step</text>'


def loss_picture(lines: Sequence[Mapping[str, Any]], title: str = "Loss") -> str:
    """An SVG of the lines of `metrics.jsonl`: the loss of each step, its moving mean, and the loss on held-out data."""
    train = [(line["step"], line["loss"]) for line in lines if finite(line.get("loss"))]
    held = [(line["step"], line["held_loss"]) for line in lines if finite(line.get("held_loss"))]
    smooth = moving_mean(train)
    if not train and not held:
        return frame(title, STEP)
    last = max(step for step, _ in train + held)
    values = [loss for _, loss in thinned(smooth) + held] + [loss for _, loss in train[:1]]
    low, high = min(values), max(values)
    room = (high - low or 1) * 0.06
    ticks = nice_ticks(low - room, high + room)
    low, high = min(low - room, ticks[0]), max(high + room, ticks[-1])

    def x(step: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * step / max(1, last)

    def y(loss: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - min(high, max(low, loss))) / (high - low)

    def curve(points: list[tuple[int, float]], kind: str) -> str:
        way = "L".join(f"{x(step):.1f} {y(loss):.1f}" for step, loss in thinned(points))
        return f'<path class="{kind}" d="M{way}"/>' if points else ""

    grid = [
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>'
        f'<text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>'
        for tick in ticks
    ]
    steps = [
        f'<text x="{x(tick):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{int(tick):,}</text>'
        for tick in nice_ticks(0, last)
        if tick == int(tick)
    ]
    dots = [f'<circle cx="{x(step):.1f}" cy="{y(loss):.1f}" r="3"/>' for step, loss in thinned(held)]
    curves = [curve(train, "raw"), curve(smooth, "train"), curve(held, "held"), *dots]
    names = [
        (name, kind) for name, kind, points in (("training", "train", train), ("held out", "held", held)) if points
    ]
    return frame(title, "".join([*grid, *steps, *curves, legend(names), STEP]))


def frame(title: str, inside: str, style: str = "") -> str:
    """A picture of this size with its title; `style` is added to that of all."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}">'
        f"<style>{STYLE}{style}</style>"
        f'<text class="title" x="{LEFT}" y="26">{escape(title)}</text>{inside}</svg>\n'
    )


def legend(names: list[tuple[str, str]]) -> str:
    parts = []
    for number, (name, kind) in enumerate(reversed(names)):
        at = WIDTH - RIGHT - 110 * (number + 1)
        parts.append(f'<path class="{kind}" d="M{at} 21h22"/><text x="{at + 28}" y="26">{name}</text>')
    return "".join(parts)


def finite(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def moving_mean(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Each value with those before it, the nearest counting most; over about a thirtieth of them all."""
    keep = 1 - 1 / max(2, len(points) // 30)
    total = weight = 0.0
    means = []
    for step, value in points:
        total, weight = keep * total + value, keep * weight + 1
        means.append((step, total / weight))
    return means


def thinned(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """At most so many of the points, evenly, the last one among them."""
    every = -(-len(points) // POINTS) or 1
    return [*points[:-1:every], *points[-1:]]


def nice_ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Round numbers between two others, about so many."""
    step = 10 ** math.floor(math.log10(max(high - low, 1e-9) / about))
    step *= next(one for one in (1, 2, 5, 10) if (high - low) / (step * one) <= about)
    first = math.ceil(low / step - 1e-9)
    return [round(number * step, 10) for number in range(first, math.floor(high / step + 1e-9) + 1)]
