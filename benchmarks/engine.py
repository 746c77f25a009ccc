"""The native engine beside its peers, until a file has as many rounds as asked for: it is written after each of them.

A machine need not be quiet for a quarter of an hour in one piece: run it again, and it goes on.

    python benchmarks/engine.py --rounds 12 --into benchmarks/results/my-machine.json

Everything is measured in turns within a round (see cutaway.bench.run); the file has every round, and all medians.
Peers that are not installed are left out; `make bench` installs them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from cutaway.bench import first_token, peers
from cutaway.bench.run import MEASURES, Amount, Report, Runner, measure, median, ours, spread
from cutaway.models.gpt2.shape import SIZES

RATIOS = [
    ("decode", ("cutaway", "int8"), [("llama.cpp", "q8_0")]),
    ("decode", ("cutaway", "int4"), [("llama.cpp", "q4_0")]),
    ("decode", ("cutaway", "bfloat16"), [("llama.cpp", "f16")]),
    ("decode", ("cutaway", "float32"), [("transformers", "float32")]),
    ("prompt", ("cutaway", "int8"), []),
    ("batch16", ("cutaway", "int8"), [("llama.cpp", "q8_0"), ("llama.cpp", "q4_0"), ("llama.cpp", "f16")]),
    ("batch16", ("cutaway", "int4"), [("llama.cpp", "q8_0"), ("llama.cpp", "q4_0"), ("llama.cpp", "f16")]),
]
"""What is held against what; against all peers where none is named."""


def joined(before: dict[str, Any] | None, report: Report) -> dict[str, Any]:
    """The file with one more part."""
    found = report.to_json()
    found["parts"] = [
        {
            "at": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
            "rounds": len(report.bandwidths),
            "load": round(os.getloadavg()[0], 2),
        }
    ]
    if before is None:
        return found
    same = ("model", "processor", "threads", "kernels")
    if any(before[key] != found[key] for key in same) or len(before["rows"]) != len(found["rows"]):
        raise SystemExit("The file has rounds of another machine, or of other programs: begin a new one.")
    found["parts"] = before["parts"] + found["parts"]
    found["bandwidths"] = before["bandwidths"] + found["bandwidths"]
    bytes_a_token = [found["read_gb_s"] / row["limit"] for row in found["rows"]]
    found["read_gb_s"] = statistics.median(found["bandwidths"])
    for row, old, size in zip(found["rows"], before["rows"], bytes_a_token, strict=True):
        if (row["engine"], row["weights"]) != (old["engine"], old["weights"]):
            raise SystemExit("The file has other rows: begin a new one.")
        for name in MEASURES:
            row["rounds"][name] = old["rounds"].get(name, []) + row["rounds"].get(name, [])
            row[name] = median(row["rounds"][name])
            row["spread"][name] = spread(row["rounds"][name])
        row["limit"] = found["read_gb_s"] / size
        row["first"], row["memory"] = row["first"] or old["first"], row["memory"] or old["memory"]
    return found


def ratios(found: dict[str, Any]) -> list[dict[str, Any]]:
    rows = {(row["engine"], row["weights"]): row for row in found["rows"]}
    lines = []
    for name, us, them in RATIOS:
        others = {
            key: rows[key][name] for key in them or rows if key in rows and key[0] != "cutaway" and rows[key][name]
        }
        if us in rows and others:
            best = max(others, key=lambda key: others[key])
            lines.append(
                {"measure": name, "ours": " ".join(us), "best": " ".join(best), "ratio": rows[us][name] / others[best]}
            )
    for kind in ("float32", "bfloat16", "int8", "int4"):
        row = rows["cutaway", kind]
        lines.append(
            {
                "measure": "16 texts",
                "ours": f"cutaway {kind}",
                "best": "one text",
                "ratio": row["batch16"] / row["decode"],
            }
        )
        lines.append(
            {"measure": "limit", "ours": f"cutaway {kind}", "best": "memory", "ratio": row["decode"] / row["limit"]}
        )
    return lines


def add_rounds(asked: argparse.Namespace) -> dict[str, Any]:
    """Rounds until the file has all of them; what it has then."""
    config = SIZES["gpt2"]
    found: dict[str, Any] | None = json.loads(asked.into.read_text()) if asked.into.is_file() else None
    asked.into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        runners: list[Runner] = [*ours(config), *peers.installed(config, Path(folder), quick=True)]
        while (have := len(found["bandwidths"]) if found else 0) < asked.rounds:
            report = measure("gpt2", config, runners, Amount(1, decode=48, prompt=1_000, batch=8))
            if asked.first and have == asked.rounds - 1:
                report = first_token.measure_first_tokens(report, runners, Path(folder), 6)
            found = joined(found, report)
            found["ratios"] = ratios(found)
            asked.into.write_text(json.dumps(found, indent=1) + "\n")
    assert found is not None
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=12, help="how many the file is to have in the end")
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--first", action="store_true", help="measure whole commands, too: the first token and memory")
    found = add_rounds(parser.parse_args())
    print(f"{len(found['bandwidths'])} rounds; memory {found['read_gb_s']:.1f} GB/s")
    for row in found["rows"]:
        cells = [f"{row[name]:9,.0f}" if row[name] else f"{'-':>9}" for name in MEASURES]
        print(f"{row['engine'] + ' ' + row['weights']:<22}{''.join(cells)}{row['decode'] / row['limit']:8.0%}")
    for line in found["ratios"]:
        print(f"{line['measure']:<10}{line['ours']:<18} {line['ratio']:.2f} x {line['best']}")


if __name__ == "__main__":
    main()
