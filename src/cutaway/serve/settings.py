"""What the server is told when it starts: the models, where it listens, and how much it may take at once."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from cutaway.errors import CutawayError

MIB, GIB = 1 << 20, 1 << 30
LOGS = ("json", "text", "off")
ROUTINGS = ("load", "prefix")


@dataclass(frozen=True)
class ServeSettings:
    """Every limit of the server, in one place."""

    models: tuple[str, ...] = ("builtin",)
    """Names of shipped models, folders and files; the first answers requests that name none."""
    host: str = "127.0.0.1"
    """Which address to listen at; 127.0.0.1 is this machine only."""
    port: int = 8000
    """Where to listen; 0 takes any free port."""
    weights: str | None = None
    """Pack the weights: float32, bfloat16, int8, int4; None takes them as the model's file has them."""
    memory: int = 4 * GIB
    """Bytes of weights in memory; beyond it the model used longest ago is put to sleep."""
    prefix_memory: int = GIB // 4
    """Bytes of keys and values, for each model, kept of texts that have ended: who begins alike need not read again."""
    rows: int = 64
    """So many texts are written side by side, by each model."""
    piece: int = 128
    """So many tokens of prompts are read between two tokens of the texts that are being written."""
    turn: int = 128
    """So many tokens a text writes before one that waits may take its place for a while."""
    queue: int = 256
    """So many texts may wait for each model; beyond it the answer is 429."""
    explanations: int = 64
    """So many explanations may wait; beyond it the answer is 429."""
    state: str | None = None
    """The folder for jobs, files and keys. From Python, None: nothing is kept, and there is no teaching."""
    database: str = ""
    """Where all of that is listed: sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME. Default: SQLite."""
    storage: str = ""
    """Where files and new models are kept: a folder, or s3://BUCKET and the like (fsspec). Default: in the state."""
    require_keys: bool = False
    """Ask for an API key on this machine, too. On other addresses than this machine's it is always asked for."""
    origins: tuple[str, ...] = ()
    """Other web pages that may ask this server, like https://example.org. Default: none (no CORS)."""
    body: int = 8 * MIB
    """Bytes that a request may have, uploads left out."""
    upload: int = 512 * MIB
    """Bytes that an uploaded file may have."""
    requests: int = 512
    """So many requests are answered at once; beyond it the answer is 503."""
    receive_seconds: float = 30.0
    """Seconds that a client has to send the head of a request, and again for its body (uploads: ten times as many)."""
    seconds: float = 900.0
    """Seconds that an answer may take, streams included."""
    grace: float = 30.0
    """Seconds that answers have to end when the server is told to stop."""
    log: str = "json"
    """How to log requests, on standard error: json (a line each), text, or off."""
    log_prompts: bool = False
    """Log what clients wrote, too."""
    traces: str = ""
    """Where to send OpenTelemetry traces, like http://localhost:4318/v1/traces. Default: nowhere."""

    replicas: int = 1
    """So many copies of the server, run by Ray Serve if there are more than one (pip install 'cutaway[cluster]')."""
    most_replicas: int = 0
    """Up to so many copies, by the load. Default: as many as replicas, always."""
    routing: str = "load"
    """Which copy gets a request: the one with the fewest (load), or the one that has read its beginning (prefix)."""

    def __post_init__(self) -> None:
        if not self.models:
            raise CutawayError("A server needs a model: name one, or none for the built-in one.")
        for name in ("replicas", "memory", "rows", "piece", "turn", "queue", "explanations"):
            if getattr(self, name) < 1:
                raise CutawayError(f"The server's {name} must be 1 or more, not {getattr(self, name)}.")
        if self.prefix_memory < 0:
            raise CutawayError(f"The server's prefix_memory must be 0 or more, not {self.prefix_memory}.")
        for name in ("body", "upload", "requests", "receive_seconds", "seconds", "grace"):
            if not 0 < getattr(self, name) < float("inf"):
                raise CutawayError(f"The server's {name} must be more than 0, not {getattr(self, name)}.")
        for name, known in (("log", LOGS), ("routing", ROUTINGS)):
            if getattr(self, name) not in known:
                raise CutawayError(
                    f"The server's {name} must be one of {', '.join(known)}, not {getattr(self, name)!r}."
                )

    @property
    def needs_keys(self) -> bool:
        """Whether a client must show a key: always, unless only this machine can ask."""
        return self.require_keys or not is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
