"""What the server is told when it starts: the models, where it listens, and how much it may take at once."""

from __future__ import annotations

from dataclasses import dataclass

from cutaway.errors import CutawayError

GIB = 1 << 30


@dataclass(frozen=True)
class ServeSettings:
    """Every limit of the server, in one place."""

    models: tuple[str, ...] = ("builtin",)
    """Names of shipped models, folders and files; the first answers requests that name none."""
    host: str = "127.0.0.1"
    port: int = 8000
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

    def __post_init__(self) -> None:
        if not self.models:
            raise CutawayError("A server needs a model: name one, or none for the built-in one.")
        for name in ("memory", "rows", "piece", "turn", "queue", "explanations"):
            if getattr(self, name) < 1:
                raise CutawayError(f"The server's {name} must be 1 or more, not {getattr(self, name)}.")
        if self.prefix_memory < 0:
            raise CutawayError(f"The server's prefix_memory must be 0 or more, not {self.prefix_memory}.")
