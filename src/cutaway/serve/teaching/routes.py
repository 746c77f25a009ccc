"""`/v1/files` and `/v1/fine_tuning/jobs`, as OpenAI's clients speak them, and `/api/jobs` for the page of jobs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import IO, Annotated, Any, Literal

from fastapi import APIRouter, File, Form, Path, Query, UploadFile
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from cutaway.errors import CutawayError
from cutaway.serve.openai.errors import ApiError
from cutaway.serve.store.database import CheckpointRow, EventRow, FileRow, JobRow
from cutaway.serve.store.storage import Storage
from cutaway.serve.teaching.jobs import Conflict, Files, Jobs, new_id
from cutaway.serve.teaching.records import check_records

PURPOSES = ("fine-tune", "user_data")
CANCELLABLE = ("validating_files", "queued", "running", "paused")
POINTS = 400
"""So many points of a loss curve are enough to draw it."""

Id = Annotated[str, Path(max_length=64, pattern=r"^[A-Za-z0-9-]+$")]
After = Annotated[str | None, Query(pattern=r"^[A-Za-z0-9-]{1,64}$", description="The last one of the page before.")]
Limit = Annotated[int, Query(ge=1, le=10_000)]
Auto = Literal["auto"]


class Hyperparameters(BaseModel):
    """How to train; what is `auto` or left out is chosen to fit."""

    model_config = ConfigDict(extra="forbid")
    n_epochs: Auto | Annotated[int, Field(ge=1, le=1_000)] = "auto"
    batch_size: Auto | Annotated[int, Field(ge=1, le=4_096)] = "auto"
    learning_rate_multiplier: Auto | Annotated[float, Field(gt=0, le=1_000, allow_inf_nan=False)] = "auto"


class Supervised(BaseModel):
    hyperparameters: Hyperparameters | None = None


class Method(BaseModel):
    type: Annotated[str, Field(max_length=64)] = "supervised"
    supervised: Supervised | None = None


class NewJob(BaseModel):
    """A fine-tuning job to be created."""

    model: Annotated[str, Field(min_length=1, max_length=255)]
    training_file: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,64}$")]
    validation_file: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,64}$")] | None = None
    hyperparameters: Hyperparameters | None = None
    method: Method | None = None
    suffix: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    integrations: list[Any] | None = None
    metadata: (
        Annotated[
            dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]], Field(max_length=16)
        ]
        | None
    ) = None


def file_routes(files: Files, jobs: Jobs, storage: Storage, largest: int) -> APIRouter:
    api = APIRouter(prefix="/v1/files", tags=["files"])

    @api.post("")
    def upload(
        file: Annotated[UploadFile, File(description="JSON objects, one a line.")],
        purpose: Annotated[str, Form(max_length=64)],
    ) -> dict[str, Any]:
        """Keep a file: what to learn, one JSON object a line."""
        if purpose not in PURPOSES:
            raise ApiError(400, f"The purpose must be {' or '.join(PURPOSES)}, not {purpose!r:.80}.", "purpose")
        if file.size is not None and file.size > largest:
            raise ApiError(413, f"The file has {file.size:,} bytes, and at most {largest:,} are taken.", "file")
        content: IO[bytes] = file.file
        if purpose == "fine-tune":
            try:
                check_records(content)
            except CutawayError as error:
                raise ApiError(400, str(error), "file", "invalid_file_format") from None
        content.seek(0)
        name = new_id("file")
        size = storage.write(f"files/{name}.jsonl", content)
        try:
            return told_file(files.add(name, shown_name(file.filename), purpose, size))
        except BaseException:
            storage.remove(f"files/{name}.jsonl")  # nobody was told of it
            raise

    @api.get("")
    def listing(
        purpose: Annotated[str | None, Query(pattern=r"^[a-z_-]{1,64}$")] = None,
        after: After = None,
        limit: Limit = 10_000,
        order: Literal["asc", "desc"] = "desc",
    ) -> dict[str, Any]:
        """The files, the newest first."""
        return listed(*files.listing(after, limit, purpose, order == "asc"), told_file)

    def found(file_id: str) -> FileRow:
        row = files.get(file_id)
        if row is None:
            raise ApiError(404, f"There is no file {file_id}.", "file_id", "file_not_found")
        return row

    @api.get("/{file_id}")
    def one(file_id: Id) -> dict[str, Any]:
        return told_file(found(file_id))

    @api.get("/{file_id}/content")
    def content(file_id: Id) -> StreamingResponse:
        """What was uploaded, as it was."""
        row = found(file_id)
        headers = {"Content-Disposition": "attachment", "Content-Length": str(row.bytes)}
        return StreamingResponse(storage.read(f"files/{row.id}.jsonl"), 200, headers, "application/octet-stream")

    @api.delete("/{file_id}")
    def remove(file_id: Id) -> dict[str, Any]:
        row = found(file_id)
        if jobs.uses(row.id):
            raise ApiError(409, f"A fine-tuning job still needs the file {row.id}: cancel it first.", "file_id")
        files.remove(row.id)
        storage.remove(f"files/{row.id}.jsonl")
        return {"id": row.id, "object": "file", "deleted": True}

    return api


def job_routes(
    jobs: Jobs,
    files: Files,
    check_model: Callable[[str], object],
    wake: Callable[[], None],
    offer: Callable[[], None],
) -> APIRouter:
    api = APIRouter(prefix="/v1/fine_tuning/jobs", tags=["fine-tuning"])

    @api.post("")
    def create(body: NewJob) -> dict[str, Any]:
        """Teach a model of this server the records of a file; the result is another model of this server."""
        check_model(body.model)
        if body.integrations:
            raise ApiError(400, "There are no integrations here: leave them out.", "integrations")
        if body.method is not None and body.method.type != "supervised":
            raise ApiError(
                400,
                f"The method {body.method.type!r} is not known here, only 'supervised': "
                "records with the answers that are to be learned.",
                "method",
                "unsupported_method",
            )
        given = {"training_file": body.training_file, "validation_file": body.validation_file}
        for param, name in given.items():
            file = files.get(name) if name is not None else None
            if name is not None and (file is None or file.purpose != "fine-tune"):
                said = f"There is no file {name!r} with the purpose 'fine-tune'."
                raise ApiError(400, said, param, "file_not_found")
        chosen = body.method.supervised.hyperparameters if body.method and body.method.supervised else None
        chosen = chosen or body.hyperparameters or Hyperparameters()
        row = jobs.create(
            body.model, body.training_file, chosen.model_dump(), body.suffix, body.seed, body.metadata,
            body.validation_file,
        )  # fmt: skip
        wake()
        return told_job(row)

    @api.get("")
    def listing(after: After = None, limit: Limit = 20) -> dict[str, Any]:
        """The jobs, the newest first."""
        return listed(*jobs.listing(after, limit), told_job)

    def found(job_id: str) -> JobRow:
        row = jobs.get(job_id)
        if row is None:
            raise ApiError(404, f"There is no fine-tuning job {job_id}.", "job_id", "fine_tune_not_found")
        if row.result is not None:
            offer()  # whoever is told of a model can ask it
        return row

    def become(job_id: str, status: str, *before: str, said: str) -> dict[str, Any]:
        found(job_id)
        try:
            row = jobs.become(job_id, status, *before, said=said)
        except Conflict as now:
            raise ApiError(400, f"The job {job_id} is {now}: that cannot be done with it any more.", "job_id") from None
        wake()
        return told_job(row)

    @api.get("/{job_id}")
    def one(job_id: Id) -> dict[str, Any]:
        return told_job(found(job_id))

    @api.post("/{job_id}/cancel")
    def cancel(job_id: Id) -> dict[str, Any]:
        """End a job for good."""
        return become(job_id, "cancelled", *CANCELLABLE, said="Fine-tuning job cancelled")

    @api.post("/{job_id}/pause")
    def pause(job_id: Id) -> dict[str, Any]:
        """Have a job save what it has learned, and wait."""
        return become(job_id, "paused", "validating_files", "queued", "running", said="Fine-tuning job paused")

    @api.post("/{job_id}/resume")
    def resume(job_id: Id) -> dict[str, Any]:
        """Go on with a job that was paused, from where it was."""
        return become(job_id, "queued", "paused", said="Fine-tuning job is to be resumed")

    @api.get("/{job_id}/events")
    def events(job_id: Id, after: After = None, limit: Limit = 20) -> dict[str, Any]:
        """What happened in a job, the newest first: messages, and the loss of every step."""
        return listed(*jobs.events(found(job_id).id, after, limit), told_event)

    @api.get("/{job_id}/checkpoints")
    def checkpoints(job_id: Id, after: After = None, limit: Limit = 10) -> dict[str, Any]:
        """The models on the way, each a model of this server, the newest first."""
        return listed(*jobs.checkpoints(found(job_id).id, after, limit), told_checkpoint)

    return api


def page_routes(jobs: Jobs, wake: Callable[[], None]) -> APIRouter:
    """What the explorer's page of jobs asks."""
    api = APIRouter(prefix="/api/jobs", tags=["explorer"])

    @api.get("")
    def listing() -> list[dict[str, Any]]:
        """The newest jobs, and how far each is."""
        rows, _ = jobs.listing(None, 100)
        last = jobs.last_steps([row.id for row in rows])
        return [about(row, last.get(row.id, {})) for row in rows]

    @api.get("/{job_id}")
    def one(job_id: Id) -> dict[str, Any]:
        """One job with its loss, in few enough points to draw, and what was said of it."""
        row = jobs.get(job_id)
        if row is None:
            raise CutawayError(f"There is no job {job_id}.", "missing")
        steps = jobs.steps(job_id)
        said = [told_event(one) for one in jobs.events(job_id, None, 10_000)[0] if one.step is None]
        points = thinned([(one["step"], one["train_loss"]) for one in steps], POINTS)
        return {**about(row, steps[-1] if steps else {}), "loss": points, "messages": said[:50]}

    @api.post("/{job_id}/cancel")
    def cancel(job_id: Id) -> dict[str, Any]:
        """End a job for good."""
        if jobs.get(job_id) is None:
            raise CutawayError(f"There is no job {job_id}.", "missing")
        try:
            row = jobs.become(job_id, "cancelled", *CANCELLABLE, said="Fine-tuning job cancelled")
        except Conflict as now:
            raise CutawayError(f"The job {job_id} is {now}.") from None
        wake()
        return about(row, {})

    return api


def about(row: JobRow, last: dict[str, Any]) -> dict[str, Any]:
    """A job as the page shows it."""
    return {
        **{name: getattr(row, name) for name in ("id", "model", "status", "created_at", "finished_at", "steps")},
        "result": row.result, "error": row.error and row.error["message"],
        "step": last.get("step", 0), "last_loss": last.get("train_loss"), "learning_rate": last.get("learning_rate"),
        "tokens_per_second": last.get("tokens_per_second"),
    }  # fmt: skip


def thinned(points: list[tuple[int, float]], most: int) -> list[tuple[int, float]]:
    """Means over equal stretches, so that no more than so many are left; the first and the last stay as they are."""
    if len(points) <= most:
        return points
    inner, count = points[1:-1], most - 2
    made = []
    for number in range(count):
        part = inner[number * len(inner) // count : (number + 1) * len(inner) // count]
        made.append((part[len(part) // 2][0], sum(loss for _, loss in part) / len(part)))
    return [points[0], *made, points[-1]]


def listed(rows: list[Any], more: bool, told: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    data = [told(row) for row in rows]
    ends = {"first_id": data[0]["id"], "last_id": data[-1]["id"]} if data else {"first_id": None, "last_id": None}
    return {"object": "list", "data": data, "has_more": more, **ends}


def shown_name(given: str | None) -> str:
    """A file's name as its owner gave it, without any path; it is shown, and never used as one."""
    name = PurePosixPath((given or "").replace("\\", "/")).name
    return re.sub(r"[^\w .()+,@=-]", "_", name)[:255] or "upload"


def told_file(row: FileRow) -> dict[str, Any]:
    return {
        "id": row.id, "object": "file", "bytes": row.bytes, "created_at": row.created_at, "filename": row.name,
        "purpose": row.purpose, "status": "processed", "status_details": None, "expires_at": None,
    }  # fmt: skip


def told_job(row: JobRow) -> dict[str, Any]:
    return {
        "id": row.id, "object": "fine_tuning.job", "created_at": row.created_at, "finished_at": row.finished_at,
        "status": row.status, "model": row.model, "fine_tuned_model": row.result, "error": row.error,
        "training_file": row.training_file, "validation_file": row.validation_file, "result_files": [],
        "seed": row.seed, "hyperparameters": row.hyperparameters, "trained_tokens": row.trained_tokens,
        "organization_id": "cutaway",
        "method": {"type": "supervised", "supervised": {"hyperparameters": row.hyperparameters}},
        "user_provided_suffix": row.suffix, "metadata": row.notes or None, "integrations": [], "estimated_finish": None,
    }  # fmt: skip


def told_event(row: EventRow) -> dict[str, Any]:
    return {
        "id": row.id, "object": "fine_tuning.job.event", "created_at": row.created_at, "level": row.level,
        "message": row.message, "type": "message" if row.step is None else "metrics", "data": row.data,
    }  # fmt: skip


def told_checkpoint(row: CheckpointRow) -> dict[str, Any]:
    return {
        "id": row.id, "object": "fine_tuning.job.checkpoint", "created_at": row.created_at,
        "fine_tuning_job_id": row.job, "step_number": row.step, "fine_tuned_model_checkpoint": row.model,
        "metrics": row.metrics,
    }  # fmt: skip
