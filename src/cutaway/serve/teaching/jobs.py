"""Fine-tuning jobs in the database: what was asked for, how far it is, and what came of it.

    queued -> running -> succeeded | failed | cancelled
                 |  ^
                 v  |
                paused

Every change of a status is one transaction that looks at the status before, so that two who want different things (a
client that cancels, a training that ends) get one answer.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from sqlalchemy import Select, func, select

from cutaway.serve.store.database import CheckpointRow, Database, EventRow, FileRow, JobRow, now

OPEN = ("validating_files", "queued", "running")
"""Of a job that is to be worked on; one that is paused is left alone until it is resumed."""
ENDED = ("succeeded", "failed", "cancelled")
CHECKPOINTS = 3
"""So many models of a job on its way are kept; older ones make room."""

Row = TypeVar("Row", FileRow, JobRow, EventRow, CheckpointRow)


class Conflict(Exception):
    """The job's status does not allow it."""


class Jobs:
    def __init__(self, database: Database):
        self.database = database

    def create(
        self,
        model: str,
        training_file: str,
        hyperparameters: dict[str, Any],
        suffix: str | None = None,
        seed: int | None = None,
        metadata: dict[str, str] | None = None,
        validation_file: str | None = None,
    ) -> JobRow:
        row = JobRow(
            id=new_id("ftjob"), created_at=now(), finished_at=None, status="queued", model=model,
            training_file=training_file, validation_file=validation_file, suffix=suffix,
            seed=secrets.randbelow(2**31) if seed is None else seed,
            hyperparameters=hyperparameters, notes=dict(metadata or {}), result=None, trained_tokens=None, steps=None,
            error=None,
        )  # fmt: skip
        with self.database.writing() as session:
            session.add(row)
            session.add(message(row.id, f"Created fine-tuning job: {row.id}"))
        return row

    def get(self, job: str) -> JobRow | None:
        with self.database.reading() as session:
            return session.execute(select(JobRow).where(JobRow.id == job)).scalar_one_or_none()

    def listing(self, after: str | None, limit: int) -> tuple[list[JobRow], bool]:
        return page(self.database, select(JobRow), JobRow, after, limit)

    def events(self, job: str, after: str | None, limit: int) -> tuple[list[EventRow], bool]:
        return page(self.database, select(EventRow).where(EventRow.job == job), EventRow, after, limit)

    def checkpoints(self, job: str, after: str | None, limit: int) -> tuple[list[CheckpointRow], bool]:
        return page(self.database, select(CheckpointRow).where(CheckpointRow.job == job), CheckpointRow, after, limit)

    def steps(self, job: str) -> list[dict[str, Any]]:
        """The metrics of every step, in order."""
        wanted = select(EventRow.data).where(EventRow.job == job, EventRow.step.is_not(None)).order_by(EventRow.step)
        with self.database.reading() as session:
            return list(session.execute(wanted).scalars())

    def last_steps(self, jobs: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The metrics of the last step of each of these jobs."""
        last = (
            select(EventRow.job, func.max(EventRow.step).label("step"))
            .where(EventRow.job.in_(jobs), EventRow.step.is_not(None))
            .group_by(EventRow.job)
            .subquery()
        )
        wanted = select(EventRow).join(last, (EventRow.job == last.c.job) & (EventRow.step == last.c.step))
        with self.database.reading() as session:
            return {row.job: row.data for row in session.execute(wanted).scalars()}

    def counts(self) -> dict[str, int]:
        """How many jobs there are, by status."""
        with self.database.reading() as session:
            found = session.execute(select(JobRow.status, func.count()).group_by(JobRow.status)).all()
            return {row.status: row[1] for row in found}

    def open(self) -> list[str]:
        """The jobs that are to be worked on, oldest first."""
        with self.database.reading() as session:
            wanted = select(JobRow.id).where(JobRow.status.in_(OPEN)).order_by(JobRow.number)
            return list(session.execute(wanted).scalars())

    def uses(self, file: str) -> bool:
        """Whether a job that has not ended was given this file."""
        given = (JobRow.training_file == file) | (JobRow.validation_file == file)
        wanted = select(JobRow.id).where(given, JobRow.status.not_in(ENDED))
        with self.database.reading() as session:
            return session.execute(wanted).first() is not None

    def become(self, job: str, status: str, *before: str, said: str = "", level: str = "info", **values: Any) -> JobRow:
        """Give a job another status, if it has one of those `before`; what happened is told among its events."""
        with self.database.writing() as session:
            row = session.execute(select(JobRow).where(JobRow.id == job).with_for_update()).scalar_one()
            if row.status not in before:
                raise Conflict(row.status)
            row.status = status
            for name, value in values.items():
                setattr(row, name, value)
            if status in ENDED:
                row.finished_at = now()
            if said:
                session.add(message(job, said, level))
        return row

    def note(
        self, job: str, steps: Iterable[dict[str, Any]], messages: Iterable[tuple[str, str]] = (), total: int = 0
    ) -> None:
        """Write down steps that were taken (each once, whoever tells of it again) and messages, all at once."""
        by_number = {int(one["step"]): one for one in steps}
        with self.database.writing() as session:
            known = set()
            if by_number:
                asked = select(EventRow.step).where(EventRow.job == job, EventRow.step >= min(by_number))
                known = set(session.execute(asked).scalars())
            if total:
                session.execute(select(JobRow).where(JobRow.id == job)).scalar_one().steps = total
            for number, one in sorted(by_number.items()):
                if number not in known:
                    session.add(event_row(job, step_message(one), step=number, data=one))
            for level, said in messages:
                session.add(message(job, said, level))

    def keep_checkpoint(self, job: str, step: int, model: str, metrics: dict[str, Any]) -> list[CheckpointRow]:
        """Write down a model on the way, and forget the oldest beyond those that are kept: these are given back."""
        with self.database.writing() as session:
            rows = list(
                session.execute(
                    select(CheckpointRow).where(CheckpointRow.job == job).order_by(CheckpointRow.step)
                ).scalars()
            )
            if step in (row.step for row in rows):
                return []
            new = CheckpointRow(id=new_id("ftckpt"), job=job, created_at=now(), step=step, model=model, metrics=metrics)
            session.add(new)
            old = [*rows, new][:-CHECKPOINTS]
            for row in old:
                session.delete(row)
            return old

    def models(self) -> list[tuple[str, str, int]]:
        """Every model that came of a job: its name, its name in the storage, and when it was made."""
        with self.database.reading() as session:
            done = session.execute(select(JobRow).where(JobRow.result.is_not(None)).order_by(JobRow.number)).scalars()
            found = [(str(row.result), stored(row.id), row.finished_at or row.created_at) for row in done]
            rows = session.execute(select(CheckpointRow).order_by(CheckpointRow.number)).scalars()
            return found + [(row.model, stored(row.job, row.step), row.created_at) for row in rows]

    def forget_model(self, name: str) -> str | None:
        """There is no such model any more; where it was kept."""
        with self.database.writing() as session:
            row = session.execute(select(JobRow).where(JobRow.result == name)).scalar_one_or_none()
            if row is not None:
                row.result = None
                return stored(row.id)
            kept = session.execute(select(CheckpointRow).where(CheckpointRow.model == name)).scalar_one_or_none()
            if kept is not None:
                session.delete(kept)
                return stored(kept.job, kept.step)
        return None


class Files:
    """What was uploaded, as the database knows it."""

    def __init__(self, database: Database):
        self.database = database

    def add(self, file: str, name: str, purpose: str, size: int) -> FileRow:
        row = FileRow(id=file, name=name, purpose=purpose, bytes=size, created_at=now())
        with self.database.writing() as session:
            session.add(row)
        return row

    def get(self, file: str) -> FileRow | None:
        with self.database.reading() as session:
            return session.execute(select(FileRow).where(FileRow.id == file)).scalar_one_or_none()

    def listing(self, after: str | None, limit: int, purpose: str | None, oldest: bool) -> tuple[list[FileRow], bool]:
        wanted = select(FileRow)
        if purpose is not None:
            wanted = wanted.where(FileRow.purpose == purpose)
        return page(self.database, wanted, FileRow, after, limit, oldest)

    def remove(self, file: str) -> bool:
        with self.database.writing() as session:
            row = session.execute(select(FileRow).where(FileRow.id == file)).scalar_one_or_none()
            if row is not None:
                session.delete(row)
            return row is not None


def page(
    database: Database,
    wanted: Select[Any],
    kind: type[Row],
    after: str | None,
    limit: int,
    oldest: bool = False,
) -> tuple[list[Row], bool]:
    """Some rows, the newest first, from the one after `after` on; and whether there are more."""
    with database.reading() as session:
        if after is not None:
            number = session.execute(select(kind.number).where(kind.id == after)).scalar_one_or_none()
            if number is None:
                return [], False
            wanted = wanted.where(kind.number > number if oldest else kind.number < number)
        wanted = wanted.order_by(kind.number if oldest else kind.number.desc()).limit(limit + 1)
        rows = list(session.execute(wanted).scalars())
    return rows[:limit], len(rows) > limit


def event_row(job: str, said: str, level: str = "info", step: int | None = None, data: Any = None) -> EventRow:
    return EventRow(
        id=new_id("ftevent"), job=job, created_at=now(), level=level, message=said, step=step, data=data or {}
    )


def step_message(metrics: dict[str, Any]) -> str:
    """A step in words, as OpenAI's events have it."""
    said = f"Step {metrics['step']}/{metrics['total_steps']}: training loss={metrics['train_loss']:.2f}"
    return said + (f", validation loss={metrics['valid_loss']:.2f}" if "valid_loss" in metrics else "")


def message(job: str, said: str, level: str = "info") -> EventRow:
    return event_row(job, said, level)


def new_id(kind: str) -> str:
    return f"{kind}-{secrets.token_hex(12)}"


def stored(job: str, step: int | None = None) -> str:
    """The name, in the storage, of the model that a job made, or had made by this step."""
    return f"models/{job}" if step is None else f"models/{job}-step-{step}"


def model_name(row: JobRow, step: int | None = None) -> str:
    """What the model of a job is called in the API."""
    name = f"ft:{row.model}:{row.suffix or ''}:{row.id.removeprefix('ftjob-')[:8]}"
    return name if step is None else f"{name}:ckpt-step-{step}"
