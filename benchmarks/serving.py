"""Our server beside llama.cpp's own, at 1, 4, 16 and 64 clients: the same shape, weights and load, in turns.

    python benchmarks/serving.py [--llama-server BINARY] [--minutes 10] [--clients 1 4 16 64] [--folder DIR]
                                 [--svg FILE] [--json FILE] [--docs FILE]

Random weights of GPT-2's shape do the work of real ones; all servers hold them in 8 bits. Each client asks again as
soon as it has its answer: a prompt of its own and so many new tokens, sampled and streamed. (Sampled, because the
likeliest tokens of random weights soon go in circles, which our server would guess ahead.) Speeds are medians over the
rounds; every round asks each server in turn, another one first.

llama.cpp for the processor at hand: cmake -B build -DGGML_NATIVE=ON && cmake --build build --target llama-server.
`xllamacpp`, the portable wheel of the same server, is measured beside it if it is installed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from cutaway import processor
from cutaway.bench.llama import described
from cutaway.models.gpt2.shape import SIZES
from cutaway.runtime.native.library import default_threads

WHEEL_SERVER = """
import sys, threading, xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path, slots = sys.argv[1], int(sys.argv[3])
parameters.n_parallel, parameters.n_ctx = slots, slots * int(sys.argv[4])
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = int(sys.argv[2])
parameters.warmup, parameters.verbosity = False, 0
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
threading.Event().wait()
"""
OURS, BUILT, WHEEL = "cutaway", "llama.cpp", "llama.cpp (wheel)"
LONGEST = 128
"""Positions that a text has room for."""
SAMPLED = {"temperature": 1.0, "top_k": 40}


@dataclass
class Measured:
    """One server under one load."""

    tokens: int = 0
    seconds: float = 0.0
    first: list[float] = field(default_factory=list)
    """Seconds until the first token of each text."""
    between: list[float] = field(default_factory=list)
    """Seconds between two tokens of a text."""
    work: float = 0.0
    """Seconds of processor time that the server took: told apart from what else the machine did."""

    @property
    def speed(self) -> float:
        return self.tokens / self.seconds


@dataclass
class Server:
    name: str
    address: str
    process: subprocess.Popen[str]
    build: str
    """Which version it is, and for which processor it was built: by its own account."""
    more: dict[str, Any]
    """What a request says besides, so that every text has its full length."""


def prepare(folder: Path, size: str) -> None:
    """The same random weights for all, rounded to 8 bits as each holds them."""
    if (folder / "model.gguf").exists() and (folder / "model.cutaway").exists():
        return
    from cutaway.bench.run import random_model
    from cutaway.checkpoint import gguf
    from cutaway.runtime.native.pack import pack
    from cutaway.runtime.native.packed_file import write_packed
    from cutaway.text.tokenizer import Tokenizer

    model, tokenizer = random_model(SIZES[size]), Tokenizer.load("gpt2")
    gguf.write_gguf(model, tokenizer, folder / "model.gguf", "q8_0")
    write_packed(pack(model, "int8"), tokenizer, folder / "model.cutaway")


def our_server(folder: Path) -> Server:
    options = ["--port", "0", "--state", str(folder / "state"), "--log", "off"]
    command = [sys.executable, "-m", "cutaway", "serve", str(folder / "model.cutaway"), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    address = process.stdout.readline().partition("http://")[2].partition("/")[0]
    build = f"cutaway {version('cutaway')}: {processor.kind()} kernels"
    return Server(OURS, address, process, build, {**SAMPLED, "logit_bias": {"50256": -100}})


def built_server(binary: Path, folder: Path, slots: int) -> Server:
    """llama.cpp's server from a binary of one's own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    threads, log = str(default_threads()), folder / "llama-server.log"
    command = [str(binary), "--model", str(folder / "model.gguf"), "--host", "127.0.0.1", "--port", str(port)]
    command += ["--parallel", str(slots), "--ctx-size", str(slots * LONGEST), "--threads", threads]
    command += ["--threads-batch", threads, "--no-warmup", "--cache-ram", "0"]  # no prompt comes twice
    with log.open("w") as told:
        process = subprocess.Popen(command, stdout=told, stderr=told, text=True)
    while not answers(f"http://127.0.0.1:{port}/health"):
        if process.poll() is not None:
            sys.exit(f"{binary} ended:\n{log.read_text()[-2000:]}")
        time.sleep(0.2)
    return Server(BUILT, f"127.0.0.1:{port}", process, account(binary), THEIR_LOAD)


def account(binary: Path) -> str:
    """How llama.cpp says it was built: it tells so before it finds that there is no model."""
    version, told = (
        subprocess.run([str(binary), *options], capture_output=True, text=True)
        for options in (["--version"], ["--log-verbosity", "4", "--model", os.devnull])
    )
    lines = [*version.stdout.splitlines(), *version.stderr.splitlines()]
    numbered = next((line for line in lines if line.startswith("version")), "of no known version")
    info = next((line for line in (told.stdout + told.stderr).splitlines() if "system_info:" in line), "")
    return described(f"llama-server {numbered}", info)


THEIR_LOAD = {**SAMPLED, "samplers": ["top_k", "temperature"], "ignore_eos": True, "cache_prompt": True}
"""Only the two steps that are asked for."""


def wheel_server(folder: Path, slots: int) -> Server:
    import xllamacpp  # type: ignore[import-untyped, unused-ignore]

    options = [str(folder / "model.gguf"), str(default_threads()), str(slots), str(LONGEST)]
    process = subprocess.Popen(
        [sys.executable, "-c", WHEEL_SERVER, *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    address = process.stdout.readline().partition("http://")[2].strip().rstrip("/")
    build = described(f"xllamacpp {xllamacpp.__version__}", str(xllamacpp.get_system_info()))
    return Server(WHEEL, address, process, build, THEIR_LOAD)


def answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=5) as found:
            return bool(found.status == 200)
    except OSError:
        return False


async def ask(server: Server, prompt: list[int], tokens: int, measured: Measured) -> None:
    """One text, streamed, by a client that takes as little of the processor as it can."""
    host, _, port = server.address.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 20)
    body = {"prompt": prompt, "max_tokens": tokens, "seed": len(prompt), "stream": True, **server.more}
    data = json.dumps(body).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: {server.address}\r\nContent-Type: application/json\r\n"
    begun = last = time.perf_counter()
    writer.write(f"{head}Connection: close\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
    count, kept = 0, b""
    status = await reader.readline()
    if b" 200 " not in status:
        raise RuntimeError(f"{server.name}: {status!r} {await reader.read(500)!r}")
    while part := await reader.read(1 << 16):
        now, kept = time.perf_counter(), kept + part
        *events, kept = kept.split(b"\n\n")
        for one in events:
            if b'"text":"' in one or b'"content":"' in one:
                if count == 0:
                    measured.first.append(now - begun)
                elif count < tokens:
                    measured.between.append(now - last)
                count, last = count + 1, now
    writer.close()
    measured.tokens += min(count, tokens)


async def load(server: Server, clients: int, texts: int, tokens: int, seed: int) -> Measured:
    """So many clients, each asking for its texts one after the other."""
    chance, measured = random.Random(seed), Measured()

    def prompt() -> list[int]:
        return [chance.randrange(50_000) for _ in range(chance.randrange(16, 65))]

    asked = [[prompt() for _ in range(texts)] for _ in range(clients)]

    async def client(own: list[list[int]]) -> None:
        for one in own:
            await ask(server, one, tokens, measured)

    begun, worked = time.perf_counter(), processor_time(server.process.pid)
    await asyncio.gather(*(client(own) for own in asked))
    measured.seconds, measured.work = time.perf_counter() - begun, processor_time(server.process.pid) - worked
    return measured


def processor_time(pid: int) -> float:
    """Seconds of processor time that a process has taken; 0 where the system does not say."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def summary(rounds: list[Measured]) -> dict[str, float]:
    """Medians over the rounds; waiting times over all texts of all rounds; in milliseconds."""
    first, between = ([value for one in rounds for value in getattr(one, name)] for name in ("first", "between"))
    return {
        "tokens_per_second": round(statistics.median(one.speed for one in rounds), 1),
        "work_per_token": round(1000 * statistics.median(one.work / one.tokens for one in rounds), 2),
        **{f"first_p{p}": round(1000 * quantile(first, p / 100), 1) for p in (50, 99)},
        **{f"between_p{p}": round(1000 * quantile(between, p / 100), 1) for p in (50, 99)},
    }


Found = dict[int, dict[str, dict[str, Any]]]
"""By the number of clients and the server's name."""


def measure(servers: list[Server], clients: list[int], minutes: float, tokens: int) -> tuple[int, Found]:
    """Every load on each server, one after the other, round by round until the time is over; how many rounds."""
    for one in servers:
        asyncio.run(load(one, 2, 1, 8, seed=0))  # loads and warms
    runs: dict[tuple[int, str], list[Measured]] = {}
    number, begun = 0, time.monotonic()
    while number == 0 or (time.monotonic() - begun) * (number + 1) / number < 60 * minutes:
        turn = number % len(servers)
        for count in clients:
            for one in (*servers[turn:], *servers[:turn]):
                got = asyncio.run(load(one, count, max(2, 8 // count), tokens, seed=1 + number))
                runs.setdefault((count, one.name), []).append(got)
        number += 1

    def told(count: int, name: str) -> dict[str, Any]:
        own = runs[count, name]
        return {**summary(own), "rounds": [round(one.speed, 1) for one in own]}

    return number, {count: {one.name: told(count, one.name) for one in servers} for count in clients}


STYLE = (
    "text { font: 13px system-ui, sans-serif; fill: #444 } .title { font-weight: 600 } .small { font-size: 11px } "
    ".s0 { fill: #2a6f97 } .s1 { fill: #999 } .s2 { fill: #ccc } .tail { stroke: #555; stroke-width: 2 } "
    "@media (prefers-color-scheme: dark) { text { fill: #bbb } .s0 { fill: #61b0d6 } .s1 { fill: #888 } "
    ".s2 { fill: #555 } .tail { stroke: #ccc } }"
)


def picture(found: Found, title: str) -> str:
    """Three panels: tokens a second, and what a client waits for the first and for each other token (log scale)."""
    panels = [
        panel(found, 20, f"Tokens a second: {title}", "tokens_per_second"),
        panel(
            found, 270, "Until the first token, milliseconds (log scale): p50, line to p99", "first_p50", "first_p99"
        ),
        panel(
            found, 520, "Between two tokens, milliseconds (log scale): p50, line to p99", "between_p50", "between_p99"
        ),
    ]
    names = list(next(iter(found.values())))
    legend = "".join(
        f'<rect class="s{at}" x="{20 + 160 * at}" y="765" width="12" height="12"/>'
        f'<text x="{38 + 160 * at}" y="776">{name}</text>'
        for at, name in enumerate(names)
    )
    wide = 40 + 170 * len(found)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {max(wide, 560)} 790"><style>{STYLE}</style>'
        f"{''.join(panels)}{legend}</svg>\n"
    )


def panel(found: Found, top: int, title: str, name: str, tail: str = "") -> str:
    """Bars of one figure; with a tail, on a log scale, a line from each bar to that figure."""
    highest = max(one[tail or name] for each in found.values() for one in each.values())
    base, tall = top + 200, 150

    def height(value: float) -> float:
        return tall * (math.log(1 + value) / math.log(1 + highest) if tail else value / highest)

    parts = [f'<text class="title" x="20" y="{top + 8}">{title}</text>']
    for column, (clients, each) in enumerate(found.items()):
        left = 30 + 170 * column
        for at, one in enumerate(each.values()):
            x, y = left + 46 * at, base - height(one[name])
            parts.append(f'<rect class="s{at}" x="{x}" y="{y:.1f}" width="40" height="{base - y:.1f}"/>')
            if tail:
                end = base - height(one[tail])
                parts.append(f'<path class="tail" d="M{x + 20} {y:.1f}V{end:.1f}"/>')
                y = end
            said = waits(one[name], one[tail]) if tail else f"{one[name]:.0f}"
            parts.append(f'<text class="small" x="{x + 20}" y="{y - 5:.1f}" text-anchor="middle">{said}</text>')
        said = f"{clients} client{'s' if clients > 1 else ''}"
        parts.append(f'<text x="{left + 23 * len(each)}" y="{base + 18}" text-anchor="middle">{said}</text>')
    return "".join(parts)


def waits(usual: float, rare: float) -> str:
    """Two waiting times, short enough to stand above a bar."""
    return f"{usual:.0f}/{rare:.0f}" if rare < 1000 else f"{usual / 1000:.1f}/{rare / 1000:.1f} s"


def table(found: Found) -> str:
    """All of it, as docs/serving.md has it."""
    names = list(next(iter(found.values())))
    cells = [
        [
            "clients",
            "server",
            "tokens a second",
            "ours is",
            "processor time a token (ms)",
            "first token, p50 / p99 (ms)",
            "between tokens, p50 / p99 (ms)",
        ]
    ]
    for clients, each in found.items():
        for name in names:
            one = each[name]
            ratio = each[OURS]["tokens_per_second"] / one["tokens_per_second"]
            times = [f"{one[f'{what}_p50']:,.0f} / {one[f'{what}_p99']:,.0f}" for what in ("first", "between")]
            better = "" if name == OURS else f"{ratio:.2f} x"
            cells.append(
                [str(clients), name, f"{one['tokens_per_second']:,.0f}", better, f"{one['work_per_token']:.2f}", *times]
            )
    rows = ["| " + " | ".join(row) + " |" for row in cells]
    return "\n".join([rows[0], "|---" * len(cells[0]) + "|", *rows[1:]])


def in_place(page: str, said: str) -> str:
    """A page with this between its two marks."""
    first, last = "<!-- benchmarks/serving.py -->\n", "\n<!-- end -->"
    before, _, rest = page.partition(first)
    _, found, after = rest.partition(last)
    if not found:
        raise ValueError(f"The page has no place between {first.strip()} and {last.strip()}.")
    return before + first + said + last + after


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--llama-server", type=Path, help="llama.cpp's own server, built for this processor")
    parser.add_argument("--size", default="gpt2", choices=SIZES)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--minutes", type=float, default=10, help="rounds are begun as long as one more ends by then")
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--folder", type=Path, help="keep the models here, for the next time")
    parser.add_argument("--prepare", action="store_true", help="write the models and stop")
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--docs", type=Path, help="write the table into this page, where its last one stands")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made, ExitStack() as ending:
        folder = given.folder or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        prepare(folder, given.size)
        if given.prepare:
            return
        slots = max(given.clients)
        servers = [our_server(folder)]
        ending.callback(end, servers)
        if given.llama_server is not None:
            servers.append(built_server(given.llama_server, folder, slots))
        if find_spec("xllamacpp"):
            servers.append(wheel_server(folder, slots))
        for one in servers:
            print(f"{one.name}: {one.build}", flush=True)
        rounds, found = measure(servers, given.clients, given.minutes, given.tokens)
    shape = f"{given.size}'s shape in 8 bits, {default_threads()} threads, {rounds} rounds"
    builds = {one.name: one.build for one in servers}
    said = f"{shape}; prompts of 16 to 64 tokens, {given.tokens} new ones, sampled with {SAMPLED}."
    said = "\n".join([said, "", *(f"- {name}: {build}" for name, build in builds.items()), "", table(found)])
    print(said)
    if given.docs:
        given.docs.write_text(in_place(given.docs.read_text(encoding="utf-8"), said), encoding="utf-8")
    if given.svg:
        given.svg.write_text(picture(found, shape), encoding="utf-8")
    if given.json:
        whole = {"shape": given.size, "threads": default_threads(), "rounds": rounds, "tokens": given.tokens}
        whole |= {"load": SAMPLED, "builds": builds, "clients": found}
        given.json.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


def end(servers: list[Server]) -> None:
    for one in servers:
        one.process.kill()
        one.process.wait()


if __name__ == "__main__":
    main()
