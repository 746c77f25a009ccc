"""The server under load (`make load`): 64 clients, mixed lengths, a tenth of them hanging up in the middle."""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

SECONDS = float(os.environ.get("LOAD", "120"))
CLIENTS = 64
START = "Once upon a time there was a little fox who wanted to see what was on the other side of the hill. "


def resident() -> int:
    """Bytes this process has in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def some_request(number: int) -> dict[str, Any]:
    chance = random.Random(number)
    return {
        "prompt": START[: chance.randrange(1, len(START))] * chance.choice([1, 1, 1, 2]),
        "max_tokens": chance.choice([1, 5, 20, 60, 120]),
        "seed": number,
        "temperature": chance.choice([0, 0.8, 1.0]),
        "stream": True,
    }


def written_alone(alone: Any, number: int) -> str:
    body = some_request(number)
    del body["stream"]
    return alone(**body).text


class Tally:
    def __init__(self) -> None:
        self.finished: dict[int, str] = {}
        self.gone = self.refused = 0
        self.errors: list[str] = []


async def ask(address: tuple[str, int], number: int, tally: Tally) -> None:
    body, chance = json.dumps(some_request(number)).encode(), random.Random(-number)
    leaves_after = chance.randrange(1, 20) if chance.random() < 0.1 else None
    reader, writer = await asyncio.open_connection(*address)
    try:
        head = "POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        status = int((await reader.readline()).split()[1])
        if status == 429:
            tally.refused += 1
            return
        if status != 200:
            tally.errors.append(f"{number}: {status}")
            return
        kept, texts, count = b"", [], 0
        while part := await reader.read(1 << 16):
            *events, kept = (kept + part).split(b"\n\n")
            for one in events:
                data = one.rpartition(b"data: ")[2].strip()
                if data.startswith(b"{"):
                    told = json.loads(data)
                    if "error" in told:
                        tally.errors.append(f"{number}: {told}")
                        return
                    texts.append(told["choices"][0]["text"])
                    count += 1
                elif data.startswith(b"[DONE]"):
                    tally.finished[number] = "".join(texts)
            if leaves_after is not None and count >= leaves_after:
                tally.gone += 1
                return
        if number not in tally.finished:
            tally.errors.append(f"{number}: it ended before its end")
    finally:
        writer.close()


async def storm(address: tuple[str, int], seconds: float, first: int, tally: Tally) -> None:
    numbers, end = iter(range(first, first + 1_000_000)), time.monotonic() + seconds

    async def client() -> None:
        while time.monotonic() < end:
            await ask(address, next(numbers), tally)

    await asyncio.gather(*(client() for _ in range(CLIENTS)))


def test_64_clients_and_some_of_them_hang_up(running, folder, alone):
    server = running(folder, rows=32, queue=24, prefix_memory=1 << 24)
    address = server.listener.getsockname()
    warm, tally = Tally(), Tally()
    asyncio.run(storm(address, SECONDS / 4, 0, warm))
    before = resident()
    asyncio.run(storm(address, SECONDS, 1_000_000, tally))
    grown = resident() - before
    print(f"\n{len(tally.finished)} texts, {tally.gone} hung up, {tally.refused} refused, {grown >> 20} MB more")
    assert not tally.errors, tally.errors[:5]
    assert len(tally.finished) > CLIENTS and tally.gone
    [model] = server.pool.awake.values()
    while model.writer.pending:
        time.sleep(0.01)
    assert not model.writer.owner and not model.writer.main.running and not model.writer.main.aside and model.users == 0
    assert grown < 64 << 20  # memory is flat
    other = [number for number, text in tally.finished.items() if text != written_alone(alone, number)]
    print(f"{len(tally.finished) - len(other)} of {len(tally.finished)} texts are those of the same request alone")
    assert not other, other[:5]
