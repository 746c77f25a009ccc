"""Two replicas under Ray Serve, one of them killed under load: everybody gets an answer, and there are two again."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from cutaway.serve.settings import ServeSettings


def replicas() -> set[int]:
    """The processes of the replicas that are alive."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended meanwhile
            if path.read_bytes().startswith(b"ray::ServeReplica:cutaway"):
                found.add(int(path.parent.name))
    return found


def until(done) -> None:
    while not done():
        time.sleep(0.2)


@pytest.mark.slow
def test_one_of_two_replicas_is_killed_under_load_and_nobody_loses_an_answer(tiny_lm, tmp_path):
    ray = pytest.importorskip("ray", reason="the extra `cluster` is not installed (pip install 'cutaway[cluster]')")
    import openai

    from cutaway.serve import cluster
    from cutaway.serve.start import bind

    tiny_lm.save(tmp_path / "tiny")
    with bind() as listener:
        port = listener.getsockname()[1]
    settings = ServeSettings(models=(str(tmp_path / "tiny"),), state=str(tmp_path / "state"), port=port, replicas=2)
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, _temp_dir="/tmp/cutaway-ray")
    try:
        cluster.run(settings, blocking=False, cores=0.5)
        until(lambda: len(replicas()) == 2)
        client = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=10)
        asked = {"model": "tiny", "prompt": "A robot must", "max_tokens": 24, "temperature": 1, "top_p": 1}
        alone = [client.completions.create(**asked, seed=seed).choices[0].text for seed in range(10)]
        found: dict[tuple[int, int], str] = {}
        half = threading.Event()

        def ask(number: int) -> None:
            for seed in range(10):
                found[number, seed] = client.completions.create(**asked, seed=seed).choices[0].text
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
        assert client.completions.create(**asked, seed=1).choices[0].text == alone[1]
        file = client.files.create(file=("x.jsonl", b'{"text": "kept by all"}\n'), purpose="fine-tune")
        for _ in range(6):  # whichever replica is asked
            assert client.files.content(file.id).read() == b'{"text": "kept by all"}\n'
    finally:
        from ray import serve

        serve.shutdown()
        ray.shutdown()
