"""What is told of a request: an id, a line in the log, figures for Prometheus, a span for OpenTelemetry.

No text of a client's is among it, unless `log_prompts` says so: the address without its question, the status, the time.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cutaway.errors import CutawayError
from cutaway.serve.settings import ServeSettings

ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
SECONDS = (0.005, 0.02, 0.1, 0.3, 1, 3, 10, 30, 120, 600)
METHODS = ("GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS")

log = logging.getLogger("cutaway.requests")
Span = Callable[[Scope], AbstractContextManager[Any]]


class Figures:
    """The server's figures, by names that begin with cutaway_."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        labels = ("method", "route", "status")
        self.requests = Counter("cutaway_requests", "Requests answered.", labels, registry=self.registry)
        self.seconds = Histogram(
            "cutaway_request_seconds",
            "Until the last byte.",
            ("route",),
            buckets=SECONDS,
            registry=self.registry,
        )
        self.first = Histogram(
            "cutaway_first_byte_seconds", "Until the first byte of the body.", ("route",), buckets=SECONDS,
            registry=self.registry,
        )  # fmt: skip
        self.running = Gauge("cutaway_requests_running", "Requests being answered.", registry=self.registry)

    def ask(self, name: str, about: str, label: str, values: Callable[[], dict[str, float]]) -> None:
        """Figures that are looked up when they are asked for."""
        self.registry.register(Asked(name, about, label, values))

    def text(self) -> bytes:
        return generate_latest(self.registry)


class Asked:
    def __init__(self, name: str, about: str, label: str, values: Callable[[], dict[str, float]]):
        self.name, self.about, self.label, self.values = name, about, label, values

    def collect(self) -> Iterable[GaugeMetricFamily]:
        family = GaugeMetricFamily(self.name, self.about, labels=[self.label])
        for value, count in self.values().items():
            family.add_metric([value], count)
        return [family]

    def describe(self) -> Iterable[GaugeMetricFamily]:
        return []


class Observe:
    def __init__(self, app: ASGIApp, figures: Figures, span: Span | None = None):
        self.app, self.figures = app, figures
        self.span: Span = span or (lambda scope: nullcontext())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun = time.monotonic()
        given = Headers(scope=scope).get("x-request-id", "")
        name = given if ID.fullmatch(given) else f"req_{secrets.token_hex(12)}"
        status, first = 499, 0.0  # 499: gone before there was an answer

        async def answer(message: Message) -> None:
            nonlocal status, first
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["x-request-id"] = name
            elif message["type"] == "http.response.body" and message.get("body") and not first:
                first = time.monotonic() - begun
            await send(message)

        self.figures.running.inc()
        try:
            with self.span(scope) as span:
                try:
                    await self.app(scope, receive, answer)
                except Exception:
                    status = 500
                    raise
                finally:
                    if span is not None:
                        span.set_attribute("http.response.status_code", status)
                        span.set_attribute("cutaway.request_id", name)
                        span.update_name(f"{scope['method']} {route_of(scope)}")
        finally:
            self.figures.running.dec()
            self.tell(scope, name, status, time.monotonic() - begun, first)

    def tell(self, scope: Scope, name: str, status: int, seconds: float, first: float) -> None:
        route, method = route_of(scope), scope["method"] if scope["method"] in METHODS else "other"
        self.figures.requests.labels(method, route, str(status)).inc()
        self.figures.seconds.labels(route).observe(seconds)
        if first:
            self.figures.first.labels(route).observe(first)
        state = scope.get("state", {})
        said = {
            "request_id": name, "method": method, "route": route, "path": scope["path"][:200], "status": status,
            "seconds": round(seconds, 4), "key": state.get("key"), "client": (scope.get("client") or [None])[0],
        }  # fmt: skip
        if "asked" in state:
            said["asked"] = state["asked"]
        log.info("request", extra={"said": said})


def route_of(scope: Scope) -> str:
    """The address as it was declared, with the names of its parts, so that there are few of them."""
    path = getattr(scope.get("route"), "path", None)
    return path if isinstance(path, str) else "other"


class Lines(logging.Formatter):
    """A JSON object a line, or a line of text."""

    def __init__(self, as_json: bool):
        super().__init__()
        self.as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        said: dict[str, Any] = getattr(record, "said", {})
        if record.exc_info:
            said = {**said, "traceback": self.formatException(record.exc_info)}
        if self.as_json:
            about = {"time": at, "level": record.levelname.lower(), "logger": record.name, "event": record.getMessage()}
            return json.dumps({**about, **{key: one for key, one in said.items() if one is not None}}, default=str)
        rest = " ".join(f"{key}={one}" for key, one in said.items() if one is not None)
        return f"{at} {record.levelname.lower():7} {record.getMessage()} {rest}".replace("\n", "\\n").rstrip()


def set_up_logs(settings: ServeSettings) -> None:
    """Have all that the server says go to standard error, in one form."""
    for name in ("cutaway", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = False
        logger.setLevel(logging.INFO if name == "cutaway" else logging.WARNING)
        if settings.log != "off":
            handler = logging.StreamHandler(sys.stderr)
            handler.setFormatter(Lines(settings.log == "json"))
            logger.addHandler(handler)
        else:
            logger.addHandler(logging.NullHandler())


def spans(address: str, exporter: Any = None) -> Span:
    """Spans of OpenTelemetry, sent to an address; a client's own trace goes on."""
    try:
        from opentelemetry import propagate, trace
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

        provider = TracerProvider(resource=Resource.create({"service.name": "cutaway"}))
        if exporter is None:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

            provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=address)))
        else:
            provider.add_span_processor(SimpleSpanProcessor(exporter))
    except ImportError:
        raise CutawayError("Traces need OpenTelemetry: pip install 'cutaway[telemetry]'.") from None
    tracer = provider.get_tracer("cutaway")

    def span(scope: Scope) -> AbstractContextManager[Any]:
        before = propagate.extract(dict(Headers(scope=scope)))
        attributes = {"http.request.method": scope["method"], "url.path": scope["path"][:200]}
        return tracer.start_as_current_span("request", before, trace.SpanKind.SERVER, attributes)

    return span
