"""What happens to the server: killed, a full disk, a locked database. Nothing that was acknowledged is lost."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sqlite3
import subprocess
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from safetensors.torch import load_file

from cutaway import train
from cutaway.serve.store import open_database
from cutaway.serve.store import storage as storage_module

from .conftest import RECORDS, lines, until

JUMPS = """
import itertools, time
right, away = time.time, itertools.cycle([0, 3e8, -3e8, 86400, -3600])
time.time = lambda: right() + next(away)
"""


def test_a_job_and_all_that_was_acknowledged_survive_kill_9_and_a_clock_that_jumps_and_go_on_exactly(
    serving, settings, learner, tmp_path
):
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock" / "sitecustomize.py").write_text(JUMPS)  # at every look, in the server and in the training
    path = os.pathsep.join(filter(None, [str(tmp_path / "clock"), os.environ.get("PYTHONPATH")]))
    with serving(PYTHONPATH=path) as server, ExitStack() as stack:
        ours = openai.OpenAI(base_url=f"{server.address}/v1", api_key="none", max_retries=0)
        file = ours.files.create(file=("x.jsonl", lines(RECORDS)), purpose="fine-tune")
        hyper = {"n_epochs": 250, "batch_size": 4, "learning_rate_multiplier": 1}
        job = ours.fine_tuning.jobs.create(model="learner", training_file=file.id, seed=5, hyperparameters=hyper)
        waiting = ours.fine_tuning.jobs.create(model="learner", training_file=file.id, hyperparameters={"n_epochs": 1})
        asked = {"model": "learner", "prompt": "The fox", "max_tokens": 20, "temperature": 0}
        text = httpx.post(f"{server.address}/v1/completions", json=asked, timeout=None).json()["choices"][0]["text"]
        until(lambda: ours.fine_tuning.jobs.checkpoints.list(job.id).data)
        before = {one.id for one in ours.fine_tuning.jobs.list_events(job.id, limit=1_000)}
        long = {"model": "learner", "prompt": "The", "max_tokens": 240, "n": 16, "stream": True, "temperature": 0}
        streams = [
            stack.enter_context(httpx.stream("POST", f"{server.address}/v1/completions", json=long, timeout=None))
            for _ in range(3)
        ]
        parts = [one.iter_raw(chunk_size=1) for one in streams]
        begun = [next(one) for one in parts]
        server.kill()
        for one, first in zip(parts, begun, strict=True):  # each breaks off, and is seen to
            with pytest.raises(httpx.RemoteProtocolError):
                rest = b"".join([first, *one])
                assert b"[DONE]" not in rest
    with serving() as server:
        ours = openai.OpenAI(base_url=f"{server.address}/v1", api_key="none", max_retries=0)
        assert ours.files.content(file.id).read() == lines(RECORDS)
        assert ours.completions.create(**asked).choices[0].text == text
        assert ours.fine_tuning.jobs.cancel(waiting.id).status == "cancelled"
        done = until(lambda: (now := ours.fine_tuning.jobs.retrieve(job.id)).finished_at and now)
        assert done.status == "succeeded", done.error
        events = list(ours.fine_tuning.jobs.list_events(job.id, limit=1_000))
        assert before <= {one.id for one in events}
        assert any("resumed" in one.message for one in events)
        steps = [one.data["step"] for one in events if one.type == "metrics"]
        assert sorted(steps) == list(range(1, 501))  # each once
        assert done.fine_tuned_model in [one.id for one in ours.models.list()]
        more = asked | {"stream": True, "max_tokens": 240, "stream_options": {"include_usage": True}}
        with httpx.stream("POST", f"{server.address}/v1/completions", json=more, timeout=None) as answer:
            pieces = answer.iter_lines()
            next(pieces)
            server.process.send_signal(signal.SIGTERM)
            rest = [line for line in pieces if line]  # a stream that has begun is finished
        assert rest[-1] == "data: [DONE]" and '"finish_reason":"' in rest[-3], rest[-3:]
        assert server.stop() in (0, -signal.SIGTERM)  # after all was saved
    alone = train.run(
        tmp_path / "alone", records=RECORDS, task="completion", from_=str(learner), steps=500, batch=4, seed=5,
        held_out=0, sample_every=0, learning_rate=learning_rate(learner), cache=str(tmp_path / "cache"),
    ).folder  # fmt: skip
    there = load_file(Path(settings.state) / "storage" / "models" / job.id / "model.safetensors")
    here = load_file(alone / "model.safetensors")
    assert all((there[name] == here[name]).all() for name in here)
    left = [path for name in ("jobs", "cutaway.db-locks") for path in (Path(settings.state) / name).iterdir()]
    assert left == []  # nothing of the jobs that have ended


def learning_rate(learner) -> float:
    from cutaway import checkpoint
    from cutaway.models.architecture import count_parameters
    from cutaway.train.plan import usual_rate

    return float(f"{usual_rate(count_parameters(checkpoint.read_config(learner))) / 10:.2e}")


def test_a_model_whose_files_are_replaced_goes_on_as_it_was(settings, learner, tmp_path, still):
    from dataclasses import replace

    import torch
    from fastapi.testclient import TestClient

    from cutaway import checkpoint
    from cutaway.language_model import LanguageModel
    from cutaway.models.gpt2.model import GPT
    from cutaway.serve.server import create_server
    from cutaway.text.tokenizer import Tokenizer

    folder = tmp_path / "served"
    shutil.copytree(learner, folder)
    asked = {"prompt": "The fox", "max_tokens": 12, "temperature": 0}
    app = create_server(replace(settings, models=(str(folder),)))
    with TestClient(app, base_url="http://127.0.0.1:8000") as client:
        before = client.post("/v1/completions", json=asked).json()["choices"][0]["text"]
        weights = folder / "model.safetensors"
        size = weights.stat().st_size
        with weights.open("r+b") as file:  # in place, as cp does
            file.truncate(100)
            file.truncate(size)
        assert client.post("/v1/completions", json=asked).json()["choices"][0]["text"] == before
        shutil.rmtree(folder)
        assert client.post("/v1/completions", json=asked).json()["choices"][0]["text"] == before
        assert client.get("/ready").status_code == 200
        torch.manual_seed(9)
        other = LanguageModel(GPT(replace(checkpoint.read_config(learner), width=24)), Tokenizer.load(learner))
        other.save(folder)  # another model in its place: it is read when this one has slept
        assert client.post("/v1/completions", json=asked).json()["choices"][0]["text"] == before
        client.app.state.pool.sleep("served")
        after = client.post("/v1/completions", json=asked).json()["choices"][0]["text"]
        assert after == other.generate("The fox", max_tokens=12, temperature=0).text != before
        weights.write_bytes(weights.read_bytes()[:1000])  # half of a file
        client.app.state.pool.sleep("served")
        refused = client.post("/v1/completions", json=asked)
        assert refused.status_code == 503 and refused.json()["error"]["code"] == "model_not_loaded"


def test_a_full_disk_takes_nothing_and_says_so(still, client, settings, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(storage_module.shutil, "copyfileobj", full)
        answer = client.post("/v1/files", files={"file": lines(RECORDS)}, data={"purpose": "fine-tune"})
    assert answer.status_code == 507 and "disk is full" in answer.json()["error"]["message"]
    assert list((Path(settings.state) / "storage" / "files").iterdir()) == []
    assert client.get("/v1/files").json()["data"] == []
    assert client.post("/v1/files", files={"file": lines(RECORDS)}, data={"purpose": "fine-tune"}).status_code == 200


def namespaces() -> bool:
    command = ["unshare", "--map-root-user", "--mount", "true"]
    return bool(shutil.which("unshare")) and subprocess.run(command, capture_output=True).returncode == 0


def test_a_server_whose_disk_is_full_says_so_and_goes_on_exactly_when_there_is_room(serving, learner, tmp_path):
    """A disk of its own, 16 MB of memory, in a namespace of its own."""
    if not namespaces():
        pytest.skip("this user may not have a mount namespace of its own (unshare --map-root-user --mount)")
    state = tmp_path / "state"
    state.mkdir()
    mount = f'mount -t tmpfs -o size=16m none {state} && exec "$@"'
    with serving(before=["unshare", "--map-root-user", "--mount", "sh", "-c", mount, "sh"]) as server:
        disk = Path(f"/proc/{server.process.pid}/root{state}")
        ours = openai.OpenAI(base_url=f"{server.address}/v1", api_key="none", max_retries=0)
        file = ours.files.create(file=("x.jsonl", lines(RECORDS)), purpose="fine-tune")
        hyper = {"n_epochs": 50, "batch_size": 4, "learning_rate_multiplier": 1}
        with (disk / "filler").open("wb") as filler:  # enough is left to begin, and not to end
            filler.write(bytes(shutil.disk_usage(disk).free - 560_000))
        job = ours.fine_tuning.jobs.create(model="learner", training_file=file.id, seed=5, hyperparameters=hyper)
        log = tmp_path / "log"  # of the server: the job has met it
        until(lambda: "disk is full" in log.read_text() or "bytes left" in log.read_text())
        with (disk / "filler").open("ab", buffering=0) as filler, suppress(OSError):
            while True:
                filler.write(bytes(4096))
        with pytest.raises(openai.APIStatusError) as full:
            ours.files.create(file=("y.jsonl", b'{"text": "no room"}\n' * 10_000), purpose="fine-tune")
        assert full.value.status_code == 507 and "disk is full" in str(full.value)
        assert [one.id for one in ours.files.list()] == [file.id]
        asked = {"model": "learner", "prompt": "The fox", "max_tokens": 5}
        assert ours.completions.create(**asked).choices  # who wants no room gets an answer
        (disk / "filler").unlink()

        def ended() -> Any:
            now = ours.fine_tuning.jobs.retrieve(job.id)
            if now.status == "paused":
                ours.fine_tuning.jobs.resume(job.id)
            return now.finished_at and now

        done = until(ended)
        assert done.status == "succeeded", done.error
        assert ours.files.content(file.id).read() == lines(RECORDS)
        events = ours.fine_tuning.jobs.list_events(job.id, limit=1_000)
        assert sorted(one.data["step"] for one in events if one.type == "metrics") == list(range(1, 101))
        there = load_file(disk / "storage" / "models" / job.id / "model.safetensors")
    alone = train.run(
        tmp_path / "alone", records=RECORDS, task="completion", from_=str(learner), steps=100, batch=4, seed=5,
        held_out=0, sample_every=0, learning_rate=learning_rate(learner), cache=str(tmp_path / "cache"),
    ).folder  # fmt: skip
    here = load_file(alone / "model.safetensors")
    assert all((there[name] == here[name]).all() for name in here)


def test_a_database_without_room_takes_nothing_and_says_so(still, client, settings, monkeypatch):
    from sqlalchemy import event

    file = client.post("/v1/files", files={"file": lines(RECORDS)}, data={"purpose": "fine-tune"}).json()["id"]
    asked = {"model": "learner", "training_file": file, "metadata": {f"k{n}": "v" * 500 for n in range(16)}}
    engine = client.app.state.database.engine
    pages = sqlite3.connect(Path(settings.state) / "cutaway.db").execute("PRAGMA page_count").fetchone()[0]

    def small(connection, _):
        connection.execute(f"PRAGMA max_page_count = {pages}")

    event.listen(engine, "connect", small)
    answer = client.post("/v1/fine_tuning/jobs", json=asked)
    assert answer.status_code == 507 and "disk is full" in answer.json()["error"]["message"], answer.text
    event.remove(engine, "connect", small)
    assert client.get("/v1/fine_tuning/jobs").json()["data"] == []
    assert client.post("/v1/fine_tuning/jobs", json=asked).status_code == 200


def test_a_locked_database_is_waited_for_and_then_answers_503_and_nothing_is_written(
    still, client, settings, monkeypatch
):
    from cutaway.serve.store import database

    other = sqlite3.connect(Path(settings.state) / "cutaway.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    client.app.state.database.engine.dispose()
    monkeypatch.setattr(database, "WAIT", 0.05)  # of connections made from now on
    answer = client.post("/v1/files", files={"file": lines(RECORDS)}, data={"purpose": "fine-tune"})
    assert answer.status_code == 503 and answer.headers["retry-after"] and "busy" in answer.json()["error"]["message"]
    assert list((Path(settings.state) / "storage" / "files").iterdir()) == []
    assert client.get("/v1/files").json()["data"] == []  # reading goes on
    assert client.get("/ready").status_code == 200
    other.execute("ROLLBACK")
    assert client.post("/v1/files", files={"file": lines(RECORDS)}, data={"purpose": "fine-tune"}).status_code == 200


def test_a_database_of_an_older_cutaway_is_taken_over_with_all_its_rows(settings):
    from cutaway.serve.teaching.jobs import Jobs

    database = open_database(settings)
    job = Jobs(database).create("learner", "file-1", {"n_epochs": 2}, seed=1).id
    database.close()
    with sqlite3.connect(Path(settings.state) / "cutaway.db") as older:
        older.execute("ALTER TABLE jobs DROP COLUMN validation_file")
    database = open_database(settings)
    row = Jobs(database).get(job)
    assert (row.hyperparameters, row.seed, row.validation_file) == ({"n_epochs": 2}, 1, None)
    assert Jobs(database).create("learner", "file-1", {}, validation_file="file-2").validation_file == "file-2"
    database.close()


def test_a_training_goes_on_while_the_database_is_locked_and_all_its_steps_are_told(serving, settings):
    with serving() as server:
        ours = openai.OpenAI(base_url=f"{server.address}/v1", api_key="none", max_retries=0, timeout=None)
        file = ours.files.create(file=("x.jsonl", lines(RECORDS)), purpose="fine-tune")
        hyper = {"n_epochs": 50, "batch_size": 4}
        job = ours.fine_tuning.jobs.create(model="learner", training_file=file.id, hyperparameters=hyper)
        until(lambda: ours.fine_tuning.jobs.retrieve(job.id).status == "running")
        other = sqlite3.connect(Path(settings.state) / "cutaway.db", isolation_level=None, timeout=60)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(openai.InternalServerError) as busy:  # after it has waited for some seconds
            ours.fine_tuning.jobs.create(model="learner", training_file=file.id)
        assert busy.value.status_code == 503 and busy.value.response.headers["retry-after"]
        assert ours.completions.create(model="learner", prompt="The fox", max_tokens=5).choices
        other.execute("ROLLBACK")
        other.close()
        done = until(lambda: (now := ours.fine_tuning.jobs.retrieve(job.id)).finished_at and now)
        assert done.status == "succeeded", done.error
        events = ours.fine_tuning.jobs.list_events(job.id, limit=1_000)
        assert sorted(one.data["step"] for one in events if one.type == "metrics") == list(range(1, 101))
        assert [one.id for one in ours.fine_tuning.jobs.list()] == [job.id]


@pytest.fixture
def work(settings, learner, tmp_path):
    """A job whose process says what the test wants, and the runner that works on it."""
    import io

    from cutaway.serve.store import open_storage
    from cutaway.serve.teaching.jobs import Files
    from cutaway.serve.teaching.runner import Runner

    database, storage = open_database(settings), open_storage(settings)
    storage.write("files/file-1.jsonl", io.BytesIO(lines(RECORDS)))
    Files(database).add("file-1", "x", "fine-tune", 1)
    runner = Runner(database, storage, Path(settings.state) / "jobs", lambda name: str(learner), lambda: None)
    job = runner.jobs.create("learner", "file-1", {}, seed=1)
    yield runner, job.id
    database.close()


def pretend(monkeypatch, tmp_path, program: str) -> None:
    """Have this program stand for the training."""
    from cutaway.serve.teaching import runner

    script = tmp_path / "lesson.py"
    script.write_text("import json, os, sys, pathlib\nfolder = pathlib.Path(sys.argv[1])\n"
                      "def tell(**one): print(json.dumps(one), flush=True)\n" + program)  # fmt: skip
    monkeypatch.setattr(runner.lesson, "COMMAND", [str(script)])


STEP = "tell(event='step', step={0}, train_loss=1.0, total_steps=3)\n"
END = """
(folder / 'model').mkdir(exist_ok=True); (folder / 'model' / 'config.json').write_text('{}')
(folder / 'finished.json').write_text(json.dumps({'steps': 3, 'tokens': 7, 'loss': 1.0}))
"""


def test_steps_are_kept_while_the_database_is_locked(work, monkeypatch, tmp_path):
    from cutaway.serve.store.database import Unavailable

    runner, job = work
    pretend(monkeypatch, tmp_path, "".join(STEP.format(n) for n in (1, 2, 3)) + END)
    note, failed = runner.jobs.note, []

    def locked(*args):
        if len(failed) < 2:
            failed.append(args)
            raise Unavailable("The database is busy")
        note(*args)

    monkeypatch.setattr(runner.jobs, "note", locked)
    monkeypatch.setattr(runner.stopping, "wait", lambda seconds: None)
    assert runner._take(job)
    assert [one["step"] for one in runner.jobs.steps(job)] == [1, 2, 3] and len(failed) == 2
    assert runner.jobs.get(job).status == "succeeded" and runner.jobs.get(job).trained_tokens == 7


def test_a_training_that_is_killed_is_taken_up_again_as_long_as_it_gets_on(work, monkeypatch, tmp_path):
    runner, job = work
    count = "n = len(list(folder.glob('try*'))) + 1; (folder / f'try{n}').touch()\n"
    dies = "if n < 3: tell(event='step', step=n, train_loss=1.0, total_steps=3); os.kill(os.getpid(), 9)\n"
    pretend(monkeypatch, tmp_path, count + dies + STEP.format(3) + END)
    assert runner._take(job) and runner.jobs.get(job).status == "succeeded"
    assert [one["step"] for one in runner.jobs.steps(job)] == [1, 2, 3]
    stuck = runner.jobs.create("learner", "file-1", {}, seed=1).id
    pretend(monkeypatch, tmp_path, "os.kill(os.getpid(), 9)")
    assert runner._take(stuck) and runner.jobs.get(stuck).status == "failed"
    assert "signal 9" in runner.jobs.get(stuck).error["message"]


def test_a_training_without_room_is_paused_with_all_it_has(work, monkeypatch, tmp_path):
    runner, job = work
    full = "tell(event='error', kind='full', message='The disk is full: make room.'); sys.exit(2)"
    pretend(monkeypatch, tmp_path, STEP.format(1) + full)
    assert runner._take(job) and runner.jobs.get(job).status == "paused"
    assert (runner.folder / job / "training.jsonl").is_file()
    runner.jobs.become(job, "queued", "paused")
    pretend(monkeypatch, tmp_path, STEP.format(2) + END)
    assert runner._take(job) and runner.jobs.get(job).status == "succeeded"


def test_a_server_killed_between_the_model_and_the_word_of_it_says_the_word_later(work, monkeypatch, tmp_path):
    runner, job = work
    pretend(monkeypatch, tmp_path, END)
    with monkeypatch.context() as patch:
        become = runner.jobs.become

        def killed(job, status, *before, **more):
            if status == "succeeded":
                raise KeyboardInterrupt
            return become(job, status, *before, **more)

        patch.setattr(runner.jobs, "become", killed)
        with pytest.raises(KeyboardInterrupt):
            runner._take(job)
    assert runner.jobs.get(job).status == "running" and runner.storage.exists(f"models/{job}")
    pretend(monkeypatch, tmp_path, "sys.exit('it is not run again')")
    assert runner._take(job) and runner.jobs.get(job).status == "succeeded"
    assert runner.storage.exists(f"models/{job}")


def test_a_job_is_worked_on_by_one_server_only(work):
    from cutaway.serve.teaching.runner import claimed

    runner, job = work
    with claimed(job, runner.database) as ours:
        assert ours and not runner._take(job)
    assert runner.jobs.get(job).status == "queued"


def test_cancelling_ends_the_process_and_frees_its_folder(work, monkeypatch, tmp_path):
    runner, job = work
    pretend(monkeypatch, tmp_path, STEP.format(1) + "sys.stdin.read(); sys.exit(0)")
    note = runner.jobs.note

    def then_cancel(*args):
        note(*args)
        runner.jobs.become(job, "cancelled", "running")

    monkeypatch.setattr(runner.jobs, "note", then_cancel)
    assert runner._take(job)
    assert runner.jobs.get(job).status == "cancelled" and not (runner.folder / job).exists()


def test_a_server_that_stops_leaves_the_job_to_the_next(work, monkeypatch, tmp_path):
    runner, job = work
    pretend(monkeypatch, tmp_path, STEP.format(1) + "sys.stdin.read(); tell(event='stopped', step=1)")
    runner.stopping.set()
    assert runner._take(job) and runner.jobs.get(job).status == "queued"
    assert (runner.folder / job).is_dir()
