"""Our server beside llama.cpp's own, at 1, 4, 16 and 64 clients: the same shape, weights and load, in turns.

    python benchmarks/serving.py [--size gpt2] [--clients 1 4 16 64] [--rounds 3] [--folder DIR] [--svg FILE] [--json]

Random weights of GPT-2's shape do the work of real ones; both servers hold them in 8 bits. Each client asks again as
soon as it has its answer: a prompt of its own and so many new tokens, streamed. Ratios are of medians over the rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cutaway.models.gpt2.shape import SIZES
from cutaway.runtime.native.library import default_threads

LLAMA_CPP = """
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
OURS, THEIRS = "cutaway", "llama.cpp"


@dataclass
class Measured:
    """One server under one load."""

    tokens: int = 0
    seconds: float = 0.0
    first: list[float] = field(default_factory=list)
    """Seconds until the first token of each text."""
    between: list[float] = field(default_factory=list)
    """Seconds between two tokens of a text."""

    @property
    def speed(self) -> float:
        return self.tokens / self.seconds


@dataclass
class Server:
    name: str
    address: str
    process: subprocess.Popen[str]
    more: dict[str, Any]
    """What a request says besides, so that every text has its full length."""


def prepare(folder: Path, size: str) -> None:
    """The same random weights for both, rounded to 8 bits as each holds them."""
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


def begin(folder: Path, slots: int, longest: int) -> list[Server]:
    """Both servers, each ready to be asked."""
    options = ["--port", "0", "--state", str(folder / "state"), "--log", "off"]
    command = [sys.executable, "-m", "cutaway", "serve", str(folder / "model.cutaway"), *options]
    ours = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert ours.stdout is not None
    line = ours.stdout.readline()
    address = line.partition("http://")[2].partition("/")[0]
    found = [Server(OURS, address, ours, {"logit_bias": {"50256": -100}})]
    theirs = subprocess.Popen(
        [sys.executable, "-c", LLAMA_CPP, str(folder / "model.gguf"), str(default_threads()), str(slots), str(longest)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert theirs.stdout is not None
    address = theirs.stdout.readline().partition("http://")[2].strip().rstrip("/")
    found.append(Server(THEIRS, address, theirs, {"ignore_eos": True, "cache_prompt": True}))
    return found


async def ask(server: Server, prompt: list[int], tokens: int, measured: Measured) -> None:
    """One text, streamed, by a client that takes as little of the processor as it can."""
    host, _, port = server.address.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 20)
    body = {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "stream": True, **server.more}
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

    begun = time.perf_counter()
    await asyncio.gather(*(client(own) for own in asked))
    measured.seconds = time.perf_counter() - begun
    return measured


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def summary(rounds: list[Measured]) -> dict[str, float]:
    """Medians over the rounds; waiting times over all texts of all rounds, in milliseconds."""
    first, between = ([value for one in rounds for value in getattr(one, name)] for name in ("first", "between"))
    return {
        "tokens_per_second": round(statistics.median(one.speed for one in rounds), 1),
        **{f"first_p{p}": round(1000 * quantile(first, p / 100), 1) for p in (50, 99)},
        **{f"between_p{p}": round(1000 * quantile(between, p / 100), 1) for p in (50, 99)},
    }


def picture(found: dict[int, dict[str, dict[str, float]]], title: str) -> str:
    """Bars: tokens a second of both at each number of clients, with the ratio above."""
    highest = max(one["tokens_per_second"] for pair in found.values() for one in pair.values())
    width, base, tall = 150, 260, 190
    parts = [f'<text class="title" x="20" y="28">{title}</text>']
    for column, (clients, pair) in enumerate(found.items()):
        left = 40 + column * width
        for at, (name, one) in enumerate(pair.items()):
            height = tall * one["tokens_per_second"] / highest
            kind = "ours" if name == OURS else "theirs"
            parts.append(
                f'<rect class="{kind}" x="{left + 48 * at}" y="{base - height:.1f}" width="40" height="{height:.1f}"/>'
            )
            x = left + 48 * at + 20
            parts.append(
                f'<text x="{x}" y="{base - height - 6:.1f}" text-anchor="middle">{one["tokens_per_second"]:.0f}</text>'
            )
        ratio = pair[OURS]["tokens_per_second"] / pair[THEIRS]["tokens_per_second"]
        said = f"{clients} client{'s' if clients > 1 else ''}: {ratio:.2f} x"
        parts.append(f'<text x="{left + 44}" y="{base + 22}" text-anchor="middle">{said}</text>')
    legend = f'<rect class="ours" x="20" y="300" width="12" height="12"/><text x="38" y="311">{OURS}</text>'
    legend += f'<rect class="theirs" x="130" y="300" width="12" height="12"/><text x="148" y="311">{THEIRS}</text>'
    style = (
        "text { font: 13px system-ui, sans-serif; fill: #444 } .title { font-size: 15px; font-weight: 600 } "
        ".ours { fill: #2a6f97 } .theirs { fill: #bbb } @media (prefers-color-scheme: dark) { text { fill: #bbb } "
        ".ours { fill: #61b0d6 } .theirs { fill: #666 } }"
    )
    whole = 60 + width * len(found)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole} 325"><style>{style}</style>'
        f"{''.join(parts)}{legend}</svg>\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="gpt2", choices=SIZES)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--folder", type=Path, help="keep the models here, for the next time")
    parser.add_argument("--prepare", action="store_true", help="write the models and stop")
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = given.folder or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        prepare(folder, given.size)
        if given.prepare:
            return
        servers = begin(folder, max(given.clients), 128)
        try:
            found = measure(servers, given.clients, given.rounds, given.tokens)
        finally:
            for one in servers:
                one.process.kill()
                one.process.wait()
    if given.svg:
        title = f"Tokens a second, {given.size}'s shape in 8 bits, {default_threads()} threads"
        given.svg.write_text(picture(found, title), encoding="utf-8")
    if given.json:
        print(json.dumps(found))
        return
    for clients, pair in found.items():
        ratio = pair[OURS]["tokens_per_second"] / pair[THEIRS]["tokens_per_second"]
        print(f"{clients} clients: {ratio:.2f} x")
        for name, one in pair.items():
            print(f"  {name:10}", *(f"{key} {value:8.1f}" for key, value in one.items()))


def measure(
    servers: list[Server], clients: list[int], rounds: int, tokens: int
) -> dict[int, dict[str, dict[str, float]]]:
    """Every load on both, one after the other, round by round."""
    for one in servers:
        asyncio.run(load(one, 2, 1, 8, seed=0))  # loads and warms
    runs: dict[tuple[int, str], list[Measured]] = {}
    for number in range(rounds):
        for count in clients:
            for one in servers if number % 2 == 0 else servers[::-1]:
                texts = max(1, 4 // count)
                got = asyncio.run(load(one, count, texts, tokens, seed=1 + number))
                runs.setdefault((count, one.name), []).append(got)
    return {count: {one.name: summary(runs[count, one.name]) for one in servers} for count in clients}


if __name__ == "__main__":
    main()
