"""Files and models in S3: a real server of that kind (moto), on this machine, asked by two servers of ours."""

from __future__ import annotations

import io
import logging
import secrets
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

import openai
import pytest
from fastapi.testclient import TestClient

from cutaway.serve.server import create_server
from cutaway.serve.store import open_storage
from cutaway.serve.store.database import Unavailable, sqlite_address
from cutaway.serve.store.storage import Storage

from .conftest import RECORDS, lines, until

BASE = "http://127.0.0.1:8000"


@pytest.fixture
def s3(monkeypatch) -> Iterator[str]:
    """The address of an empty bucket."""
    pytest.importorskip("s3fs", reason="s3fs is not installed (pip install 'cutaway[s3]')")
    moto = pytest.importorskip("moto.server", reason="moto is not installed (make complete)")
    import s3fs

    server = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    s3fs.S3FileSystem.clear_instance_cache()
    bucket = f"ours-{secrets.token_hex(4)}"  # moto keeps them for the whole process
    s3fs.S3FileSystem().mkdir(bucket)
    yield f"s3://{bucket}/cutaway"
    s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


def test_what_is_taught_by_one_server_is_a_model_of_the_other_and_all_bytes_are_in_s3(s3, settings, tmp_path):
    shared = replace(settings, storage=s3, database=sqlite_address(tmp_path / "shared.db"))
    with ExitStack() as stack:
        clients = [
            stack.enter_context(TestClient(create_server(replace(shared, state=str(tmp_path / name))), base_url=BASE))
            for name in ("here", "there")
        ]
        here, there = (openai.OpenAI(base_url=f"{BASE}/v1", api_key="none", http_client=one) for one in clients)
        file = here.files.create(file=("x.jsonl", lines(RECORDS)), purpose="fine-tune")
        assert there.files.content(file.id).read() == lines(RECORDS)
        asked = {"training_file": file.id, "seed": 1, "hyperparameters": {"n_epochs": 2, "batch_size": 4}}
        job = here.fine_tuning.jobs.create(model="learner", **asked)
        done = until(lambda: (now := there.fine_tuning.jobs.retrieve(job.id)).finished_at and now)
        assert done.status == "succeeded", done.error
        prompt = {"model": done.fine_tuned_model, "prompt": "The fox", "max_tokens": 8, "temperature": 0}
        for one in (here, there):
            until(lambda one=one: done.fine_tuned_model in [model.id for model in one.models.list()])
        texts = [one.completions.create(**prompt).choices[0].text for one in (here, there)]
        assert texts[0] == texts[1]
        kept = open_storage(shared)
        assert kept.exists(f"files/{file.id}.jsonl") and kept.exists(f"models/{job.id}/model.safetensors")
        assert not (tmp_path / "here" / "storage").exists() and not (tmp_path / "there" / "storage").exists()
        there.models.delete(done.fine_tuned_model)
        until(lambda: done.fine_tuned_model not in [one.id for one in here.models.list()])
        assert not kept.exists(f"models/{job.id}")
        here.files.delete(file.id)
        assert not kept.exists(f"files/{file.id}.jsonl")


def test_another_server_sees_what_was_written_after_it_looked(s3, tmp_path):
    here, there = (Storage(s3, tmp_path / name) for name in ("here", "there"))
    assert not there.exists("files/a") and not there.exists("models/m")
    assert here.write("files/a", io.BytesIO(b"x" * (6 << 20))) == 6 << 20  # in several parts
    assert there.exists("files/a") and len(b"".join(there.read("files/a"))) == 6 << 20
    (tmp_path / "m" / "deep").mkdir(parents=True)
    (tmp_path / "m" / "deep" / "weights").write_bytes(b"w")
    here.keep_folder(tmp_path / "m", "models/m")
    assert (there.fetch("models/m") / "deep" / "weights").read_bytes() == b"w" and not (tmp_path / "m").exists()


def test_many_who_fetch_the_same_folder_at_once_get_the_one_copy(s3, tmp_path):
    """The thread that works on jobs and those that answer requests ask for a new model in the same moment."""
    here, there = (Storage(s3, tmp_path / name) for name in ("here", "there"))
    for number in range(4):
        (tmp_path / "m").mkdir()
        for name in "abcd":
            (tmp_path / "m" / name).write_bytes(name.encode() * 4096)
        here.keep_folder(tmp_path / "m", f"models/m{number}")
        others = [there, there, there, Storage(s3, tmp_path / "there")]  # the last: another process with this cache
        start = threading.Barrier(len(others))

        def fetch(storage: Storage, name=f"models/m{number}", start=start):
            start.wait()
            return storage.fetch(name)

        with ThreadPoolExecutor(len(others)) as pool:
            [copy] = {*pool.map(fetch, others)}
        assert {one.name: one.read_bytes() for one in copy.iterdir()} == {n: n.encode() * 4096 for n in "abcd"}
        assert [one.name for one in copy.parent.iterdir() if "partial" in one.name] == []


def test_a_storage_that_is_away_keeps_nothing_and_says_so(s3, settings, still, monkeypatch, tmp_path):
    import s3fs

    with TestClient(create_server(replace(settings, storage=s3)), base_url=BASE) as client:
        away = Storage(s3, tmp_path)
        away.fs = s3fs.S3FileSystem(endpoint_url="http://127.0.0.1:1", use_listings_cache=False)
        with pytest.raises(Unavailable, match="does not answer"):
            away.exists("files/a")
        [teaching] = [one for one in client.app.state.parts if hasattr(one, "storage")]
        with monkeypatch.context() as patch:
            patch.setattr(teaching.storage, "fs", away.fs)
            answer = client.post("/v1/files", files={"file": lines(RECORDS)}, data={"purpose": "fine-tune"})
        assert answer.status_code == 503 and answer.headers["retry-after"] and "storage" in answer.text
        assert client.get("/v1/files").json()["data"] == []
        again = client.post("/v1/files", files={"file": lines(RECORDS)}, data={"purpose": "fine-tune"})
        assert again.status_code == 200
