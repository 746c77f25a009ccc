"""One training a folder: whoever trains there holds `training/lock`, and the next one is told who that is.

The system's own lock (flock) is held, which ends with the process however that dies, and holds between containers and,
where the network's file system passes it on, between machines. Where there is none, what the file says decides: a
process of this machine that is gone does not hold, and one of another machine does until its file is removed.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from cutaway.errors import CutawayError

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

NAME = "lock"


@contextmanager
def held(training: Path) -> Iterator[None]:
    """Hold the lock of a training's folder, which must be there; refused while another holds it."""
    path = training / NAME
    while True:
        file = path.open("a+", encoding="utf-8")
        if not taken(file):
            holder = read_holder(path)
            file.close()
            raise refused(training.parent, holder)
        if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
            break
        file.close()  # its last holder removed it just now
    try:
        file.truncate(0)
        file.write(json.dumps(ourselves()) + "\n")
        file.flush()
        yield
    finally:
        path.unlink(missing_ok=True)  # while it is still ours
        file.close()


def taken(file: IO[str]) -> bool:
    """Whether the lock is now ours."""
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass  # a file system without locks
        else:
            return True
    holder = read_holder(Path(file.name))
    return not holder or (holder.get("host") == socket.gethostname() and not alive(int(holder.get("process", 0))))


def alive(process: int) -> bool:
    """Whether there is such a process on this machine."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return process > 0


def ourselves() -> dict[str, Any]:
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    since = datetime.now().astimezone().isoformat(timespec="seconds")
    return {"process": os.getpid(), "host": socket.gethostname(), "since": since, "command": command}


def read_holder(path: Path) -> dict[str, Any]:
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return holder if isinstance(holder, dict) else {}


def refused(output: Path, holder: dict[str, Any]) -> CutawayError:
    who = "another process"
    if holder:
        who = (
            f"process {holder.get('process')} on {holder.get('host')}, since {holder.get('since')}: "
            f"{holder.get('command')}"
        )
    return CutawayError(
        f"A training is running in {output} ({who}). Wait for it, stop it, or choose another folder. "
        f"(If it is no longer running, remove {output / 'training' / NAME}.)"
    )
