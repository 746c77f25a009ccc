"""Blocks -> pieces on all cores: processes of our own that load the tokenizer themselves and know nothing of torch.

They are started as `python -c`, not by multiprocessing: that would run the user's script again in each of them.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from cutaway.errors import CutawayError
from cutaway.tasks.task import Task
from cutaway.train.data.blocks import Block
from cutaway.train.data.pieces import Method, Piece, Summary
from cutaway.train.data.sources import Source

START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from cutaway.train.data.workers import serve; serve()"


@dataclass(frozen=True)
class Done:
    """A block that has become a piece."""

    number: int
    consumed: int
    path: Path
    summary: Summary


def importable(task: Task) -> bool:
    """Whether a process of its own could make this task: a task from outside may stand in the user's script."""
    kind = type(task)
    found = getattr(sys.modules.get(kind.__module__), kind.__qualname__, None)
    return found is kind and kind.__module__ != "__main__"


def work(
    blocks: Iterator[Block], name: Callable[[Block], str], method: Method, folder: Path, workers: int
) -> Iterator[Done]:
    """Have every block's piece in the folder, and hear of each as it is done, in any order.

    A piece that is there already and whole is kept. Of several errors the one that comes first in the data is raised.
    With one worker the work is done here, otherwise in processes, which find the tokenizer in `folder/tokenizer`.
    """
    if workers == 1 or not importable(method.task):
        return _here(blocks, name, method, folder)
    return _Pool(blocks, name, method, folder).run(workers)


def _here(blocks: Iterator[Block], name: Callable[[Block], str], method: Method, folder: Path) -> Iterator[Done]:
    for number, block in enumerate(blocks):
        path = folder / name(block)
        piece = Piece.read(path)
        if piece is None:
            piece = method.piece(block)
            try:
                piece.write(path)
            except OSError as error:
                raise no_room(folder, error) from error
        yield Done(number, block.consumed, path, piece.summary)


class _Pool:
    """A thread for each process: takes a block, hands it over, waits for the piece."""

    def __init__(self, blocks: Iterator[Block], name: Callable[[Block], str], method: Method, folder: Path):
        self.blocks, self.name, self.folder = enumerate(blocks), name, folder
        kind = type(method.task)
        self.greeting = {
            "task": method.task.settings(), "kind": [kind.__module__, kind.__qualname__], "section": method.section,
            "folder": str(folder),
        }  # fmt: skip
        self.reading = threading.Lock()
        self.stopped = threading.Event()
        self.results: queue.Queue[Done | tuple[int, BaseException] | None] = queue.Queue()
        self.number = 0

    def run(self, workers: int) -> Iterator[Done]:
        processes = [_Process(self.greeting) for _ in range(workers)]
        threads = [threading.Thread(target=self.feed, args=(one,), daemon=True) for one in processes]
        errors: dict[int, BaseException] = {}
        try:
            for thread in threads:
                thread.start()
            left = workers
            while left:
                match self.results.get():
                    case None:
                        left -= 1
                    case Done() as done:
                        yield done
                    case number, error:
                        errors[number] = error
            if errors:
                raise errors[min(errors)]
        finally:
            self.stopped.set()
            for process in processes:
                process.end()
            for thread in threads:
                if thread.ident:
                    thread.join()

    def feed(self, process: _Process) -> None:
        try:
            while (item := self.next()) is not None:
                number, block = item
                try:
                    path = self.folder / self.name(block)
                    piece = Piece.read(path)
                    summary = piece.summary if piece else process.piece(block, path)
                except BaseException as error:
                    self.stopped.set()
                    self.results.put((number, error))
                else:
                    self.results.put(Done(number, block.consumed, path, summary))
        finally:
            self.results.put(None)

    def next(self) -> tuple[int, Block] | None:
        with self.reading:
            if self.stopped.is_set():
                return None
            try:
                self.number, block = next(self.blocks)
            except StopIteration:
                return None
            except BaseException as error:
                self.stopped.set()
                self.results.put((self.number + 1, error))
                return None
            return self.number, block


class _Process:
    """One worker, started when it first has something to do."""

    def __init__(self, greeting: dict[str, Any]):
        self.greeting = greeting
        self.running: subprocess.Popen[bytes] | None = None
        self.ended = False
        self.complaints = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the process is)

    def start(self) -> subprocess.Popen[bytes]:
        if self.running is None:
            alone = dict.fromkeys(("OMP_NUM_THREADS", "RAYON_NUM_THREADS"), "1")
            command = [sys.executable, "-c", START, json.dumps(sys.path)]
            self.running = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.complaints,
                env={**os.environ, **alone, "TOKENIZERS_PARALLELISM": "false"},
            )  # fmt: skip
            if self.ended:
                self.running.kill()
            self._send(json.dumps(self.greeting).encode() + b"\n")
        return self.running

    def piece(self, block: Block, path: Path) -> Summary:
        """Have the block's piece written to this path."""
        process = self.start()
        about = {
            "paths": [str(one) for one in block.source.paths], "kind": block.source.kind, "fields": block.fields,
            "columns": block.columns, "line": block.line, "offset": block.offset, "begins": block.begins,
            "ends": block.ends, "sizes": [len(data) for data in block.data], "piece": str(path),
        }  # fmt: skip
        self._send(json.dumps(about).encode() + b"\n", *block.data)
        assert process.stdout
        reply = process.stdout.readline()
        if not reply.endswith(b"\n"):
            raise self._died(process)
        answer = json.loads(reply)
        if "summary" in answer:
            return Summary(**answer["summary"])
        if "no_room" in answer:
            raise no_room(path.parent, OSError(*answer["no_room"]))
        raise CutawayError(answer["error"]) if "error" in answer else RuntimeError(answer["bug"])

    def _send(self, *parts: bytes) -> None:
        assert self.running
        assert self.running.stdin
        try:
            for part in parts:
                self.running.stdin.write(part)
            self.running.stdin.flush()
        except OSError:
            raise self._died(self.running) from None

    def _died(self, process: subprocess.Popen[bytes]) -> Exception:
        code = process.wait()
        self.complaints.seek(0)
        said = self.complaints.read()[-2000:].decode("utf-8", "replace").strip()
        if code < 0:
            why = " It may have run out of memory: try fewer workers." if code == -signal.SIGKILL else ""
            return CutawayError(
                f"A process that was tokenizing the data was ended by signal {-code}.{why} "
                "Finished work is kept: run the same command again to continue."
            )
        return RuntimeError(
            f"A process that was tokenizing the data ended with code {code}: {said or 'it printed nothing'}"
        )

    def end(self) -> None:
        self.ended = True
        if self.running:
            self.running.kill()
            self.running.wait()
            for pipe in (self.running.stdin, self.running.stdout):
                if pipe:
                    with contextlib.suppress(OSError):
                        pipe.close()


def no_room(folder: Path, error: OSError) -> CutawayError:
    """What to say when the tokens cannot be written."""
    remedy = "Put the cache elsewhere"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        remedy = "Make room on that disk (tokens take about as much as the text), or put the cache elsewhere"
    return CutawayError(
        f"The tokens cannot be written to {folder}: {error.strerror or error}. {remedy}, and run the same command "
        "again: finished work is kept."
    )


def serve() -> None:
    """What a worker process does: blocks from standard input to pieces in files, until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one, which ends it
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else prints here must not come between the answers
    orders = sys.stdin.buffer
    method: Method | None = None
    greeting = json.loads(orders.readline() or "{}")
    while head := orders.readline():
        answer: dict[str, Any]
        try:
            method = method or _method(greeting)
            about = json.loads(head)
            answer = {"summary": vars(_answer(method, about, orders))}
        except CutawayError as error:
            answer = {"error": str(error)}
        except OSError as error:
            answer = {"no_room": [error.errno, error.strerror]}
        except Exception:
            answer = {"bug": traceback.format_exc()}
        try:
            answers.write(json.dumps(answer).encode() + b"\n")
            answers.flush()
        except BrokenPipeError:
            os._exit(0)  # nobody waits for it any more


def _method(greeting: dict[str, Any]) -> Method:
    from cutaway.tasks import TASKS, register, task_from
    from cutaway.text.tokenizer import Tokenizer

    if greeting["task"]["name"] not in TASKS:
        module, name = greeting["kind"]
        register(getattr(importlib.import_module(module), name))
    tokenizer = Tokenizer.load(Path(greeting["folder"]) / "tokenizer")
    return Method(task_from(greeting["task"]), tokenizer, greeting["section"])


def _answer(method: Method, about: dict[str, Any], orders: IO[bytes]) -> Summary:
    """Read the block's bytes, tokenise, write."""
    data = tuple(orders.read(size) for size in about["sizes"])
    if [len(one) for one in data] != about["sizes"]:
        os._exit(0)  # whoever sent them was ended meanwhile
    source = Source(tuple(map(Path, about["paths"])), about["kind"])
    block = Block(
        source, data, tuple(about["fields"]), tuple(about["columns"]), about["line"], about["offset"], about["begins"],
        about["ends"],
    )  # fmt: skip
    piece = method.piece(block)
    piece.write(Path(about["piece"]))
    return piece.summary
