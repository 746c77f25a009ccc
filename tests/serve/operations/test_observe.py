"""What is told of requests: ids, lines of a log without anybody's text, figures, spans; and health."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path

import pytest

from cutaway.serve.operations import observe


@pytest.fixture
def logged(monkeypatch):
    """A function: what was logged since, as JSON."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(observe.Lines(as_json=True))
    observe.log.addHandler(handler)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    observe.log.removeHandler(handler)


SECRET = "the word nobody may log"


def test_a_line_a_request_with_its_id_and_without_its_text(serve, logged):
    client = serve()
    client.post("/v1/completions", json={"prompt": SECRET, "max_tokens": 1}, headers={"X-Request-Id": "mine-7"})
    client.get("/v1/models", params={"text": SECRET}, headers={"X-Request-Id": "not\tplain"})
    client.get(f"/v1/models/{'x' * 1000}")
    first, second, third = logged()
    assert first["request_id"] == "mine-7" and first["route"] == "/v1/completions" and first["status"] == 200
    assert first["seconds"] >= 0 and first["method"] == "POST" and first["level"] == "info"
    assert second["request_id"].startswith("req_") and third["status"] == 404 and len(third["path"]) <= 200
    assert SECRET not in json.dumps(logged())
    assert client.get("/health").headers["x-request-id"].startswith("req_")


def test_texts_are_logged_only_where_that_was_asked_for(serve, logged):
    serve(log_prompts=True).post("/v1/completions", json={"prompt": SECRET, "max_tokens": 1})
    assert logged()[0]["asked"] == SECRET


def test_figures_count_requests_by_route_and_status(serve):
    client = serve()
    client.post("/v1/completions", json={"prompt": "The fox", "max_tokens": 3})
    client.get("/v1/models/none")
    client.get("/nowhere/at/all")
    found = client.get("/metrics").text
    assert 'cutaway_requests_total{method="POST",route="/v1/completions",status="200"} 1.0' in found
    assert 'status="404"} 1.0' in found and "/nowhere" not in found  # a stranger cannot make new names
    assert 'cutaway_models{state="loaded"} 1.0' in found
    assert 'cutaway_texts{figure="tokens_written",model="tiny"} 3.0' in found
    client.post("/v1/files", files={"file": b'{"text": "x"}\n'}, data={"purpose": "fine-tune"})
    assert 'route="/v1/files"' in client.get("/metrics").text


def test_ready_says_no_when_the_database_does_not_answer(serve, settings):
    client = serve()
    assert client.get("/ready").json() == {"status": "ok"} and client.get("/health").json()["status"] == "ok"
    client.app.state.database.engine.dispose()
    path = Path(settings.state) / "cutaway.db"
    for one in path.parent.glob("cutaway.db*"):
        one.unlink()
    path.write_bytes(b"not a database at all, but long enough to look at" * 30)
    answer = client.get("/ready")
    assert answer.status_code == 503 and "database" in answer.json()["status"]
    assert client.get("/health").status_code == 200


def test_a_span_goes_on_with_the_clients_own_trace(settings):
    pytest.importorskip("opentelemetry.sdk", reason="the extra `telemetry` is not installed")
    from fastapi import FastAPI
    from fastapi.testclient import TestClient
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept = InMemorySpanExporter()
    app = FastAPI()
    app.get("/v1/models/{name}")(lambda name: {"name": name})
    app.add_middleware(observe.Observe, figures=observe.Figures(), span=observe.spans("", kept))
    trace = "0af7651916cd43dd8448eb211c80319c"
    TestClient(app).get("/v1/models/x", headers={"traceparent": f"00-{trace}-b7ad6b7169203331-01"})
    [span] = kept.get_finished_spans()
    assert f"{span.context.trace_id:032x}" == trace and span.name == "GET /v1/models/{name}"
    assert span.attributes["http.response.status_code"] == 200 and span.attributes["cutaway.request_id"]
