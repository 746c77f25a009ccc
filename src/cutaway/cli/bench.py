"""`cutaway bench`: how fast this machine writes and reads, ours beside others."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cutaway.cli import options, screen
from cutaway.cli.options import option
from cutaway.errors import CutawayError, nearest
from cutaway.models.gpt2.shape import SIZES

if TYPE_CHECKING:
    from cutaway.bench.run import Report


def bench(
    size: Annotated[str, options.argument(metavar="SIZE", help=f"{', '.join(SIZES)}.")] = "gpt2",
    weights: Annotated[
        list[str] | None, option("--weights", value="KIND", help="float32, bfloat16, int8 or int4. Repeatable.")
    ] = None,
    quick: Annotated[bool, option("--quick", help="Fewer and shorter rounds: less than a minute for gpt2.")] = False,
    alone: Annotated[bool, option("--alone", help="Skip the other programs that are installed.")] = False,
    picture: Annotated[Path | None, option("--picture", value="FILE", help="Draw the table as an SVG.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Measure the native engine's tokens per second, and those of llama.cpp and transformers if installed.

    Random weights of the size's shape take the same time as real ones: nothing is downloaded.

    Example: cutaway bench gpt2 --quick
    """
    if size not in SIZES:
        raise CutawayError(f"There is no size {size!r}.{nearest(size, SIZES)} Known: {', '.join(SIZES)}.")
    begun = time.perf_counter()
    from cutaway.bench import first_token, peers
    from cutaway.bench import run as engine_bench
    from cutaway.cli import progress
    from cutaway.runtime.native.library import KINDS

    config = SIZES[size]
    with tempfile.TemporaryDirectory() as folder:
        with screen.working("making models"):
            runners: list[engine_bench.Runner] = list(engine_bench.ours(config, tuple(weights or KINDS)))
            if not alone:
                runners += peers.installed(config, Path(folder), quick)
        with progress.one(f"{len(runners)} engines in turn") as report:
            amount = engine_bench.QUICK if quick else engine_bench.FULL
            found = engine_bench.measure(size, config, runners, amount, report, begun)
        with screen.working("first tokens"):
            found = first_token.measure_first_tokens(found, runners, Path(folder), 1 if quick else 6)
    if picture is not None:
        picture.write_text(engine_bench.picture(found), encoding="utf-8")
    if as_json:
        screen.show_json(found.to_json())
    else:
        table(found)


def table(found: Report) -> None:
    screen.show(
        f"{found.model}, {found.threads} threads, {found.kernels} kernels; memory reads {found.read_gb_s:.1f} GB/s"
    )
    screen.show()
    heads = ("decode", "of limit", "prompt", "16 texts", "first", "memory")
    screen.show(f"{'':<22}" + "".join(f"{head:>9}" for head in heads), style="dim")
    for row in found.rows:
        decode, prompt, batch = (f"{n:,.0f}" if n else "-" for n in (row.decode, row.prompt, row.batch16))
        share = f"{row.decode / row.limit:.0%}" if row.decode else "-"
        first = f"{row.first:.2f} s" if row.first else ""
        memory = f"{row.memory:.2f} x" if row.memory else ""
        cells = (decode, share, prompt, batch, first, memory)
        screen.show((f"{row.engine + ' ' + row.weights:<22}" + "".join(f"{cell:>9}" for cell in cells)).rstrip())
    screen.show()
    for build in dict.fromkeys(row.build for row in found.rows if row.engine != "cutaway"):
        screen.aside(build)
    screen.aside("tokens a second, medians of interleaved rounds; first: from the command to its first token")
