"""Works on the jobs, one after the other, each in a process of its own, and writes down what that tells.

A job belongs to whoever holds its lock, and a lock ends with its process: what a server left behind is taken up by the
next one, without any clock. A job ends in this order: its model is on the disk, `finished.json` says so, the model is
in the storage, the database says `succeeded`. Killed anywhere in between, the next one goes on from there.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import shutil
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import text

from cutaway.atomic import write_text
from cutaway.errors import CutawayError
from cutaway.serve.store.database import Database, JobRow, Unavailable
from cutaway.serve.store.storage import NoRoom, Storage
from cutaway.serve.teaching import lesson
from cutaway.serve.teaching.jobs import Conflict, Jobs, model_name, stored
from cutaway.train.lock import held

LOOK = 1.0
"""Seconds between two looks for jobs that another server was told of, and whether this one was cancelled elsewhere."""
TRIES = 3
"""So often a training that was killed, without any progress since, is taken up again."""
PATIENCE = 60.0
"""Seconds that a training has for saving when it is told to stop."""

log = logging.getLogger("cutaway.jobs")


class Runner:
    """A thread that works on jobs. `base` finds what a model's name stands for; `offer` gets every new model."""

    def __init__(
        self,
        database: Database,
        storage: Storage,
        folder: Path,
        base: Callable[[str], str],
        offer: Callable[[], None],
    ):
        self.jobs, self.database, self.storage, self.folder = Jobs(database), database, storage, folder
        self.base, self.offer = base, offer
        self.stopping = threading.Event()
        self.news = threading.Event()
        self.thread = threading.Thread(target=self._work, name="cutaway-jobs", daemon=True)

    def start(self) -> None:
        self.thread.start()

    def wake(self) -> None:
        """There may be something to do."""
        self.news.set()

    def stop(self) -> None:
        """Have the job that is being worked on saved, to be taken up by the next server."""
        self.stopping.set()
        self.news.set()
        if self.thread.is_alive():
            self.thread.join()

    def _work(self) -> None:
        while not self.stopping.is_set():
            self.news.clear()
            try:
                worked = any(self._take(job) for job in self.jobs.open() if not self.stopping.is_set())
                self.offer()
            except Unavailable as error:
                log.warning("jobs wait: %s", error)
                worked = False
            except Exception:  # the next look may go better; the job is still open
                log.exception("a job could not be worked on")
                worked = False
            if not worked:
                self.news.wait(LOOK)

    def _take(self, job: str) -> bool:
        """Work on a job, unless another does; whether it was done."""
        with claimed(job, self.database) as ours:
            row = self.jobs.get(job) if ours else None
            if row is None or row.status not in ("validating_files", "queued", "running"):
                return False
            with suppress(Conflict):
                resumed = row.status == "running" or (self.folder / job / lesson.MODEL).exists()
                said = "Fine-tuning job resumed" if resumed else "Fine-tuning job started"
                self.jobs.become(job, "running", "validating_files", "queued", "running", said=said)
                try:
                    Work(self, row).go()
                except (CutawayError, OSError) as error:
                    if isinstance(error, Unavailable):
                        raise
                    full = isinstance(error, NoRoom) or "No space" in str(error)
                    self.fail(job, str(error), full)
            return True

    def fail(self, job: str, why: str, full: bool = False) -> None:
        """A job that cannot be done has failed; one that only lacks room is paused, and can be resumed."""
        if full:
            self.jobs.become(job, "paused", "running", said=f"{why} Then resume the job.", level="warn")
        else:
            error = {"code": "training_failed", "message": why, "param": None}
            self.jobs.become(job, "failed", "running", said=why, level="error", error=error)
            shutil.rmtree(self.folder / job, ignore_errors=True)
        log.warning("job %s: %s", job, why)


class Work:
    """One job being worked on."""

    def __init__(self, runner: Runner, row: JobRow):
        self.runner, self.jobs, self.row, self.job = runner, runner.jobs, row, row.id
        self.folder = runner.folder / row.id
        self.step = 0
        self.why = ""
        """Why the process was told to end: 'stop', 'pause' or 'cancel'."""

    def go(self) -> None:
        tries, reached = 0, -1
        while not (self.folder / lesson.FINISHED).is_file():
            self.prepare()
            code, error = self.run_process()
            if self.why == "cancel":
                shutil.rmtree(self.folder, ignore_errors=True)
                return
            if self.why == "pause":
                return
            if self.why == "stop":
                self.jobs.become(self.job, "queued", "running", said="The server stops; the job goes on with the next")
                return
            if error is not None:
                self.runner.fail(self.job, error["message"], error["kind"] == "full")
                return
            if code and (self.folder / lesson.FINISHED).is_file() is False:
                tries, reached = (tries + 1, reached) if self.step <= reached else (1, self.step)
                if code > 0 or tries > TRIES:
                    self.runner.fail(self.job, f"The training ended by itself ({ending(code)}). {self.last_words()}")
                    return
                self.jobs.note(self.job, [], [("warn", f"The training was ended ({ending(code)}) and is taken up")])
        self.publish()

    def prepare(self) -> None:
        """The folder with all that the process needs."""
        self.folder.mkdir(parents=True, exist_ok=True)
        given = {lesson.VALIDATION: self.row.validation_file, lesson.DATA: self.row.training_file}
        for name, file in given.items():
            data = self.folder / name
            if file is not None and not data.is_file():
                source = self.runner.storage.fetch(f"files/{file}.jsonl")
                beside = data.with_name(f".{name}.partial")
                beside.unlink(missing_ok=True)
                try:
                    os.link(source, beside)
                except OSError:
                    shutil.copyfile(source, beside)
                beside.rename(data)
        about = {
            "base": self.runner.base(self.row.model),
            "hyperparameters": self.row.hyperparameters,
            "seed": self.row.seed,
        }
        write_text(self.folder / lesson.JOB, json.dumps(about))

    def run_process(self) -> tuple[int, dict[str, Any] | None]:
        """Let it work, and write down what it tells; its exit code, and what it says was wrong."""
        command = [sys.executable, *lesson.COMMAND, str(self.folder)]
        lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
        with (self.folder / "errors.txt").open("wb") as errors:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        threading.Thread(target=read_lines, args=(process, lines), daemon=True).start()
        error, ended = None, False
        heard: list[dict[str, Any]] = []
        try:
            while heard or not ended:
                new, over = gather(lines)
                heard, ended = heard + new, ended or over
                error = next((one for one in new if one["event"] == "error"), error)
                try:
                    self.write_down(heard)
                    heard = []
                    self.obey(process)
                except Unavailable as away:  # kept until the database takes it
                    log.warning("job %s waits: %s", self.job, away)
                    self.runner.stopping.wait(LOOK)
                    if self.runner.stopping.is_set() and ended:
                        break  # the steps are in the training's own record as well
        finally:
            if not ended:
                process.kill()
            with suppress(OSError):
                process.stdin and process.stdin.close()
            code = process.wait()
        return code, error

    def write_down(self, heard: list[dict[str, Any]]) -> None:
        steps = [one for one in heard if one["event"] == "step"]
        steps = [{key: value for key, value in one.items() if key != "event"} for one in steps]
        total = 0
        for one in heard:
            if one["event"] == "begun":
                steps, total = [*one["past"], *steps], one["steps"]
                self.step = max(self.step, one["step"])
        messages = [("info", one["message"]) for one in heard if one["event"] == "message"]
        if steps or messages or total:
            self.jobs.note(self.job, steps, messages, total)
            self.step = max([self.step, *(one["step"] for one in steps)])
        for one in heard:
            if one["event"] == "checkpoint":
                self.keep_checkpoint(one["step"])

    def keep_checkpoint(self, step: int) -> None:
        folder = self.folder / lesson.STEPS / str(step)
        if folder.is_dir():
            self.runner.storage.keep_folder(folder, stored(self.job, step))
        if not self.runner.storage.exists(stored(self.job, step)):
            return
        found = {one["step"]: one for one in self.jobs.steps(self.job)}.get(step, {})
        numbers = {"step": step} | {name: found[name] for name in ("train_loss", "valid_loss") if name in found}
        for old in self.jobs.keep_checkpoint(self.job, step, model_name(self.row, step), numbers):
            self.runner.storage.remove(stored(old.job, old.step))
        self.runner.offer()

    def obey(self, process: subprocess.Popen[bytes]) -> None:
        """End the process if the server stops, or if the job was cancelled or paused, here or elsewhere."""
        if self.why:
            return
        row = self.jobs.get(self.job)
        if row is None or row.status == "cancelled":
            self.why = "cancel"
            process.kill()
        elif row.status == "paused" or self.runner.stopping.is_set():
            self.why = "pause" if row.status == "paused" else "stop"
            if process.stdin:
                process.stdin.close()  # it saves after the step it is at
            threading.Thread(target=kill_late, args=(process,), daemon=True).start()

    def publish(self) -> None:
        """The model into the storage, then the word that it is there."""
        report = json.loads((self.folder / lesson.FINISHED).read_text(encoding="utf-8"))
        model = self.folder / lesson.MODEL
        if model.is_dir():
            shutil.rmtree(model / "training", ignore_errors=True)
            self.runner.storage.keep_folder(model, stored(self.job))
        name, loss = model_name(self.row), report.get("full_valid_loss")
        measured = "" if loss is None else f" (full validation loss={loss:.3f})"
        try:
            self.jobs.become(
                self.job, "succeeded", "running", said=f"The job has successfully completed: {name}{measured}",
                result=name, trained_tokens=report["tokens"],
            )  # fmt: skip
        except Conflict as now:
            if str(now) == "cancelled":  # at the last moment
                self.runner.storage.remove(stored(self.job))
        shutil.rmtree(self.folder, ignore_errors=True)
        self.runner.offer()

    def last_words(self) -> str:
        """The end of what the process wrote on standard error."""
        with suppress(OSError):
            said = (self.folder / "errors.txt").read_text(encoding="utf-8", errors="replace").strip()
            return said.splitlines()[-1][:300] if said else ""
        return ""


def gather(lines: queue.Queue[dict[str, Any] | None]) -> tuple[list[dict[str, Any]], bool]:
    """What has been told since, waiting a little for the first (many steps are one transaction); and if it is all."""
    found: list[dict[str, Any]] = []
    try:
        one = lines.get(timeout=LOOK)
        while one is not None:
            found.append(one)
            one = lines.get_nowait()
        return found, True
    except queue.Empty:
        return found, False


def read_lines(process: subprocess.Popen[bytes], lines: queue.Queue[dict[str, Any] | None]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        with suppress(ValueError):  # killed in the middle of a line
            lines.put(json.loads(line))
    lines.put(None)


def kill_late(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()


def ending(code: int) -> str:
    return f"by signal {-code}" if code < 0 else f"with code {code}"


@contextmanager
def claimed(job: str, database: Database) -> Iterator[bool]:
    """Whether the job is ours alone while this lasts. It is the system's or the database's lock, not a row with a time.

    A database that several machines share has locks of its own; one in a file is shared on one machine only, and its
    locks are files beside it.
    """
    if database.sqlite:
        place = Path(f"{database.engine.url.database}-locks") / job
        place.mkdir(parents=True, exist_ok=True)
        try:
            lock = held(place)
            lock.__enter__()
        except CutawayError:
            yield False
            return
        try:
            yield True
        finally:
            lock.__exit__(None, None, None)
            with suppress(OSError):
                place.rmdir()
    else:
        number = zlib.crc32(job.encode())
        with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            ours = bool(connection.execute(text("SELECT pg_try_advisory_lock(14, :n)"), {"n": number - 2**31}).scalar())
            try:
                yield ours
            finally:
                if ours:
                    connection.execute(text("SELECT pg_advisory_unlock(14, :n)"), {"n": number - 2**31})
