"""The same jobs, files and keys in PostgreSQL, and bytes through fsspec: a real server, started for the test."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cutaway.serve.store import open_database, open_storage
from cutaway.serve.store.database import Unavailable
from cutaway.serve.store.keys import Keys
from cutaway.serve.store.storage import Storage
from cutaway.serve.teaching.jobs import Conflict, Files, Jobs
from cutaway.serve.teaching.runner import Runner, claimed

from .conftest import RECORDS, lines

BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


@pytest.fixture(scope="module")
def postgres(tmp_path_factory) -> Iterator[str]:
    """The address of a server of its own, on a socket in a folder."""
    pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
    if not BINARIES and not shutil.which("initdb"):
        pytest.skip("there is no PostgreSQL on this machine (apt install postgresql)")
    programs = BINARIES[-1].parent if BINARIES else Path(str(shutil.which("initdb"))).parent
    folder = tmp_path_factory.mktemp("postgres")
    become: list[str] = []
    if os.getuid() == 0:  # which PostgreSQL refuses to run as
        become = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        folder = Path(subprocess.check_output(["mktemp", "-d", "/tmp/cutaway-postgres.XXXXXX"], text=True).strip())
        shutil.chown(folder, "postgres", "postgres")
    data = folder / "data"

    def run(*command: str) -> None:
        subprocess.run([*become, *command], check=True, cwd="/", stdout=subprocess.DEVNULL)

    run(str(programs / "initdb"), "-D", str(data), "-A", "trust", "-U", "cutaway", "--no-sync")
    options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
    run(str(programs / "pg_ctl"), "-D", str(data), "-w", "-o", options, "-l", str(folder / "log"), "start")
    try:
        yield f"postgresql://cutaway@/postgres?host={folder}"
    finally:
        run(str(programs / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def test_jobs_files_and_keys_live_in_postgres(postgres, settings, learner, tmp_path, monkeypatch):
    settings = replace(settings, database=postgres, storage="memory://bucket")
    here, there = open_database(settings), open_database(settings)  # two servers
    key, secret = Keys(here).add("me", ["use"])
    assert Keys(there).find(secret) == key and Keys(there).revoke("me").revoked_at and Keys(here).find(secret) is None
    storage = open_storage(settings)
    assert not storage.local and storage.write("files/file-1.jsonl", io.BytesIO(lines(RECORDS))) == len(lines(RECORDS))
    Files(here).add("file-1", "x.jsonl", "fine-tune", 1)
    assert Files(there).get("file-1").name == "x.jsonl" and b"".join(storage.read("files/file-1.jsonl")) == lines(
        RECORDS
    )

    jobs = Jobs(here)
    job = jobs.create("learner", "file-1", {}, seed=1, metadata={"n": "ü\u0000"}).id
    with claimed(job, here) as ours, claimed(job, there) as theirs:
        assert ours and not theirs
    with claimed(job, there) as theirs:
        assert theirs  # it was given back
    jobs.note(job, [{"step": n, "train_loss": 1.0 / n, "total_steps": 3} for n in (1, 2)], [("info", "hm")], 3)
    jobs.note(job, [{"step": n, "train_loss": 1.0 / n, "total_steps": 3} for n in (2, 3)])
    assert [one["step"] for one in Jobs(there).steps(job)] == [1, 2, 3] and jobs.last_steps([job])[job]["step"] == 3
    assert Jobs(there).uses("file-1") and Jobs(there).counts() == {"queued": 1} and Jobs(there).open() == [job]

    runner = Runner(there, storage, tmp_path / "jobs", lambda name: str(learner), lambda: None)
    finished = tmp_path / "jobs" / job
    (finished / "model").mkdir(parents=True)
    (finished / "model" / "config.json").write_text("{}")
    (finished / "finished.json").write_text('{"steps": 3, "tokens": 5, "loss": 1.0}')
    assert runner._take(job) and jobs.get(job).status == "succeeded"
    [(name, place, _)] = jobs.models()
    other = Storage("memory://bucket", tmp_path / "elsewhere")  # the cache of another machine
    assert name.startswith("ft:learner") and (other.fetch(place) / "config.json").read_text() == "{}"
    with pytest.raises(Conflict, match="succeeded"):
        jobs.become(job, "cancelled", "queued")
    page, more = Jobs(there).events(job, None, 2)
    assert len(page) == 2 and more and Jobs(there).events(job, page[-1].id, 100)[0][0].number < page[-1].number
    here.close()
    there.close()


def test_a_postgres_that_is_away_is_said_so(settings):
    pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
    with pytest.raises(Unavailable, match="does not answer"):
        open_database(replace(settings, database="postgresql://nobody@127.0.0.1:1/none"))
