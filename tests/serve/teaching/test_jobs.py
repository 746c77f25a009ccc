"""Teaching over HTTP, with OpenAI's own client: a file, a job, its events and checkpoints, and the model it makes."""

from __future__ import annotations

import json

import openai
import pytest
from safetensors.torch import load_file

from cutaway import train

from .conftest import RECORDS, lines, until


@pytest.fixture
def ours(client) -> openai.OpenAI:
    return openai.OpenAI(base_url="http://127.0.0.1:8000/v1", api_key="none", http_client=client, max_retries=0)


def test_what_is_taught_is_a_model_of_this_server_like_one_trained_at_the_command_line(ours, client, learner, tmp_path):
    file = ours.files.create(file=("birds.jsonl", lines(RECORDS)), purpose="fine-tune")
    assert (file.filename, file.bytes, file.status) == ("birds.jsonl", len(lines(RECORDS)), "processed")
    assert ours.files.content(file.id).read() == lines(RECORDS)
    job = ours.fine_tuning.jobs.create(
        model="learner", training_file=file.id, suffix="birds", seed=3, metadata={"for": "a test"},
        hyperparameters={"n_epochs": 3, "batch_size": 4, "learning_rate_multiplier": 2},
    )  # fmt: skip
    assert (job.status, job.model, job.seed, job.metadata) == ("queued", "learner", 3, {"for": "a test"})
    with pytest.raises(openai.ConflictError, match="still needs"):
        ours.files.delete(file.id)

    done = until(lambda: (now := ours.fine_tuning.jobs.retrieve(job.id)).finished_at and now)
    assert done.status == "succeeded", done.error
    assert done.fine_tuned_model == f"ft:learner:birds:{job.id.removeprefix('ftjob-')[:8]}"
    assert done.trained_tokens > 0 and done.hyperparameters.n_epochs == 3
    folder = client.app.state.pool.find(done.fine_tuned_model).source
    alone = train.run(  # the same at the command line
        tmp_path / "alone", records=RECORDS, task="completion", from_=str(learner), steps=6, batch=4, seed=3,
        held_out=0, sample_every=0, learning_rate=float(f"{2 * learning_rate(learner) / 10:.2e}"),
        cache=str(tmp_path / "cache"),
    ).folder  # fmt: skip
    there, here = load_file(f"{folder}/model.safetensors"), load_file(alone / "model.safetensors")
    assert there.keys() == here.keys() and all((there[name] == here[name]).all() for name in here)

    events = list(ours.fine_tuning.jobs.list_events(job.id, limit=4))  # page by page, the newest first
    metrics = [event.data for event in events if event.type == "metrics"][::-1]
    assert [one["step"] for one in metrics] == [1, 2, 3, 4, 5, 6]
    assert metrics[-1]["train_loss"] < metrics[0]["train_loss"]
    assert "Created" in events[-1].message and "completed" in events[0].message

    kept = ours.fine_tuning.jobs.checkpoints.list(job.id).data
    assert [one.step_number for one in kept] == [5, 4, 3] and kept[0].metrics.train_loss == metrics[4]["train_loss"]
    names = [model.id for model in ours.models.list()]
    assert done.fine_tuned_model in names and kept[0].fine_tuned_model_checkpoint in names

    page = client.get(f"/api/jobs/{job.id}").json()
    assert [step for step, _ in page["loss"]] == [1, 2, 3, 4, 5, 6] and page["step"] == page["steps"] == 6
    [listed] = client.get("/api/jobs").json()
    assert listed["last_loss"] == metrics[-1]["train_loss"] and listed["result"] == done.fine_tuned_model

    ours.models.delete(kept[0].fine_tuned_model_checkpoint)
    assert kept[0].fine_tuned_model_checkpoint not in [model.id for model in ours.models.list()]
    with pytest.raises(openai.PermissionDeniedError, match="was not made here"):
        ours.models.delete("learner")
    assert ours.files.delete(file.id).deleted


def test_a_validation_file_is_measured_at_every_checkpoint_and_changes_no_step(ours, client, tmp_path):
    valid = [{"prompt": "The hen likes", "completion": " the hill."}, {"prompt": "The cat", "completion": " sleeps."}]
    file, other = (
        ours.files.create(file=(name, lines(records)), purpose="fine-tune")
        for name, records in (("train.jsonl", RECORDS), ("valid.jsonl", valid))
    )
    asked = {
        "model": "learner", "training_file": file.id, "seed": 3,
        "hyperparameters": {"n_epochs": 12, "batch_size": 4, "learning_rate_multiplier": 1},
    }  # fmt: skip
    jobs = [ours.fine_tuning.jobs.create(**asked, **more) for more in ({"validation_file": other.id}, {})]
    assert [job.validation_file for job in jobs] == [other.id, None]
    with pytest.raises(openai.ConflictError, match="still needs"):
        ours.files.delete(other.id)
    done = [until(lambda job=job: (now := ours.fine_tuning.jobs.retrieve(job.id)).finished_at and now) for job in jobs]
    assert [one.status for one in done] == ["succeeded"] * 2, done[0].error
    folders = [client.app.state.pool.find(one.fine_tuned_model).source for one in done]
    here, there = (load_file(f"{folder}/model.safetensors") for folder in folders)
    assert all((there[name] == here[name]).all() for name in here)

    events = list(ours.fine_tuning.jobs.list_events(jobs[0].id, limit=100))[::-1]
    measured = {one.data["step"]: one.data["valid_loss"] for one in events if "valid_loss" in one.data}
    assert list(measured) == [3, 6, 9, 12, 15, 18, 21, 24]  # of 24 steps, each told once
    assert [one.data["step"] for one in events if one.type == "metrics"] == list(range(1, 25))
    (tmp_path / "valid.jsonl").write_bytes(lines(valid))
    alone = train.run(
        tmp_path / "alone", files=tmp_path / "valid.jsonl", task="completion", from_=folders[0], steps=1, batch=1,
        validation=tmp_path / "valid.jsonl", learning_rate=1e-9, cache=str(tmp_path / "cache"),
    )  # fmt: skip
    assert measured[24] == pytest.approx(alone.held_loss, rel=1e-4)
    assert f"full validation loss={measured[24]:.3f}" in events[-1].message
    assert any(f"validation loss={measured[9]:.2f}" in one.message for one in events)
    kept = ours.fine_tuning.jobs.checkpoints.list(jobs[0].id).data
    assert {one.step_number: one.metrics.valid_loss for one in kept} == {step: measured[step] for step in (21, 18, 15)}


def learning_rate(learner) -> float:
    from cutaway import checkpoint
    from cutaway.models.architecture import count_parameters
    from cutaway.train.plan import usual_rate

    return usual_rate(count_parameters(checkpoint.read_config(learner)))


def test_what_cannot_be_taught_is_said_by_the_lesson(learner, tmp_path, capsys, monkeypatch):
    from cutaway.serve.teaching import lesson

    monkeypatch.setattr(lesson, "wait_for_the_end", lambda gone: None)
    about = {"base": str(learner), "hyperparameters": {"batch_size": 4}, "seed": 0}
    (tmp_path / lesson.JOB).write_text(json.dumps(about))
    pairs = [{"prompt": "a", "completion": "b"}]
    for name, records, said in [
        (lesson.DATA, [{"question": "why?"}] * 4, "'prompt' and 'completion'"),
        (lesson.DATA, [{"messages": [{"role": "king", "content": "Hm."}]}] * 4, "role 'king'"),
        (lesson.DATA, pairs * 2, "only 2 rows"),
        (lesson.VALIDATION, [{"text": "a b c"}], "both must have the same fields"),
    ]:
        (tmp_path / name).write_bytes(lines(records))
        assert lesson.main(tmp_path) == 2
        told = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert told["event"] == "error" and told["kind"] == "mistake" and said in told["message"], told


NO_RECORDS = [
    (b"", "empty"),
    (b"\n\n", "empty"),
    (b"hello\n", "Line 1 of the file is not JSON"),
    (b'{"prompt": "a", "completion": "b"}\n[1]\n', "Line 2 of the file is not a JSON object"),
    (b'{"prompt": NaN}\n', "NaN"),
    (b'{"prompt": "\xff"}\n', "Line 1 of the file is not UTF-8"),
    (b"[" * 100_000 + b"\n", "Line 1 of the file is not"),
    (b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x02os", "not UTF-8"),  # a pickle
    (b"\x1f\x8b\x08\x00" + b"\x00" * 20, "not UTF-8"),  # gzip
]


def test_a_file_that_holds_no_records_is_not_kept(still, client):
    for content, said in NO_RECORDS:
        answer = client.post("/v1/files", files={"file": ("x.jsonl", content)}, data={"purpose": "fine-tune"})
        assert answer.status_code == 400 and said in answer.json()["error"]["message"], (content[:40], answer.text)
    assert client.get("/v1/files").json()["data"] == []


def test_a_job_is_refused_where_it_could_not_be_done(still, client):
    file = client.post("/v1/files", files={"file": lines(RECORDS)}, data={"purpose": "fine-tune"}).json()["id"]
    other = client.post("/v1/files", files={"file": b"notes"}, data={"purpose": "user_data"}).json()["id"]
    good = {"model": "learner", "training_file": file}
    for status, param, changes in [
        (404, "model", {"model": "gpt-9"}),
        (404, "model", {"model": "../../etc/passwd"}),
        (400, "training_file", {"training_file": "file-0000"}),
        (400, "training_file", {"training_file": "../../../etc/passwd"}),
        (400, "training_file", {"training_file": other}),
        (400, "validation_file", {"validation_file": "file-0000"}),
        (400, "validation_file", {"validation_file": other}),
        (400, "method", {"method": {"type": "dpo"}}),
        (400, "method", {"method": {"type": "reinforcement"}}),
        (400, "integrations", {"integrations": [{"type": "wandb"}]}),
        (400, "suffix", {"suffix": "a/b"}),
        (400, "hyperparameters.n_epochs", {"hyperparameters": {"n_epochs": 0}}),
        (400, "hyperparameters.epochs", {"hyperparameters": {"epochs": 1}}),
    ]:
        answer = client.post("/v1/fine_tuning/jobs", json=good | changes)
        said = answer.json()["error"]
        assert answer.status_code == status and said["param"].startswith(param), (changes, answer.text)
    assert client.get("/v1/fine_tuning/jobs").json()["data"] == []


def test_a_job_is_paused_resumed_and_cancelled(still, client):
    file = client.post("/v1/files", files={"file": lines(RECORDS)}, data={"purpose": "fine-tune"}).json()["id"]
    job = client.post("/v1/fine_tuning/jobs", json={"model": "learner", "training_file": file}).json()["id"]
    at = f"/v1/fine_tuning/jobs/{job}"
    assert client.post(f"{at}/resume").status_code == 400
    assert client.post(f"{at}/pause").json()["status"] == "paused"
    assert client.post(f"{at}/resume").json()["status"] == "queued"
    assert client.post(f"{at}/cancel").json()["status"] == "cancelled"
    again = client.post(f"{at}/cancel")
    assert again.status_code == 400 and "is cancelled" in again.json()["error"]["message"]
    assert client.get(at).json()["finished_at"] is not None
    assert client.get("/v1/fine_tuning/jobs/ftjob-none").status_code == 404


def test_lists_come_in_the_order_they_were_made_even_when_the_clock_jumps(still, client, monkeypatch):
    import time

    made = []
    for now in (2_000_000_000.0, 1_000_000_000.0, 1_500_000_000.0):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        sent = client.post("/v1/files", files={"file": lines(RECORDS)}, data={"purpose": "fine-tune"})
        made.append(sent.json()["id"])
    page = client.get("/v1/files", params={"limit": 2}).json()
    assert [one["id"] for one in page["data"]] == made[:0:-1] and page["has_more"]
    rest = client.get("/v1/files", params={"limit": 2, "after": page["last_id"]}).json()
    assert [one["id"] for one in rest["data"]] == made[:1] and not rest["has_more"]
    first = client.get("/v1/files", params={"order": "asc", "limit": 1}).json()
    assert [one["id"] for one in first["data"]] == made[:1]


def test_the_name_of_a_file_is_shown_and_never_used(still, client, tmp_path):
    for given in ("../../etc/passwd", "..\\..\\evil.jsonl", "a:b|c\u202e", "x" * 300):
        sent = {"file": (given, lines(RECORDS))}
        answer = client.post("/v1/files", files=sent, data={"purpose": "fine-tune"})
        assert answer.status_code == 200 and "/" not in answer.json()["filename"], answer.text
    kept = [path.name for path in (tmp_path / "state" / "storage" / "files").iterdir()]
    assert len(kept) == 4 and all(name.startswith("file-") for name in kept)
