"""A stand-in for the hub on this machine: a listing, files, a second server for the large ones, and faults on order."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from cutaway.checkpoint import hub

WEIGHTS = bytes(range(256)) * 1200  # 300 kB, and no two neighbouring bytes alike
MODEL = {
    "config.json": b'{"model_type": "gpt2"}',
    "tokenizer.json": b"{}",
    "README.md": b"",
    "model.safetensors": WEIGHTS,
    "pytorch_model.bin": b"a pickle nobody asked for",
    "onnx/decoder_model.onnx": b"not ours",
    "64.tflite": b"nor this",
}
FETCHED = {name: MODEL[name] for name in ("config.json", "tokenizer.json", "README.md", "model.safetensors")}


class StandIn:
    """A hub: models by name, branches by name, what was asked of it, and the faults still to come, by file name."""

    weights, model, fetched = WEIGHTS, MODEL, FETCHED

    def __init__(self):
        self.models: dict[tuple[str, str], dict[str, bytes]] = {}
        self.branches: dict[tuple[str, str], str] = {}
        self.listed: dict[str, object] = {}  # changes to the listing
        self.asked: list[tuple[str, str, str | None, str | None]] = []  # server, path, Range, Authorization
        self.faults: dict[str, list[str]] = {}
        self.over = threading.Event()
        self.servers = [ThreadingHTTPServer(("127.0.0.1", 0), self.handler(kind)) for kind in ("hub", "cdn")]
        self.address, self.cdn = (f"http://127.0.0.1:{server.server_address[1]}" for server in self.servers)
        for server in self.servers:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def add(self, name: str, files: dict[str, bytes] = MODEL, branch: str = "main") -> str:
        commit = hashlib.sha1(repr((name, files)).encode()).hexdigest()
        self.models[name, commit] = files
        self.branches[name, branch] = commit
        return commit

    def home(self, name: str) -> Path:
        """Where our store has the commits of a model."""
        return Path(os.environ["CUTAWAY_HOME"]) / "models" / name.replace("/", "--")

    @staticmethod
    def contents(folder: Path) -> dict[str, bytes]:
        """The files of a model, without our own note on where they came from."""
        return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "cutaway-source.json"}

    @staticmethod
    def large(file: str) -> bool:
        return file.endswith((".safetensors", ".bin"))

    def stop(self) -> None:
        self.over.set()
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def asked_for(self, file: str, server: str = "cdn") -> list[str | None]:
        """The Range of each request for a file."""
        return [span for where, path, span, _ in self.asked if where == server and path.endswith(f"/{file}")]

    def listing(self, name: str, commit: str) -> dict[str, object]:
        siblings = []
        for file, content in self.models[name, commit].items():
            blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            entry = {"rfilename": file, "size": len(content), "blobId": blob}
            if self.large(file):
                sha256 = hashlib.sha256(content).hexdigest()
                entry |= {"blobId": "0" * 40, "lfs": {"sha256": sha256, "size": len(content), "pointerSize": 134}}
            siblings.append(entry)
        return {"id": name, "sha": commit, "siblings": siblings} | self.listed

    def handler(self, kind: str) -> type[BaseHTTPRequestHandler]:
        there = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                with contextlib.suppress(ConnectionError):
                    there.answer(kind, self)

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def answer(self, kind: str, request: BaseHTTPRequestHandler) -> None:
        path = unquote(urlsplit(request.path).path)  # a proxy is asked for whole addresses
        self.asked.append((kind, path, request.headers["Range"], request.headers["Authorization"]))
        file = path.rpartition("/")[2]
        waiting = self.faults.get("listing" if path.startswith("/api/") else file, [])
        at_hub = kind == "hub" and not path.startswith("/api/") and self.large(file)
        fault = "" if at_hub or not waiting else waiting.pop(0)
        if fault.startswith("status "):
            _, code, *why = fault.split(" ", 2)
            return self.reply(request, int(code), b"no", {"X-Error-Code": why[0]} if why else {})
        if path.startswith("/api/models/"):
            name, _, revision = urlsplit(request.path).path.removeprefix("/api/models/").partition("/revision/")
            commit = self.branches.get((name, unquote(revision)), revision)
            if not any(known == name for known, _ in self.models):
                return self.reply(request, 401, b"Invalid username or password.", {})
            if (name, commit) not in self.models or "/" in revision:
                return self.reply(request, 404, b"", {"X-Error-Code": "RevisionNotFound"})
            return self.body(request, json.dumps(self.listing(name, commit)).encode(), fault)
        if at_hub:
            return self.reply(request, 302, b"", {"Location": f"{self.cdn}/blob{path}"})
        name, _, rest = path.removeprefix("/blob").lstrip("/").partition("/resolve/")
        return self.body(request, self.models[name, rest.partition("/")[0]][rest.partition("/")[2]], fault)

    def body(self, request: BaseHTTPRequestHandler, content: bytes, fault: str) -> None:
        start = int((request.headers["Range"] or "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        if fault == "corrupt":
            content = content[:-1] + bytes([content[-1] ^ 1])
        if fault == "no ranges":
            start = 0
        if start >= len(content) > 0:
            return self.reply(request, 416, b"", {})
        headers = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"} if start else {}
        stop = start + int(fault.rpartition(" ")[2]) if " after " in fault else len(content)
        request.send_response(206 if start else 200)
        for header, value in (headers | {"Content-Length": str(len(content) - start)}).items():
            request.send_header(header, value)
        request.end_headers()
        request.wfile.write(content[start:stop])
        if fault.startswith("hang"):
            request.wfile.flush()
            self.over.wait(20)
        return None

    def reply(self, request: BaseHTTPRequestHandler, code: int, content: bytes, headers: dict[str, str]) -> None:
        request.send_response(code)
        for header, value in (headers | {"Content-Length": str(len(content))}).items():
            request.send_header(header, value)
        request.end_headers()
        request.wfile.write(content)


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine with nothing on it: an empty home, no settings of the person who runs the tests, and no waiting."""
    for variable in os.environ:
        if variable.lower().endswith("_proxy") or variable.startswith(("HF_", "HUGGINGFACE_", "CUTAWAY_", "XDG_")):
            monkeypatch.delenv(variable)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CUTAWAY_HOME", str(tmp_path / "store"))
    monkeypatch.setattr(hub, "sleep", lambda seconds: slept.append(seconds))
    slept: list[float] = []
    return slept


@pytest.fixture
def there(machine, monkeypatch):
    """The stand-in, and the address of it where the hub's is expected."""
    stand_in = StandIn()
    monkeypatch.setenv("HF_ENDPOINT", stand_in.address)
    yield stand_in
    stand_in.stop()
