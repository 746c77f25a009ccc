"""The trainings that are being watched: one for each page, a few at a time, each in a process that ends with its page."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from cutaway.errors import CutawayError
from cutaway.serve.learning.child import COMMAND

AT_ONCE = 4
"""So many pages can train at a time; a training takes one core, and half a gigabyte."""
NAMES = ("untrained", "learned")
"""The two ends of a training, when it is opened in the explorer."""


class Busy(CutawayError):
    """As many pages are training as can."""


class Ended(CutawayError):
    """The training is no more: begin it again, and it goes the same way."""


class Session:
    """One training, and the page it belongs to."""

    def __init__(self, page: str):
        self.page, self.key = page, secrets.token_hex(8)
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, *COMMAND], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        self.lock = threading.Lock()

    def ask(self, ask: str, **given: Any) -> tuple[Any, bytes]:
        """One question at a time; the answer, and the numbers that came with it."""
        with self.lock:
            try:
                assert self.process.stdin is not None and self.process.stdout is not None
                self.process.stdin.write(json.dumps({"ask": ask, **given}).encode() + b"\n")
                self.process.stdin.flush()
                line = self.process.stdout.readline()
                answer = json.loads(line)
                raw = self.process.stdout.read(answer["bytes"])
            except (OSError, ValueError):  # its pipe is closed, or ends in the middle of a line
                raise ended() from None
        if error := answer.get("error"):
            raise CutawayError(error["what"], error["code"], **error["values"])
        return answer["said"], raw

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()


def ended() -> Ended:
    return Ended("This training has ended. Begin it again: it goes the same way.", "learn_ended")


class Sessions:
    """All of them, by key."""

    def __init__(self, at_once: int = AT_ONCE):
        self.at_once = at_once
        self.open: dict[str, Session] = {}
        self.lock = threading.Lock()
        self.folder: Path | None = None

    def begin(self, page: str, text: str, seed: int) -> tuple[str, dict[str, Any]]:
        """A new training for a page, in place of the one it had; its key, and what is known of it."""
        self.leave(page)
        with self.lock:
            if len(self.open) >= self.at_once:
                raise Busy(
                    f"{self.at_once} models are learning here already, which is as many as can. "
                    "Wait until another page is closed.",
                    "learn_busy",
                    most=self.at_once,
                )
            session = Session(page)
            self.open[session.key] = session
        try:
            about, _ = session.ask("begin", text=text, seed=seed)
        except BaseException:
            self.end(session.key)
            raise
        return session.key, about

    def ask(self, key: str, ask: str, **given: Any) -> tuple[Any, bytes]:
        with self.lock:
            session = self.open.get(key)
        if session is None:
            raise ended()
        return session.ask(ask, **given)

    def save(self, key: str, step: int) -> dict[str, str]:
        """The untrained model and the one after a step as folders, by their names; the last two that were asked for."""
        with self.lock:
            self.folder = self.folder or Path(tempfile.mkdtemp(prefix="cutaway-learning-"))
        found = {}
        for name, at in zip(NAMES, (0, step), strict=True):
            found[name] = str(self.folder / name)
            self.ask(key, "save", step=at, folder=found[name])
        return found

    def leave(self, page: str) -> None:
        """What this page was training before is ended."""
        with self.lock:
            keys = [one.key for one in self.open.values() if one.page == page]
        for key in keys:
            self.end(key)

    def end(self, key: str) -> None:
        """The page is gone, or begins another."""
        with self.lock:
            session = self.open.pop(key, None)
        if session is not None:
            session.end()

    def close(self) -> None:
        for key in list(self.open):
            self.end(key)
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
