"""Replicas under Ray Serve: one is killed under load, more come with the load, and prompts go where they were read."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cutaway.serve.settings import ServeSettings

pytestmark = pytest.mark.slow


def replicas() -> set[int]:
    """The processes of the replicas that are alive."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended meanwhile
            if path.read_bytes().startswith(b"ray::ServeReplica:cutaway:cutaway"):
                found.add(int(path.parent.name))
    return found


def until(done: Callable[[], Any]) -> None:
    while not done():
        time.sleep(0.2)


@pytest.fixture
def cluster(tiny_lm, tmp_path) -> Iterator[Callable[..., Any]]:
    """A function: settings -> a client of a cluster with them, which ends with the test."""
    ray = pytest.importorskip("ray", reason="the extra `cluster` is not installed (pip install 'cutaway[cluster]')")
    import openai
    from ray import serve

    from cutaway.serve import cluster
    from cutaway.serve.start import bind

    tiny_lm.save(tmp_path / "tiny")
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, _temp_dir="/tmp/cutaway-ray")

    def begin(autoscaling: dict[str, float] | None = None, **settings: Any) -> Any:
        with bind() as listener:
            port = listener.getsockname()[1]
        given = {"models": (str(tmp_path / "tiny"),), "state": str(tmp_path / "state"), "port": port, **settings}
        cluster.run(ServeSettings(**given), blocking=False, cores=0.5, autoscaling=autoscaling)
        return openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=10)

    yield begin
    serve.shutdown()
    ray.shutdown()


ASKED = {"model": "tiny", "prompt": "A robot must", "max_tokens": 24, "temperature": 1, "top_p": 1}


@pytest.mark.parametrize("routing", ["load", "prefix"])
def test_one_of_two_replicas_is_killed_under_load_and_nobody_loses_an_answer(cluster, routing):
    client = cluster(replicas=2, routing=routing)
    until(lambda: len(replicas()) == 2)
    alone = [client.completions.create(**ASKED, seed=seed).choices[0].text for seed in range(10)]
    found: dict[tuple[int, int], str] = {}
    half = threading.Event()

    def ask(number: int) -> None:
        for seed in range(10):
            found[number, seed] = client.completions.create(**ASKED, seed=seed).choices[0].text
            if len(found) > 30:
                half.set()

    clients = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for one in clients:
        one.start()
    half.wait()
    killed = min(replicas())
    os.kill(killed, signal.SIGKILL)
    for one in clients:
        one.join()
    assert len(found) == 80 and all(text == alone[seed] for (_, seed), text in found.items())
    until(lambda: len(replicas() - {killed}) == 2)
    assert client.completions.create(**ASKED, seed=1).choices[0].text == alone[1]
    file = client.files.create(file=("x.jsonl", b'{"text": "kept by all"}\n'), purpose="fine-tune")
    for _ in range(6):  # whichever replica is asked
        assert client.files.content(file.id).read() == b'{"text": "kept by all"}\n'


def test_prompts_that_begin_alike_go_to_one_replica_and_others_to_the_other(cluster):
    client = cluster(replicas=2, routing="prefix")
    until(lambda: len(replicas()) == 2)
    kinds = [[n] * 16 for n in range(40, 46)]  # each a block of tokens

    def ask(prompt: list[int]) -> str:
        answer = client.completions.with_raw_response.create(model="tiny", prompt=prompt, max_tokens=2)
        assert len(answer.parse().choices) == 1
        return answer.headers["x-replica"]

    def everywhere() -> bool:  # both are known to the front
        return len({ask([n] * 16) for n in range(100, 104)}) == 2

    until(everywhere)
    homes = {kind[0]: ask(kind) for kind in kinds}
    assert sorted(list(homes.values()).count(one) for one in set(homes.values())) == [3, 3]
    for more in range(5):
        for kind in kinds:
            assert ask([*kind, 60 + more, 70]) == homes[kind[0]]
    with client.completions.create(model="tiny", prompt="A", max_tokens=20, stream=True) as stream:
        assert [part.choices[0].finish_reason for part in stream][-1] in ("stop", "length")


@pytest.mark.parametrize("routing", ["load", "prefix"])
def test_more_replicas_come_with_the_load_and_go_with_it(cluster, routing):
    quick = {"upscale_delay_s": 0.5, "downscale_delay_s": 2, "metrics_interval_s": 0.5, "look_back_period_s": 1}
    client = cluster(replicas=1, most_replicas=2, rows=4, routing=routing, autoscaling=quick)
    until(lambda: len(replicas()) == 1)
    enough, texts = threading.Event(), []

    def ask(seed: int) -> None:
        while not enough.is_set():
            texts.append(client.completions.create(**ASKED, n=8, seed=seed).choices[0].text)

    clients = [threading.Thread(target=ask, args=(seed,)) for seed in range(8)]
    for one in clients:
        one.start()
    until(lambda: len(replicas()) == 2)
    enough.set()
    for one in clients:
        one.join()
    until(lambda: len(replicas()) == 1)
    assert client.completions.create(**ASKED, seed=1).choices[0].text and texts
