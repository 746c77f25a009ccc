"""How fast this machine writes and reads, ours beside others: interleaved rounds, medians, and the memory's limit."""

from __future__ import annotations

import functools
import math
import re
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from html import escape
from importlib.metadata import version
from typing import Any, Protocol

import numpy as np
import torch

from cutaway import processor
from cutaway.errors import CutawayError
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.runtime.native.engine import Engine
from cutaway.runtime.native.library import KINDS, default_threads, need
from cutaway.runtime.native.pack import Packed, memory_of, pack, places, size_of, weights_read

MEASURES = ("decode", "prompt", "batch16")
TEXTS = 16
BITS = {"float32": 32.0, "bfloat16": 16.0, "int8": 8.25, "int4": 4.5}
"""A weight takes, with its share of its group's scale."""


@dataclass(frozen=True)
class Amount:
    """How much is done in one round, and how long there may be rounds."""

    rounds: int
    decode: int
    prompt: int
    batch: int
    seconds: float = float("inf")
    """No round is begun that would end later; one is always done."""
    longest: float = 30
    """What would take more seconds than this is measured only once, in the short round that warms up."""


QUICK, FULL = Amount(3, 32, 256, 3, seconds=32, longest=1.5), Amount(12, 64, 1_000, 8)


class Runner(Protocol):
    """Something that runs a model of the shape in question. A measure is tokens a second, or None if it has none."""

    engine: str
    weights: str
    bits: float
    """A weight takes, its scales included."""
    build: str
    """Which version it is, and for which processor it was built: by its own account."""

    def decode(self, tokens: int) -> float | None: ...
    def prompt(self, tokens: int) -> float | None: ...
    def batch16(self, steps: int) -> float | None: ...


@dataclass(frozen=True)
class Row:
    """One engine with one kind of weights: medians in tokens a second, and how far apart the quartiles are."""

    engine: str
    weights: str
    decode: float | None
    prompt: float | None
    batch16: float | None
    limit: float
    """What decoding could be if nothing but reading every weight once took time."""
    build: str = ""
    """How the engine was built, by its own account."""
    spread: dict[str, float] = field(default_factory=dict)
    """The distance of the quartiles over the median, for each measure."""
    rounds: dict[str, list[float]] = field(default_factory=dict)
    """What each round gave."""
    first: float | None = None
    """Seconds from the command to its first token, the file in the page cache."""
    memory: float | None = None
    """What that command held in memory at most, over the size of the weights."""


@dataclass(frozen=True)
class Report:
    """What was measured on this machine."""

    model: str
    read_gb_s: float
    threads: int
    kernels: str
    rows: list[Row]
    processor: str = ""
    """Its name, as the system has it."""
    bandwidths: list[float] = field(default_factory=list)
    """GB/s, round by round: `read_gb_s` is their median."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def measure(
    model: str,
    config: Config,
    runners: list[Runner],
    amount: Amount,
    progress: Callable[[int, int], None] | None = None,
    begun: float | None = None,
) -> Report:
    """Every runner in turn, round after round, so that a busy moment of the machine meets all of them.

    The seconds of `amount` count from `begun` (a `time.perf_counter()`), or from now.
    """
    begun = time.perf_counter() if begun is None else begun
    found: list[dict[str, list[float]]] = [{name: [] for name in MEASURES} for _ in runners]
    bandwidths: list[float] = []
    length = min(amount.prompt, config.context)
    steps = min(amount.decode, config.context - 1)
    for number in range(amount.rounds + 1):  # the first warms up, and does not count
        started = time.perf_counter()
        bandwidths.append(read_bandwidth())
        for runner, results in zip(runners, found, strict=True):
            for name, much in (("decode", steps), ("prompt", length), ("batch16", amount.batch)):
                if number and results[name] and much * per_step(name) / results[name][0] > amount.longest:
                    continue
                if number:  # whoever was waiting for its turn gets its threads and caches back
                    getattr(runner, name)(max(1, much // 2))
                speed = getattr(runner, name)(much if number else max(1, much // 8))
                if speed is not None:
                    results[name] = [*results[name], speed] if number > 1 else [speed]
        if progress is not None:
            progress(number + 1, amount.rounds + 1)
        now = time.perf_counter()
        if number and now - begun + (now - started) > amount.seconds:
            break
    bandwidths = bandwidths[1:] or bandwidths
    bandwidth = statistics.median(bandwidths)
    weights = sum(math.prod(place.shape) for place in weights_read(config, "float32"))
    rows = [
        Row(
            runner.engine,
            runner.weights,
            decode=median(results["decode"]),
            prompt=median(results["prompt"]),
            batch16=median(results["batch16"]),
            limit=bandwidth * 1e9 / (float(weights) * runner.bits / 8),
            build=runner.build,
            spread={name: spread(results[name]) for name in MEASURES if results[name]},
            rounds={name: [round(speed, 2) for speed in results[name]] for name in MEASURES if results[name]},
        )
        for runner, results in zip(runners, found, strict=True)
    ]
    kernels = next((runner.runs.kernels for runner in runners if isinstance(runner, NativeRunner)), "")
    return Report(
        model, bandwidth, default_threads(), kernels, rows, processor.name(), [round(one, 2) for one in bandwidths]
    )


def per_step(name: str) -> int:
    """How many tokens one step of a measure is."""
    return TEXTS if name == "batch16" else 1


def median(values: list[float]) -> float | None:
    return statistics.median(values) if values else None


def spread(values: list[float]) -> float:
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4)
    return (high - low) / statistics.median(values)


def read_bandwidth(size: int = 1 << 28) -> float:
    """GB/s that this machine's processors read together, from front to back, of memory too large for the caches."""
    memory = memory_of(size)
    memory[:: 1 << 12] = 1  # pages that were never written are all the same one
    return size / float(need().cutaway_read_memory(memory.ctypes.data, size, default_threads())) / 1e9


class NativeRunner:
    """The native engine on random weights of one kind."""

    engine = "cutaway"

    def __init__(self, config: Config, weights: str):
        self.weights = weights
        matrices = [(math.prod(place.shape), BITS[str(place.packed)]) for place in weights_read(config, weights)]
        self.bits = sum(count * bits for count, bits in matrices) / sum(count for count, _ in matrices)
        self.runs = Engine(random_weights(config, weights))
        self.build = f"cutaway {version('cutaway')}: {self.runs.kernels} kernels"
        self.ids = np.random.default_rng(0).integers(0, config.vocabulary, config.context).tolist()
        self.decode(min(48, config.context - 1))  # until it has found out how far ahead to fetch

    def decode(self, tokens: int) -> float:
        text = self.runs.text()
        scores = self.runs.read([text], [self.ids[:1]])
        begun = time.perf_counter()
        for _ in range(tokens):
            scores = self.runs.read([text], [[int(scores[0].argmax())]])
        return tokens / (time.perf_counter() - begun)

    def prompt(self, tokens: int) -> float:
        text = self.runs.text()
        begun = time.perf_counter()
        self.runs.read([text], [self.ids[:tokens]])
        return tokens / (time.perf_counter() - begun)

    def batch16(self, steps: int) -> float:
        texts = [self.runs.text() for _ in range(TEXTS)]
        scores = self.runs.read(texts, [self.ids[:8]] * TEXTS)
        begun = time.perf_counter()
        for _ in range(steps):
            scores = self.runs.read(texts, [[token] for token in scores.argmax(axis=1).tolist()])
        return TEXTS * steps / (time.perf_counter() - begun)


@functools.cache
def one_layer(config: Config) -> GPT:
    """A model of this shape with random weights, as far as its first layer."""
    torch.manual_seed(0)
    return GPT(config.but(layers=1)).eval()


def random_model(config: Config) -> GPT:
    """A model of this shape; every layer is the same one, which takes as long to run and less to make."""
    with torch.device("meta"):
        model = GPT(config).eval()
    source = one_layer(config).state_dict()
    names = {name: re.sub(r"^blocks\.\d+\.", "blocks.0.", name) for name in model.state_dict()}
    model.load_state_dict({name: source[first] for name, first in names.items()}, assign=True)
    return model


def random_weights(config: Config, weights: str) -> Packed:
    """The same, packed; here every layer has memory of its own."""
    one = config.but(layers=1)
    packed = pack(one_layer(config), weights)
    starts = {place.name: place.start for place in places(config, weights)}
    small = list(places(one, weights))
    memory = memory_of(size_of(config, weights))
    for place, end in zip(small, [*(place.start for place in small[1:]), packed.nbytes], strict=True):
        block = packed.memory[place.start : end]
        for layer in range(config.layers) if place.name.startswith("blocks.0.") else [0]:
            start = starts[place.name.replace("blocks.0.", f"blocks.{layer}.")]
            memory[start : start + block.size] = block
    return Packed(config, weights, memory)


def ours(config: Config, kinds: tuple[str, ...] = KINDS) -> Iterator[NativeRunner]:
    for kind in kinds:
        if kind not in KINDS:
            raise CutawayError(f"There are no weights {kind!r}. Known: {', '.join(KINDS)}.")
        yield NativeRunner(config, kind)


def picture(report: Report) -> str:
    """Bars of decoding speed as an SVG, each with the memory's limit as a line."""
    width, left, step = 760, 190, 30
    most = max([row.limit for row in report.rows] + [row.decode or 0 for row in report.rows])
    scale = (width - left - 90) / most
    lines = []
    for number, row in enumerate(report.rows):
        y = 50 + number * step
        end = left + row.limit * scale
        kind = "ours" if row.engine == "cutaway" else "peer"
        lines += [
            f'<text x="{left - 10}" y="{y + 15}" text-anchor="end">{escape(f"{row.engine} {row.weights}")}</text>',
            f'<rect class="{kind}" x="{left}" y="{y}" width="{(row.decode or 0) * scale:.1f}" height="20"/>',
            f'<line x1="{end:.1f}" x2="{end:.1f}" y1="{y - 2}" y2="{y + 22}"/>',
            f'<text x="{end + 8:.1f}" y="{y + 15}">{row.decode or 0:,.0f}</text>',
        ]
    title = f"Tokens a second, one text, {report.model} ({report.threads} threads; the line is the memory's limit)"
    style = (
        "text { font: 13px system-ui, sans-serif; fill: #444 } .ours { fill: #2a6f97 } .peer { fill: #bbb } "
        "line { stroke: #d1495b; stroke-width: 2 } "
        "@media (prefers-color-scheme: dark) { text { fill: #bbb } .ours { fill: #61b0d6 } .peer { fill: #666 } }"
    )
    height = 60 + step * len(report.rows)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
        f"<style>{style}</style><text x='10' y='24'>{escape(title)}</text>{''.join(lines)}</svg>\n"
    )
